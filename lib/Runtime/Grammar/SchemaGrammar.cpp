//===- SchemaGrammar.cpp - JSON schemas as grammars -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaGrammar.h"

#include "GrammarProduct.h"
#include "Pattern.h"
#include "SchemaFormats.h"
#include "SchemaKeywords.h"
#include "SchemaMerge.h"
#include "SchemaNumbers.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

namespace attune::runtime {

/// Values of a schema: what users write has some hundreds.
static constexpr size_t mostValues = 20000;
/// Values that are looked at while schemas become one: parts that refer to
/// parts can double what there is at every level.
static constexpr size_t mostMerged = 2000000;

static size_t countValues(const JsonValue &value) {
  size_t count = 1;
  for (const JsonValue &item : value.items)
    count += countValues(item);
  return count;
}

namespace {
class SchemaReader {
public:
  SchemaReader(const JsonValue *root, Grammar &grammar, std::string &problem)
      : root(root), grammar(grammar), problem(problem) {}

  /// A rule for the values of a schema; false: it is wrong.
  bool readSchema(const JsonValue &schema, const std::string &where,
                  Grammar::Rule &rule);
  Grammar::Rule anyObject();
  std::string notes; ///< on what is not checked

private:
  using Sequence = Grammar::Sequence;
  static constexpr unsigned mostDepth = 100;
  static constexpr int64_t mostCount = 10000; ///< of characters and items

