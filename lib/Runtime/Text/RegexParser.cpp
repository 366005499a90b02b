//===- RegexParser.cpp - The tree of a pattern ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "RegexParser.h"

#include <algorithm>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Sets of characters
//===----------------------------------------------------------------------===//

static CharacterRanges unite(CharacterRanges all) {
  std::sort(all.begin(), all.end());
  CharacterRanges out;
  for (auto [begin, end] : all) {
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.push_back({begin, end});
  }
  return out;
}

static CharacterRanges complement(const CharacterRanges &ranges) {
  CharacterRanges out;
  uint32_t next = 0;
  for (auto [begin, end] : ranges) {
    if (begin > next)
      out.push_back({next, begin});
    next = end;
  }
  if (next < 0x110000)
    out.push_back({next, 0x110000});
  return out;
}

static CharacterRanges intersect(const CharacterRanges &a,
                                 const CharacterRanges &b) {
  CharacterRanges out;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    uint32_t begin = std::max(a[i].first, b[j].first);
    uint32_t end = std::min(a[i].second, b[j].second);
    if (begin < end)
      out.push_back({begin, end});
    if (a[i].second < b[j].second)
      ++i;
    else
      ++j;
  }
  return out;
}

void RegexParser::makeSet(RegexNode &node, CharacterRanges ranges,
                          bool malformed) {
  node.kind = RegexNode::Set;
  node.ranges =
      flags.ignoreCase ? unicode.closeOverCase(ranges) : std::move(ranges);
  node.malformed = malformed;
}

void RegexParser::setCharacter(RegexNode &node, uint32_t c) {
  node.kind = RegexNode::Character;
  node.character = c;
  if (!flags.ignoreCase || c >= 0x110000)
    return;
  CharacterRanges variants = unicode.closeOverCase({{c, c + 1}});
  if (variants.size() > 1 || variants[0].second - variants[0].first > 1) {
    node.kind = RegexNode::Set;
    node.ranges = std::move(variants);
  }
}

//===----------------------------------------------------------------------===//
// Grammar
//===----------------------------------------------------------------------===//

bool RegexParser::fail(const std::string &what, bool unsupported) {
  return problem.set(
      what + " at byte " + std::to_string(at) + " of the pattern", unsupported);
}

bool RegexParser::parse(RegexNode &root) {
  problem = RegexProblem();
  if (pattern.size() > 65536)
    return fail("a pattern of more than 65536 bytes");
  if (!parseAlternation(root))
    return false;
  return atEnd() || fail("a ')' too many");
}

bool RegexParser::parseAlternation(RegexNode &node) {
  if (++depth > maxDepth)
    return fail("groups nested deeper than 50");
  Flags outer = flags;
  node.kind = RegexNode::Alternation;
  do {
    node.children.emplace_back();
    if (!parseSequence(node.children.back()))
      return false;
  } while (take("|"));
  if (node.children.size() == 1) {
    RegexNode only = std::move(node.children[0]);
    node = std::move(only);
  }
  flags = outer;
  --depth;
  return true;
}

bool RegexParser::parseSequence(RegexNode &node) {
  node.kind = RegexNode::Sequence;
  while (!atEnd() && pattern[at] != '|' && pattern[at] != ')') {
    if (flags.extended) {
      if (Unicode::isSpace(static_cast<unsigned char>(pattern[at]))) {
        ++at;
        continue;
      }
      if (pattern[at] == '#') {
        at = std::min(pattern.find('\n', at), pattern.size());
        continue;
      }
    }
    if (take("(?#")) {
      size_t end = pattern.find(')', at);
      if (end == std::string_view::npos)
        return fail("a comment that does not end");
      at = end + 1;
      continue;
    }
    node.children.emplace_back();
    if (!parseAtom(node.children.back()) ||
        !parseQuantifiers(node.children.back()))
      return false;
  }
  return true;
}

bool RegexParser::parseAtom(RegexNode &node) {
  auto assertion = [&](Regex::Op op) {
    node.kind = RegexNode::Assertion;
    node.assertion = op;
    return true;
  };
  switch (pattern[at]) {
  case '(':
    return parseGroup(node);
  case '[':
    ++at;
    return parseClass(node);
  case '\\':
    ++at;
    return parseEscape(node);
  case '^':
    ++at;
    return assertion(Regex::Op::LineStart);
  case '$':
    ++at;
    return assertion(Regex::Op::LineEnd);
  case '.':
    ++at;
    node.kind = RegexNode::Set;
    node.malformed = true;
    node.ranges = {{0, 0x110000}};
    if (!flags.dotAll)
      node.ranges = {{0, '\n'}, {'\n' + 1, 0x110000}};
    return true;
  case '*':
  case '+':
  case '?':
    return fail("a quantifier with nothing before it");
  default: {
    uint32_t c;
    at += decodeCharacter(pattern, at, c);
    setCharacter(node, c);
    return true;
  }
  }
}

