//===- Grammar.h - Which texts may be written -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A context-free grammar over bytes. JSON schemas, regular expressions and
// grammars in text form (GBNF) all become one; GrammarAutomaton runs it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMAR_H
#define ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMAR_H

#include "HashIndex.h"

#include <bitset>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

/// Code points from `first` to `last`.
struct CodeRange {
  uint32_t first, last;
};
/// Sorts and joins ranges; `negate`: all code points that are in none.
std::vector<CodeRange> normalizeRanges(std::vector<CodeRange> ranges,
                                       bool negate);

class Grammar {
public:
  using Rule = uint32_t;
  using ByteSet = std::bitset<256>;
  /// A step of an alternative: a byte of a set, or a rule.
  struct Element {
    bool isRule;
    uint32_t index; ///< of the set or of the rule
  };
  using Sequence = std::vector<Element>;

  /// Limits of a grammar: elements of all rules, and sets of bytes.
  static constexpr size_t mostElements = 500000;
  static constexpr size_t mostSets = 20000;

  /// A rule without alternatives.
  Rule addRule();
  void addAlternative(Rule rule, Sequence sequence);

  /// Appends to a sequence what stands for these.
  void appendText(Sequence &to, std::string_view bytes);
  void appendRule(Sequence &to, Rule rule) {
    to.push_back({true, rule});
    ++numElements;
  }
  /// One byte of these.
  void appendSet(Sequence &to, const ByteSet &set) {
    to.push_back({false, addSet(set)});
    ++numElements;
  }
  /// One character of these ranges, in UTF-8.
  void appendRanges(Sequence &to, const std::vector<CodeRange> &ranges);
  /// From `least` to `most` times what `rule` stands for; -1: no limit. False
  /// if that is too much.
  bool appendRepeat(Sequence &to, Rule rule, int64_t least, int64_t most);

  /// To be asked after each part of a text from outside, so that what is read
  /// costs no more than the limits.
  bool isTooLarge() const {
    return numElements > mostElements || sets.size() > mostSets;
  }
  /// Elements of all rules.
  size_t size() const { return numElements; }
  /// A rule that comes back to itself before it reads anything; -1: none does.
  int64_t findLeftRecursion() const;
  /// Removes alternatives that no text comes to the end of, so that no text is
  /// begun that cannot be finished.
  void removeDeadEnds();

  const std::vector<std::vector<Sequence>> &rules() const { return all; }
  const std::vector<ByteSet> &byteSets() const { return sets; }
  Rule root = 0;

private:
  uint32_t addSet(const ByteSet &set);
  std::vector<char> findRules(bool (Grammar::*isGood)(Element) const) const;
  bool isNothing(Element) const { return false; }
  bool hasBytes(Element element) const { return sets[element.index].any(); }

  std::vector<std::vector<Sequence>> all;
  std::vector<ByteSet> sets;
  HashIndex setIndex;
  size_t numElements = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GRAMMAR_GRAMMAR_H
