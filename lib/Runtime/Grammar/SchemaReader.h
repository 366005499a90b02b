//===- SchemaReader.h - Schemas become rules --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAREADER_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAREADER_H

#include "Grammar.h"
#include "Pattern.h"
#include "SchemaNumbers.h"
#include "SchemaValues.h"

#include "attune/Runtime/Json.h"

#include <memory>
#include <string>

namespace attune::runtime {

class SchemaReader {
public:
  SchemaReader(const JsonValue *root, Grammar &grammar, std::string &problem)
      : root(root), grammar(grammar), problem(problem), values(root) {}

  /// A rule for the values of a schema; false: it is wrong.
  bool readSchema(const JsonValue &schema, const std::string &where,
                  Grammar::Rule &rule);
  Grammar::Rule anyObject();
  /// What first excluded itself; empty: nothing did.
  const std::string &contradiction() const { return excluded; }
  /// What is not checked; empty: everything is.
  const std::string &notes() const { return unchecked; }

private:
  using Sequence = Grammar::Sequence;
  static constexpr unsigned mostDepth = 100;
  static constexpr int64_t mostCount = 10000; ///< of characters and items

  /// A pattern that texts have.
  struct TextPart {
    std::string pattern;
    bool isString; ///< it is searched for in the content of a string
    std::string where;
    /// Of numbers: these multiples, too, or alone if there is no pattern.
    /// Null: any.
    const NumberBounds *multiples = nullptr;
  };

  static std::string message(const std::string &where,
                             const std::string &what) {
    return "schema" + (where.empty() ? "" : " " + where) + ": " + what;
  }
  bool fail(const std::string &where, const std::string &what) {
    problem = message(where, what);
    return false;
  }
  /// No value is valid, which is no mistake in a part of a schema: its rule
  /// stays without alternatives.
  bool exclude(const std::string &where, const std::string &what) {
    if (excluded.empty())
      excluded = message(where, what);
    return true;
  }
  Sequence text(std::string_view bytes) {
    Sequence sequence;
    grammar.appendText(sequence, bytes);
    return sequence;
  }
  Sequence &append(Sequence &to, const Sequence &more) {
    to.insert(to.end(), more.begin(), more.end());
    return to;
  }
  Grammar::Rule makeRule(Sequence sequence) {
    Grammar::Rule rule = grammar.addRule();
    grammar.addAlternative(rule, std::move(sequence));
    return rule;
  }
  /// A rule that is made when it is first asked for.
  template <typename Make> Grammar::Rule once(int64_t &rule, Make make) {
    if (rule < 0) {
      rule = grammar.addRule();
      make(static_cast<Grammar::Rule>(rule));
    }
    return static_cast<Grammar::Rule>(rule);
  }
  /// The language of a pattern that this reader wrote itself.
  Grammar::Rule pattern(int64_t &rule, std::string_view text) {
    return once(rule, [&](Grammar::Rule to) {
      Sequence sequence;
      std::string ignored;
      appendPattern(grammar, sequence, text, /*isSearch=*/false,
                    /*inString=*/false, ignored);
      grammar.addAlternative(to, std::move(sequence));
    });
  }
  Grammar::Rule space() { return pattern(spaceRule, "( |\\n[ \\t]{0,20})?"); }
  Grammar::Rule integer() {
    return pattern(integerRule, "-?(0|[1-9][0-9]{0,15})");
  }
  Grammar::Rule number() {
    return pattern(numberRule, "-?(0|[1-9][0-9]{0,15})(\\.[0-9]{1,16})?"
                               "([eE][+-]?[0-9]{1,2})?");
  }
  Grammar::Rule character() {
    return pattern(characterRule,
                   "[^\"\\\\\\x00-\\x1F\\x7F]|\\\\([\"\\\\/bfnrt]|u([0-9a-"
                   "cefA-CEF][0-9a-fA-F]|[dD][0-7])[0-9a-fA-F]{2})");
  }
  Grammar::Rule characters() {
    return once(charactersRule, [&](Grammar::Rule rule) {
      Sequence sequence;
      grammar.appendRepeat(sequence, character(), 0, -1);
      grammar.addAlternative(rule, std::move(sequence));
    });
  }
  Grammar::Rule charactersUpTo(int64_t most);
  Grammar::Rule anyString();
  Grammar::Rule anyValue();
  Grammar::Rule arrayOf(Grammar::Rule item);
  Grammar::Rule objectOf(Grammar::Rule value);

  bool addUnion(const JsonValue &schema, const char *keyword,
                const std::string &where, Grammar::Rule rule);
  bool addBranches(const JsonValue &schema, const char *keyword,
                   const std::string &where, Grammar::Rule rule);
  bool addValues(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool addTypes(const JsonValue &schema, const std::string &where,
                Grammar::Rule rule);
  bool addReference(const JsonValue &reference, const std::string &where,
                    Grammar::Rule rule);
  bool addType(const JsonValue &schema, std::string_view type,
               const std::string &where, Grammar::Rule rule);
  bool addAll(const JsonValue &schema, const std::string &where,
              Grammar::Rule rule);
  bool mergeParts(JsonValue &to, const JsonValue &schema,
                  const std::string &where, unsigned level, bool &isExcluded);
  bool addNumber(const JsonValue &schema, bool isInteger,
                 const std::string &where, Grammar::Rule rule);
  bool addString(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool addArray(const JsonValue &schema, const std::string &where,
                Grammar::Rule rule);
  bool addObject(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool appendRestricted(Sequence &to, const std::vector<TextPart> &parts,
                        int64_t least, int64_t most, const std::string &where);
  bool addParts(Grammar::Rule rule, const std::vector<TextPart> &parts,
                int64_t least, int64_t most, const std::string &where);
  void noteFormat(const std::string &name, const std::string &where);
  bool checkKeywords(const JsonValue &schema, const std::string &where);
  bool readCounts(const JsonValue &schema, const char *least, const char *most,
                  const std::string &where, int64_t &from, int64_t &to);

  const JsonValue *root;
  Grammar &grammar;
  std::string &problem;
  unsigned depth = 0;
  int64_t spaceRule = -1, integerRule = -1, numberRule = -1, characterRule = -1,
          charactersRule = -1, stringRule = -1, valueRule = -1, objectRule = -1;
  std::vector<Grammar::Rule> upTo; ///< strings of at most so many characters
  /// Texts that are restricted, by what restricts them.
  std::vector<std::pair<std::string, Grammar::Rule>> restricted;
  HashIndex restrictedIndex;
  size_t budget = 200000; ///< of addProduct() for the whole schema
  size_t partsSize = 0;   ///< of all its parts
  /// Schemas and their rules.
  std::vector<std::pair<const JsonValue *, Grammar::Rule>> known;
  HashIndex knownIndex;
  std::vector<std::unique_ptr<JsonValue>> merged; ///< of several schemas
  size_t numMerged = 0;
  std::string excluded, unchecked;
  SchemaValues values;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_SCHEMAREADER_H