bool RegexParser::parseGroup(RegexNode &node) {
  ++at;
  auto inner = [&](RegexNode &into) {
    if (!parseAlternation(into))
      return false;
    return take(")") || fail("a group without its ')'");
  };
  auto wrapped = [&](RegexNode::Kind kind, bool negated, bool behind) {
    node.kind = kind;
    node.negated = negated;
    node.behind = behind;
    node.children.emplace_back();
    return inner(node.children.back());
  };
  if (!take("?"))
    return inner(node);
  if (take(":"))
    return inner(node);
  if (take("="))
    return wrapped(RegexNode::Look, false, false);
  if (take("!"))
    return wrapped(RegexNode::Look, true, false);
  if (take("<="))
    return wrapped(RegexNode::Look, false, true);
  if (take("<!"))
    return wrapped(RegexNode::Look, true, true);
  if (take(">"))
    return wrapped(RegexNode::Atomic, false, false);
  if (take("P<") || take("<")) {
    size_t end = pattern.find('>', at);
    if (end == std::string_view::npos)
      return fail("a name without its '>'");
    at = end + 1;
    return inner(node);
  }
  return parseFlags(node);
}

/// (?i) holds to the end of the group around it, (?i:...) inside.
bool RegexParser::parseFlags(RegexNode &node) {
  Flags outer = flags;
  bool on = true;
  for (;; ++at) {
    if (atEnd())
      return fail("a group without its ')'");
    char letter = pattern[at];
    if (letter == '-')
      on = false;
    else if (letter == 'i')
      flags.ignoreCase = on;
    else if (letter == 'm' || letter == 's')
      flags.dotAll = on;
    else if (letter == 'x')
      flags.extended = on;
    else if (letter != 'u')
      break;
  }
  if (take(":")) {
    if (!parseAlternation(node))
      return false;
    flags = outer;
    return take(")") || fail("a group without its ')'");
  }
  if (!take(")"))
    return fail("a group that is not supported", /*unsupported=*/true);
  return parseAlternation(node);
}

/// {n}, {n,}, {n,m} or {,m}; a brace that is none of these is a character.
bool RegexParser::parseCounts(uint32_t &low, uint32_t &high, bool &isCount) {
  size_t i = at + 1;
  auto number = [&](uint32_t &value) {
    size_t begin = i;
    value = 0;
    while (i < pattern.size() && pattern[i] >= '0' && pattern[i] <= '9' &&
           value <= 100000)
      value = value * 10 + static_cast<uint32_t>(pattern[i++] - '0');
    return i > begin;
  };
  bool hasLow = number(low), comma = i < pattern.size() && pattern[i] == ',';
  bool hasHigh = false;
  if (comma) {
    ++i;
    hasHigh = number(high);
  }
  isCount = i < pattern.size() && pattern[i] == '}' && (hasLow || hasHigh);
  if (!isCount)
    return true;
  if (!hasLow)
    low = 0;
  if (!comma)
    high = low;
  else if (!hasHigh)
    high = regexUnbounded;
  if (low > 100000 || (high != regexUnbounded && high > 100000))
    return fail("a count of more than 100000");
  if (high < low)
    return fail("counts in the wrong order");
  at = i + 1;
  return true;
}

