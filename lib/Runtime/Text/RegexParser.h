//===- RegexParser.h - The tree of a pattern --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_REGEXPARSER_H
#define ATTUNE_LIB_RUNTIME_TEXT_REGEXPARSER_H

#include "Regex.h"

namespace attune::runtime {

struct RegexNode {
  enum Kind : uint8_t {
    Character,   ///< `character`
    Set,         ///< `ranges`, `malformed`
    Sequence,    ///< all children; none matches the empty text
    Alternation, ///< the first child that matches
    Repeat,      ///< the child `low` to `high` times
    Look,        ///< the child matches here, or ends here if `behind`
    Atomic,      ///< the child, without going back into it
    Assertion    ///< `assertion`
  } kind = Sequence;
  bool negated = false, behind = false, malformed = false;
  Regex::Greed greed = Regex::Greed::Greedy;
  Regex::Op assertion = Regex::Op::Done;
  uint32_t character = 0, low = 0, high = 0;
  CharacterRanges ranges;
  std::vector<RegexNode> children;
};

static constexpr uint32_t regexUnbounded = UINT32_MAX;

class RegexParser {
public:
  RegexParser(std::string_view pattern, const Unicode &unicode,
              RegexProblem &problem)
      : pattern(pattern), unicode(unicode), problem(problem) {}
  bool parse(RegexNode &root);

private:
  struct Flags {
    bool ignoreCase = false, dotAll = false, extended = false;
  };
  static constexpr unsigned maxDepth = 50;

  std::string_view pattern;
  const Unicode &unicode;
  RegexProblem &problem;
  size_t at = 0;
  unsigned depth = 0;
  Flags flags;

  bool fail(const std::string &what, bool unsupported = false);
  bool atEnd() const { return at >= pattern.size(); }
  bool take(std::string_view text) {
    if (pattern.substr(at, text.size()) != text)
      return false;
    at += text.size();
    return true;
  }
  bool parseAlternation(RegexNode &node);
  bool parseSequence(RegexNode &node);
  bool parseAtom(RegexNode &node);
  bool parseGroup(RegexNode &node);
  bool parseFlags(RegexNode &node);
  bool parseQuantifiers(RegexNode &node);
  bool parseCounts(uint32_t &low, uint32_t &high, bool &isCount);
  bool parseEscape(RegexNode &node);
  bool parseProperty(bool negated, RegexNode &node);
  bool parseHex(unsigned least, unsigned most, uint32_t &value);
  bool parseCodePoint(char kind, uint32_t &value);
  bool parseClass(RegexNode &node);
  bool parseClassItems(CharacterRanges &ranges, bool &malformed);
  bool parsePosix(CharacterRanges &ranges, bool &found);
  bool shorthand(char letter, RegexNode &node);
  void makeSet(RegexNode &node, CharacterRanges ranges, bool malformed = false);
  void setCharacter(RegexNode &node, uint32_t c);
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_REGEXPARSER_H