  bool fail(const std::string &where, const std::string &what) {
    problem = "schema" + (where.empty() ? "" : " " + where) + ": " + what;
    return false;
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
  /// Strings of all limits share their rules.
  Grammar::Rule charactersUpTo(int64_t most) {
    if (upTo.empty())
      upTo.push_back(makeRule({}));
    while (static_cast<int64_t>(upTo.size()) <= most) {
      Grammar::Rule next = makeRule({});
      grammar.addAlternative(next, {{true, character()}, {true, upTo.back()}});
      upTo.push_back(next);
    }
    return upTo[static_cast<size_t>(most)];
  }
  Grammar::Rule anyString();
  Grammar::Rule anyValue();
  Grammar::Rule arrayOf(Grammar::Rule item);
  Grammar::Rule objectOf(Grammar::Rule value);

  bool addUnion(const JsonValue &schemas, const std::string &where,
                Grammar::Rule rule);
  bool addReference(const JsonValue &reference, const std::string &where,
                    Grammar::Rule rule);
  bool addType(const JsonValue &schema, std::string_view type,
               const std::string &where, Grammar::Rule rule);
  bool addAll(const JsonValue &schema, const std::string &where,
              Grammar::Rule rule);
  bool mergeParts(JsonValue &to, const JsonValue &schema,
                  const std::string &where, unsigned level);
  const JsonValue *findReference(const JsonValue &reference,
                                 const std::string &where);
  bool addNumber(const JsonValue &schema, bool isInteger,
                 const std::string &where, Grammar::Rule rule);
  bool addString(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool addArray(const JsonValue &schema, const std::string &where,
                Grammar::Rule rule);
  bool addObject(const JsonValue &schema, const std::string &where,
                 Grammar::Rule rule);
  bool addPattern(std::vector<Grammar> &parts, const std::string &pattern,
                  bool isSearch, bool inString, const std::string &where);
  bool addCommon(Grammar::Rule rule, std::vector<Grammar> parts, int64_t least,
                 int64_t most, const std::string &where);
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
  /// Contents of strings that patterns and limits of length restrict.
  std::vector<std::pair<std::string, Grammar::Rule>> restricted;
  std::vector<Grammar::Rule> upTo; ///< strings of at most so many characters
  /// Schemas that are referred to, and their rules.
  std::vector<std::pair<const JsonValue *, Grammar::Rule>> known;
  std::vector<std::unique_ptr<JsonValue>> merged; ///< of allOf
  size_t numMerged = 0;
  size_t budget = 200000; ///< of addProduct() for the whole schema
};
} // namespace

//===----------------------------------------------------------------------===//
// Values of any kind
//===----------------------------------------------------------------------===//

Grammar::Rule SchemaReader::anyString() {
  return once(stringRule, [&](Grammar::Rule rule) {
    Sequence sequence = text("\"");
    grammar.appendRule(sequence, characters());
    grammar.addAlternative(rule, append(sequence, text("\"")));
  });
}

Grammar::Rule SchemaReader::arrayOf(Grammar::Rule item) {
  Sequence empty = text("["), full = empty, more = text(",");
  for (Sequence *sequence : {&empty, &full, &more})
    grammar.appendRule(*sequence, space());
  grammar.appendRule(more, item);
  grammar.appendRule(more, space());
  grammar.appendRule(full, item);
  grammar.appendRule(full, space());
  grammar.appendRepeat(full, makeRule(more), 0, -1);
  Grammar::Rule rule = makeRule(append(empty, text("]")));
  grammar.addAlternative(rule, append(full, text("]")));
  return rule;
}

Grammar::Rule SchemaReader::objectOf(Grammar::Rule value) {
  Sequence member;
  grammar.appendRule(member, anyString());
  append(member, text(":"));
  grammar.appendRule(member, space());
  grammar.appendRule(member, value);
  grammar.appendRule(member, space());
  Sequence empty = text("{"), full = empty, more = text(",");
  for (Sequence *sequence : {&empty, &full, &more})
    grammar.appendRule(*sequence, space());
  Grammar::Rule one = makeRule(member);
  grammar.appendRule(more, one);
  grammar.appendRule(full, one);
  grammar.appendRepeat(full, makeRule(more), 0, -1);
  Grammar::Rule rule = makeRule(append(empty, text("}")));
  grammar.addAlternative(rule, append(full, text("}")));
  return rule;
}

Grammar::Rule SchemaReader::anyObject() {
  return once(objectRule, [&](Grammar::Rule rule) {
    Sequence sequence;
    grammar.appendRule(sequence, objectOf(anyValue()));
    grammar.addAlternative(rule, std::move(sequence));
  });
}

Grammar::Rule SchemaReader::anyValue() {
  return once(valueRule, [&](Grammar::Rule rule) {
    Grammar::Rule kinds[] = {anyString(), number(), anyObject(), arrayOf(rule)};
    for (Grammar::Rule kind : kinds)
      grammar.addAlternative(rule, {{true, kind}});
    for (const char *word : {"true", "false", "null"})
      grammar.addAlternative(rule, text(word));
  });
}

//===----------------------------------------------------------------------===//
// Schemas
//===----------------------------------------------------------------------===//

bool SchemaReader::checkKeywords(const JsonValue &schema,
                                 const std::string &where) {
  for (size_t i = 0; i < schema.keys.size(); ++i)
    if (useOfKeyword(schema, schema.keys[i], schema.items[i]) ==
        KeywordUse::Unknown)
      return fail(where, "the keyword '" + schema.keys[i] +
                             "' is not supported, and texts could be invalid "
                             "without it");
  return true;
}

bool SchemaReader::readSchema(const JsonValue &schema, const std::string &where,
                              Grammar::Rule &rule) {
  for (auto [each, its] : known)
    if (each == &schema) {
      rule = its;
      return true;
    }
  if (schema.isBool()) {
    rule = schema.boolean ? anyValue() : grammar.addRule();
    return true;
  }
  if (!schema.isObject())
    return fail(where,
                std::string("expected an object, found ") + schema.kindName());
  if (!checkKeywords(schema, where))
    return false;
  if (grammar.isTooLarge() || depth > mostDepth)
    return fail(where, "the schema is too large");
  ++depth;
  rule = grammar.addRule();
  known.push_back({&schema, rule});
  const JsonValue *type = schema.find("type");
  auto isBeside = [&](const char *keyword) {
    for (const char *other :
         {"properties", "items", "prefixItems", "pattern", "enum", "const",
          "anyOf", "oneOf", "allOf", "$ref"})
      if (std::string_view(other) != keyword && schema.find(other))
        return true;
    return false;
  };
  bool good = true;
  for (const char *keyword :
       {"allOf", "$ref", "const", "enum", "anyOf", "oneOf"}) {
    const JsonValue *value = schema.find(keyword);
    if (!value)
      continue;
    std::string_view name = keyword;
    std::string place = where + "/" + keyword;
    if (name != "allOf" && isBeside(keyword))
      return fail(place, "it stands beside another keyword that restricts, "
                         "which is not supported");
    if (name == "$ref") {
      good = addReference(*value, place, rule);
    } else if (name == "const") {
      std::string json;
      appendJson(json, *value);
      grammar.addAlternative(rule, text(json));
    } else if (name == "enum") {
      if (!value->isArray())
        return fail(place, "expected an array of values");
      if (value->items.empty())
        return fail(place, "expected a value at least: an empty list allows "
                           "none");
      for (const JsonValue &item : value->items) {
        std::string json;
        appendJson(json, item);
        grammar.addAlternative(rule, text(json));
      }
    } else if (name == "allOf") {
      good = addAll(schema, place, rule);
    } else {
      good = addUnion(*value, place, rule);
    }
    --depth;
    return good;
  }
  if (!type) {
    // A schema may restrict one kind of values and allow all others; who writes
    // members or items means that kind.
    std::string_view implied =
        schema.find("properties") || schema.find("required") ||
                schema.find("additionalProperties")
            ? "object"
        : schema.find("items") || schema.find("prefixItems") ? "array"
        : schema.find("pattern") || schema.find("minLength") ||
                schema.find("maxLength") || schema.find("format")
            ? "string"
        : schema.find("minimum") || schema.find("maximum") ||
                schema.find("exclusiveMinimum") ||
                schema.find("exclusiveMaximum") || schema.find("multipleOf")
            ? "number"
            : "";
    if (implied.empty())
      grammar.addAlternative(rule, {{true, anyValue()}});
    else
      good = addType(schema, implied, where, rule);
  } else if (type->isString()) {
    good = addType(schema, type->string, where, rule);
  } else if (type->isArray()) {
    for (const JsonValue &each : type->items)
      good =
          good && each.isString() && addType(schema, each.string, where, rule);
    if (!good && problem.empty())
      return fail(where + "/type", "expected names of types");
  } else {
    return fail(where + "/type", "expected a name of a type");
  }
  --depth;
  return good;
}

bool SchemaReader::addUnion(const JsonValue &schemas, const std::string &where,
                            Grammar::Rule rule) {
  if (!schemas.isArray() || schemas.items.empty())
    return fail(where, "expected an array of schemas");
  for (size_t i = 0; i < schemas.items.size(); ++i) {
    Grammar::Rule each;
    if (!readSchema(schemas.items[i], where + "/" + std::to_string(i), each))
      return false;
    grammar.addAlternative(rule, {{true, each}});
  }
  return true;
}

/// Adds the schemas of `allOf` to what a schema says itself.
bool SchemaReader::mergeParts(JsonValue &to, const JsonValue &schema,
                              const std::string &where, unsigned level) {
  if (level > mostDepth)
    return fail(where, "schemas refer to each other without end");
  if (!schema.isObject())
    return fail(where,
                std::string("expected an object, found ") + schema.kindName());
  if (!checkKeywords(schema, where))
    return false;
  JsonValue own = schema;
  const JsonValue *parts = schema.find("allOf");
  const JsonValue *reference = schema.find("$ref");
  for (size_t i = own.keys.size(); i-- > 0;) {
    const std::string &key = own.keys[i];
    if (key != "allOf" && key != "$ref" &&
        useOfKeyword(schema, key, schema.items[i]) == KeywordUse::Read)
      continue;
    own.items.erase(own.items.begin() + long(i));
    own.keys.erase(own.keys.begin() + long(i));
  }
  numMerged += countValues(to) + countValues(own);
  if (numMerged > mostMerged)
    return fail(where, "the parts of all 'allOf' are too large as one");
  std::string keyword;
  if (!mergeSchema(to, own, keyword))
    return fail(where, "two schemas say differently what '" + keyword +
                           "' is, which no one schema can");
  if (reference) {
    const JsonValue *target = findReference(*reference, where + "/$ref");
    if (!target || !mergeParts(to, *target, reference->string, level + 1))
      return false;
  }
  if (parts && (!parts->isArray() || parts->items.empty()))
    return fail(where + "/allOf", "expected an array of schemas");
  for (size_t i = 0; parts && i < parts->items.size(); ++i)
    if (!mergeParts(to, parts->items[i], where + "/allOf/" + std::to_string(i),
                    level + 1))
      return false;
  return true;
}

bool SchemaReader::addAll(const JsonValue &schema, const std::string &where,
                          Grammar::Rule rule) {
  merged.emplace_back(new JsonValue());
  JsonValue &whole = *merged.back();
  whole.kind = JsonValue::Kind::Object;
  std::string own = where.substr(0, where.size() - std::strlen("/allOf"));
  Grammar::Rule target;
  if (!mergeParts(whole, schema, own, 0) || !readSchema(whole, where, target))
    return false;
  grammar.addAlternative(rule, {{true, target}});
  return true;
}

/// Null: there is none.
const JsonValue *SchemaReader::findReference(const JsonValue &reference,
                                             const std::string &where) {
  std::string why;
  const JsonValue *found = findByReference(*root, reference, why);
  if (!found)
    fail(where, why);
  return found;
}

bool SchemaReader::addReference(const JsonValue &reference,
                                const std::string &where, Grammar::Rule rule) {
  const JsonValue *at = findReference(reference, where);
  Grammar::Rule target;
  if (!at || !readSchema(*at, reference.string.substr(1), target))
    return false;
  grammar.addAlternative(rule, {{true, target}});
  return true;
}

bool SchemaReader::readCounts(const JsonValue &schema, const char *least,
                              const char *most, const std::string &where,
                              int64_t &from, int64_t &to) {
  for (auto [name, value] :
       {std::pair<const char *, int64_t *>(least, &from), {most, &to}}) {
    const JsonValue *count = schema.find(name);
    if (!count)
      continue;
    // 1.0 is a whole number, too.
    double number = count->real;
    if (!count->isNumber() || number < 0 || number != std::floor(number))
      return fail(where + "/" + name, "expected a whole number from 0");
    if (value == &from && number > double(mostCount))
      return fail(where + "/" + name, "expected at most 10000");
    // A lower limit leaves fewer texts, all of them valid.
    *value = static_cast<int64_t>(std::min(number, double(mostCount)));
  }
  return to < 0 || from <= to ||
         fail(where, std::string(least) + " is more than " + most);
}

bool SchemaReader::addType(const JsonValue &schema, std::string_view type,
                           const std::string &where, Grammar::Rule rule) {
  if (type == "string")
    return addString(schema, where, rule);
  if (type == "array")
    return addArray(schema, where, rule);
  if (type == "object")
    return addObject(schema, where, rule);
  if (type == "integer" || type == "number") {
    return addNumber(schema, type == "integer", where, rule);
  } else if (type == "null") {
    grammar.addAlternative(rule, text("null"));
  } else if (type == "boolean") {
    grammar.addAlternative(rule, text("true"));
    grammar.addAlternative(rule, text("false"));
  } else {
    return fail(where + "/type", "there is no type '" + std::string(type) +
                                     "'; expected string, number, integer, "
                                     "boolean, null, array or object");
  }
  return true;
}

bool SchemaReader::addNumber(const JsonValue &schema, bool isInteger,
                             const std::string &where, Grammar::Rule rule) {
  NumberBounds bounds;
  std::string keyword, why;
  std::vector<Grammar> parts;
  if (!bounds.read(schema, isInteger, keyword, why))
    return fail(where + "/" + keyword, why);
  if (!bounds.hasBounds && !bounds.hasDivisor) {
    grammar.addAlternative(rule, {{true, isInteger ? integer() : number()}});
    return true;
  }
  if (bounds.hasDivisor && !bounds.hasBounds) {
    addMultiples(grammar, rule, bounds);
    return true;
  }
  std::string pattern = describeNumbers(bounds, isInteger);
  if (pattern.empty())
    return fail(where, "no number is within these bounds");
  if (!addPattern(parts, pattern, /*isSearch=*/false, /*inString=*/false,
                  where))
    return false;
  if (bounds.hasDivisor) {
    Grammar &part = parts.emplace_back();
    part.root = part.addRule();
    addMultiples(part, part.root, bounds);
  }
  Grammar::Rule content = grammar.addRule();
  grammar.addAlternative(rule, {{true, content}});
  return addCommon(content, std::move(parts), 0, -1, where);
}

bool SchemaReader::addString(const JsonValue &schema, const std::string &where,
                             Grammar::Rule rule) {
  int64_t least = 0, most = -1;
  if (!readCounts(schema, "minLength", "maxLength", where, least, most))
    return false;
  std::vector<Grammar> parts;
  std::string key;
  for (const char *keyword : {"pattern", "format"}) {
    const JsonValue *value = schema.find(keyword);
    if (!value)
      continue;
    bool isFormat = std::string_view(keyword) == "format";
    std::string place = where + "/" + keyword, why;
    if (!value->isString())
      return fail(place, isFormat ? "expected a name of a format"
                                  : "expected a regular expression");
    std::string source =
        isFormat ? patternOfFormat(value->string) : value->string;
    if (isFormat && source.empty())
      noteFormat(value->string, place);
    else if (!addPattern(parts, source, /*isSearch=*/true, /*inString=*/true,
                         place))
      return false;
    else
      key += "\n" + source;
  }
  Sequence sequence = text("\"");
  if (parts.empty()) {
    for (int64_t i = 0; i < least; ++i)
      grammar.appendRule(sequence, character());
    grammar.appendRule(sequence,
                       most < 0 ? characters() : charactersUpTo(most - least));
    // The rule of a long string is shared, but its beginning is not.
    if (grammar.isTooLarge())
      return fail(where, "the schema is too large");
  } else {
    // Such members often come several times.
    key += "\n" + std::to_string(least) + "," + std::to_string(most);
    auto same =
        std::find_if(restricted.begin(), restricted.end(),
                     [&](const auto &known) { return known.first == key; });
    if (same == restricted.end()) {
      Grammar::Rule content = grammar.addRule();
      if (!addCommon(content, std::move(parts), least, most, where))
        return false;
      same = restricted.insert(same, {key, content});
    }
    grammar.appendRule(sequence, same->second);
  }
  grammar.addAlternative(rule, append(sequence, text("\"")));
  return true;
}

/// The texts of a pattern as one of several grammars.
bool SchemaReader::addPattern(std::vector<Grammar> &parts,
                              const std::string &pattern, bool isSearch,
                              bool inString, const std::string &where) {
  Grammar &part = parts.emplace_back();
  Sequence sequence;
  std::string why;
  if (!appendPattern(part, sequence, pattern, isSearch, inString, why))
    return fail(where, why);
  part.root = part.addRule();
  part.addAlternative(part.root, std::move(sequence));
  return part.findLeftRecursion() < 0 ||
         fail(where, "the regular expression repeats nothing without end");
}

/// What all grammars have, with so many characters.
bool SchemaReader::addCommon(Grammar::Rule rule, std::vector<Grammar> parts,
                             int64_t least, int64_t most,
                             const std::string &where) {
  // A lower limit of a long text leaves fewer texts, all of them valid.
  static constexpr int64_t brief = 64;
  ProductResult result = addProduct(grammar, rule, parts, least, most, budget);
  for (int attempt = 0; attempt < 4 && result == ProductResult::TooLarge &&
                        most > std::max(least, brief);
       ++attempt) {
    most = std::max({least, most / 4, brief});
    result = addProduct(grammar, rule, parts, least, most, budget);
  }
  if (result == ProductResult::NoText)
    return fail(where, "no text is all that is asked for here");
  return result == ProductResult::Done ||
         fail(where, "the schema is too large");
}

/// A format that is not known says nothing of values.
void SchemaReader::noteFormat(const std::string &name,
                              const std::string &where) {
  static constexpr size_t mostBytes = 300;
  if (notes.size() > mostBytes)
    return;
  std::string shown;
  appendJsonString(shown, name.substr(0, 40));
  std::string place;
  appendJsonString(place, where.substr(0, 80));
  notes += (notes.empty() ? "" : "; ") + ("the schema's format " + shown) +
           " at " + place + " is not known and restricts nothing";
}

bool SchemaReader::addArray(const JsonValue &schema, const std::string &where,
                            Grammar::Rule rule) {
  int64_t least = 0, most = -1;
  if (!readCounts(schema, "minItems", "maxItems", where, least, most))
    return false;
  std::vector<Grammar::Rule> firsts;
  const JsonValue *items = schema.find("items");
  const char *prefixKey = "prefixItems", *itemsKey = "items";
  if (items && items->isArray()) { // as drafts to 2019-09 wrote it
    prefixKey = "items";
    itemsKey = "additionalItems";
    items = schema.find(itemsKey);
  }
  if (const JsonValue *prefix = schema.find(prefixKey)) {
    std::string place = where + "/" + prefixKey;
    if (!prefix->isArray())
      return fail(place, "expected an array of schemas");
    for (size_t i = 0; i < prefix->items.size(); ++i)
      if (!readSchema(prefix->items[i], place + "/" + std::to_string(i),
                      firsts.emplace_back()))
        return false;
  }
  bool hasMore = !(items && items->isBool() && !items->boolean);
  // After items that are named, others may come but need not.
  if (!firsts.empty() && !items)
    hasMore = false;
  Grammar::Rule item = 0;
  if (hasMore && (items ? !readSchema(*items, where + "/" + itemsKey, item)
                        : (item = anyValue(), false)))
    return false;
  auto numFirst = static_cast<int64_t>(firsts.size());
  if (!hasMore && least > numFirst)
    return fail(where, "minItems asks for more items than there are schemas");
  if (!hasMore)
    most = most < 0 ? numFirst : std::min(most, numFirst);
  // From the end: what may follow after `count` items.
  auto after = [&](int64_t count, Grammar::Rule follow) {
    Sequence next;
    if (count > 0) {
      next = text(",");
      grammar.appendRule(next, space());
    }
    grammar.appendRule(next, count < numFirst ? firsts[count] : item);
    grammar.appendRule(next, space());
    grammar.appendRule(next, follow);
    Grammar::Rule result = grammar.addRule();
    grammar.addAlternative(result, std::move(next));
    if (count >= least)
      grammar.addAlternative(result, {});
    return result;
  };
  int64_t last = std::max(least, numFirst);
  Grammar::Rule tail = grammar.addRule();
  if (most >= 0) {
    last = most;
    grammar.addAlternative(tail, {});
  } else {
    Sequence more = text(",");
    grammar.appendRule(more, space());
    grammar.appendRule(more, item);
    grammar.appendRule(more, space());
    grammar.appendRule(more, tail);
    grammar.addAlternative(tail, {});
    grammar.addAlternative(tail, std::move(more));
    last = std::max<int64_t>(last, 1); // the first one has no comma
  }
  for (int64_t count = last; count-- > 0;) {
    tail = after(count, tail);
    if (grammar.isTooLarge())
      return fail(where, "the schema is too large");
  }
  Sequence sequence = text("[");
  grammar.appendRule(sequence, space());
  grammar.appendRule(sequence, tail);
  grammar.addAlternative(rule, append(sequence, text("]")));
  return true;
}

bool SchemaReader::addObject(const JsonValue &schema, const std::string &where,
                             Grammar::Rule rule) {
  struct Member {
    std::string name;
    Grammar::Rule value;
    bool isRequired;
  };
  std::vector<Member> members;
  const JsonValue *properties = schema.find("properties");
  const JsonValue *required = schema.find("required");
  const JsonValue *others = schema.find("additionalProperties");
  if (properties && !properties->isObject())
    return fail(where + "/properties", "expected an object of schemas");
  for (size_t i = 0; properties && i < properties->keys.size(); ++i) {
    const std::string &name = properties->keys[i];
    members.push_back({name, 0, false});
    if (!readSchema(properties->items[i], where + "/properties/" + name,
                    members.back().value))
      return false;
  }
  if (required && !required->isArray())
    return fail(where + "/required", "expected an array of names");
  Grammar::Rule other = 0;
  if (others && !others->isBool()) {
    if (!readSchema(*others, where + "/additionalProperties", other))
      return false;
  } else if (!others || others->boolean) {
    other = anyValue();
  }
  bool hasOthers = !(others && others->isBool() && !others->boolean);
  for (size_t i = 0; required && i < required->items.size(); ++i) {
    const JsonValue &name = required->items[i];
    if (!name.isString())
      return fail(where + "/required", "expected an array of names");
    auto place =
        std::find_if(members.begin(), members.end(), [&](const Member &member) {
          return member.name == name.string;
        });
    if (place != members.end())
      place->isRequired = true;
    else if (hasOthers)
      members.push_back({name.string, other, true});
    else
      return fail(where + "/required", "'" + name.string +
                                           "' is required, but there may be no "
                                           "such member");
  }
  if (members.empty() && hasOthers) {
    grammar.addAlternative(rule, {{true, objectOf(other)}});
    return true;
  }
  // From the end: what may follow when the first member is still to come, and
  // when others are there already.
  Grammar::Rule fresh = makeRule({}), later = makeRule({});
  for (size_t i = members.size(); i-- > 0;) {
    const Member &member = members[i];
    std::string name;
    appendJsonString(name, member.name);
    Sequence first = text(name + ":");
    grammar.appendRule(first, space());
    grammar.appendRule(first, member.value);
    grammar.appendRule(first, space());
    grammar.appendRule(first, later);
    Sequence next = text(",");
    grammar.appendRule(next, space());
    append(next, first);
    Grammar::Rule before = makeRule(first), after = makeRule(next);
    if (!member.isRequired) {
      grammar.addAlternative(before, {{true, fresh}});
      grammar.addAlternative(after, {{true, later}});
    }
    fresh = before;
    later = after;
  }
  Sequence sequence = text("{");
  grammar.appendRule(sequence, space());
  grammar.appendRule(sequence, fresh);
  grammar.addAlternative(rule, append(sequence, text("}")));
  return true;
}

bool buildSchemaGrammar(const JsonValue &schema, Grammar &grammar,
                        std::string &problem, std::string &note) {
  problem.clear();
  if (countValues(schema) > mostValues) {
    problem = "schema: has more than " + std::to_string(mostValues) + " values";
    return false;
  }
  SchemaReader reader(&schema, grammar, problem);
  if (!reader.readSchema(schema, "", grammar.root))
    return false;
  note = reader.notes;
  if (grammar.findLeftRecursion() < 0)
    return true;
  problem = "schema: a schema refers to itself without anything between";
  return false;
}

void buildObjectGrammar(Grammar &grammar) {
  std::string ignored;
  grammar.root = SchemaReader(nullptr, grammar, ignored).anyObject();
}

} // namespace attune::runtime