bool RegexParser::parseQuantifiers(RegexNode &node) {
  for (unsigned count = 0; !atEnd(); ++count) {
    if (count > 8)
      return fail("too many quantifiers in a row");
    uint32_t low = 0, high = regexUnbounded;
    bool interval = false;
    if (pattern[at] == '{') {
      if (!parseCounts(low, high, interval))
        return false;
      if (!interval)
        return true;
    } else if (take("+")) {
      low = 1;
    } else if (take("?")) {
      high = 1;
    } else if (!take("*")) {
      return true;
    }
    RegexNode child = std::move(node);
    node = RegexNode();
    node.kind = RegexNode::Repeat;
    node.low = low;
    node.high = high;
    // As in Ruby: a{2}? is optional, and a{2}+ repeats.
    if (take("?")) {
      if (interval && low == high)
        node.low = 0;
      node.greed = Regex::Greed::Lazy;
    } else if (!interval && take("+")) {
      node.greed = Regex::Greed::Possessive;
    }
    node.children.push_back(std::move(child));
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Escapes
//===----------------------------------------------------------------------===//

bool RegexParser::parseHex(unsigned least, unsigned most, uint32_t &value) {
  value = 0;
  unsigned count = 0;
  for (; count < most && !atEnd(); ++count, ++at) {
    char c = pattern[at];
    uint32_t digit;
    if (c >= '0' && c <= '9')
      digit = static_cast<uint32_t>(c - '0');
    else if ((c | 32) >= 'a' && (c | 32) <= 'f')
      digit = static_cast<uint32_t>((c | 32) - 'a' + 10);
    else
      break;
    value = value << 4 | digit;
  }
  return (count >= least && value < 0x110000) ||
         fail("a wrong hexadecimal number");
}

/// \xHH, \x{H...} and \uHHHH.
bool RegexParser::parseCodePoint(char kind, uint32_t &value) {
  if (kind == 'u' && !take("{"))
    return parseHex(4, 4, value);
  if (kind == 'x' && !take("{"))
    return parseHex(1, 2, value);
  return parseHex(1, 6, value) && (take("}") || fail("a '{' without its '}'"));
}

/// \p{Name}, \p{^Name}, \P{Name}, \pL.
bool RegexParser::parseProperty(bool negated, RegexNode &node) {
  std::string_view name;
  if (take("{")) {
    if (take("^"))
      negated = !negated;
    size_t end = pattern.find('}', at);
    if (end == std::string_view::npos)
      return fail("a property without its '}'");
    name = pattern.substr(at, end - at);
    at = end + 1;
  } else if (!atEnd()) {
    name = pattern.substr(at++, 1);
  }
  CharacterRanges ranges;
  if (!unicode.find(name, ranges))
    return fail("an unknown property '" + std::string(name.substr(0, 40)) +
                "'");
  makeSet(node, negated ? complement(ranges) : std::move(ranges), negated);
  return true;
}

/// The letters that stand for sets; false if it is none.
bool RegexParser::shorthand(char letter, RegexNode &node) {
  const char *name = nullptr;
  switch (letter | 32) {
  case 's':
    name = "space";
    break;
  case 'w':
    name = "word";
    break;
  case 'd':
    name = "nd";
    break;
  case 'h':
    break;
  default:
    return false;
  }
  CharacterRanges ranges = {{'0', '9' + 1}, {'A', 'F' + 1}, {'a', 'f' + 1}};
  if (name)
    unicode.find(name, ranges);
  // Oniguruma counts the numbers of Latin-1 that are no digits as words.
  if ((letter | 32) == 'w') {
    for (uint32_t c : {0xB2, 0xB3, 0xB9, 0xBC, 0xBD, 0xBE})
      ranges.push_back({c, c + 1});
    ranges = unite(std::move(ranges));
  }
  bool negated = !(letter & 32);
  node.kind = RegexNode::Set;
  node.ranges = negated ? complement(ranges) : std::move(ranges);
  node.malformed = negated;
  return true;
}

static bool controlEscape(char letter, uint32_t &c) {
  switch (letter) {
  case 't':
    c = '\t';
    return true;
  case 'n':
    c = '\n';
    return true;
  case 'r':
    c = '\r';
    return true;
  case 'f':
    c = '\f';
    return true;
  case 'v':
    c = '\v';
    return true;
  case 'a':
    c = '\a';
    return true;
  case 'e':
    c = 0x1B;
    return true;
  case '0':
    c = 0;
    return true;
  }
  return false;
}

bool RegexParser::parseEscape(RegexNode &node) {
  if (atEnd())
    return fail("a '\\' at the end");
  char letter = pattern[at++];
  uint32_t c;
  static constexpr struct {
    char letter;
    Regex::Op op;
  } assertions[] = {
      {'b', Regex::Op::WordEdge},    {'B', Regex::Op::NoWordEdge},
      {'A', Regex::Op::TextStart},   {'z', Regex::Op::TextEnd},
      {'Z', Regex::Op::TextEndLine},
  };
  for (const auto &known : assertions)
    if (letter == known.letter) {
      node.kind = RegexNode::Assertion;
      node.assertion = known.op;
      return true;
    }
  if (letter == 'p' || letter == 'P')
    return parseProperty(letter == 'P', node);
  if (shorthand(letter, node))
    return true;
  if (letter == 'R') {
    RegexNode crlf, cr, lf, any;
    cr.kind = lf.kind = RegexNode::Character;
    cr.character = '\r';
    lf.character = '\n';
    crlf.children = {cr, lf};
    any.kind = RegexNode::Set;
    any.ranges = {{0x0A, 0x0E}, {0x85, 0x86}, {0x2028, 0x202A}};
    RegexNode either;
    either.kind = RegexNode::Alternation;
    either.children = {crlf, any};
    node.kind = RegexNode::Atomic;
    node.children = {either};
    return true;
  }
  if (letter == 'x' || letter == 'u') {
    if (!parseCodePoint(letter, c))
      return false;
  } else if (!controlEscape(letter, c)) {
    bool word = (letter >= 'a' && letter <= 'z') ||
                (letter >= 'A' && letter <= 'Z') ||
                (letter >= '0' && letter <= '9');
    if (word)
      return fail(std::string("the escape '\\") + letter +
                      "', which is not supported,",
                  /*unsupported=*/true);
    --at;
    at += decodeCharacter(pattern, at, c);
  }
  setCharacter(node, c);
  return true;
}

//===----------------------------------------------------------------------===//
// Classes
//===----------------------------------------------------------------------===//

/// [:alpha:] and [:^alpha:] inside a class.
bool RegexParser::parsePosix(CharacterRanges &ranges, bool &found) {
  found = false;
  if (pattern.substr(at, 2) != "[:")
    return true;
  size_t end = pattern.find(":]", at + 2);
  if (end == std::string_view::npos || end - at > 20)
    return true;
  std::string_view name = pattern.substr(at + 2, end - at - 2);
  bool negated = !name.empty() && name[0] == '^';
  if (negated)
    name.remove_prefix(1);
  CharacterRanges named;
  if (!unicode.find(name, named))
    return true;
  found = true;
  at = end + 2;
  for (auto range : negated ? complement(named) : named)
    ranges.push_back(range);
  return true;
}

/// What stands between '[' and ']' or '&&', united.
bool RegexParser::parseClassItems(CharacterRanges &ranges, bool &malformed) {
  bool first = true;
  malformed = false;
  for (;; first = false) {
    if (atEnd())
      return fail("a '[' without its ']'");
    if ((pattern[at] == ']' && !first) || pattern.substr(at, 2) == "&&")
      break;
    bool found;
    if (!parsePosix(ranges, found))
      return false;
    if (found)
      continue;
    RegexNode item;
    item.kind = RegexNode::Character;
    if (take("[")) {
      if (!parseClass(item))
        return false;
    } else if (take("\\b")) {
      item.character = '\b';
    } else if (take("\\")) {
      if (!parseEscape(item))
        return false;
      if (item.kind != RegexNode::Character && item.kind != RegexNode::Set)
        return fail("an escape that is no character");
    } else {
      at += decodeCharacter(pattern, at, item.character);
    }
    if (item.kind == RegexNode::Set) {
      malformed = malformed || item.malformed;
      ranges.insert(ranges.end(), item.ranges.begin(), item.ranges.end());
      continue;
    }
    uint32_t last = item.character;
    if (at + 1 < pattern.size() && pattern[at] == '-' &&
        pattern[at + 1] != ']' && pattern[at + 1] != '[') {
      ++at;
      RegexNode end;
      end.kind = RegexNode::Character;
      Flags outer = flags;
      flags.ignoreCase = false;
      bool good = true;
      if (take("\\"))
        good = parseEscape(end);
      else
        at += decodeCharacter(pattern, at, end.character);
      flags = outer;
      if (!good)
        return false;
      if (end.kind == RegexNode::Set) { // a '-' between, not a range
        ranges.push_back({'-', '-' + 1});
        ranges.insert(ranges.end(), end.ranges.begin(), end.ranges.end());
      } else {
        last = end.character;
      }
      if (last < item.character)
        return fail("a range in the wrong order");
    }
    ranges.push_back({item.character, last + 1});
  }
  ranges = unite(std::move(ranges));
  return true;
}

bool RegexParser::parseClass(RegexNode &node) {
  if (++depth > maxDepth)
    return fail("classes nested deeper than 50");
  bool negated = take("^"), malformed;
  CharacterRanges all;
  Flags outer = flags;
  flags.ignoreCase = false; // closed over case once, at the end
  if (!parseClassItems(all, malformed))
    return false;
  while (take("&&")) {
    CharacterRanges more;
    bool moreMalformed;
    if (!parseClassItems(more, moreMalformed))
      return false;
    all = intersect(all, more);
    malformed = malformed && moreMalformed;
  }
  if (!take("]"))
    return fail("a '[' without its ']'");
  flags = outer;
  if (flags.ignoreCase)
    all = unicode.closeOverCase(all);
  node.kind = RegexNode::Set;
  node.ranges = negated ? complement(all) : std::move(all);
  node.malformed = negated != malformed;
  --depth;
  return true;
}

} // namespace attune::runtime
