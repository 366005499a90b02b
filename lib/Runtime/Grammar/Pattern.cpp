//===- Pattern.cpp - Regular expressions as grammars ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Pattern.h"

#include "attune/Runtime/Utf8.h"

#include <algorithm>

namespace attune::runtime {

static constexpr uint32_t lastCode = 0x10FFFF;

/// The parts of sorted ranges that lie from `first` to `last`.
static std::vector<CodeRange> cut(const std::vector<CodeRange> &ranges,
                                  uint32_t first, uint32_t last) {
  std::vector<CodeRange> result;
  for (CodeRange range : ranges)
    if (range.first <= last && range.last >= first)
      result.push_back(
          {std::max(range.first, first), std::min(range.last, last)});
  return result;
}

void appendCharacters(Grammar &grammar, Grammar::Sequence &to,
                      const std::vector<CodeRange> &ranges, bool inString) {
  std::vector<CodeRange> sorted = normalizeRanges(ranges, /*negate=*/false);
  if (!inString) {
    grammar.appendRanges(to, sorted);
    return;
  }
  // Quotes, backslashes and control characters are written with a backslash.
  std::vector<CodeRange> plain;
  for (auto [first, last] :
       {std::pair<uint32_t, uint32_t>(' ', '!'), {'#', '['}, {']', lastCode}}) {
    std::vector<CodeRange> part = cut(sorted, first, last);
    plain.insert(plain.end(), part.begin(), part.end());
  }
  std::vector<Grammar::Sequence> choices;
  if (!plain.empty()) {
    choices.emplace_back();
    grammar.appendRanges(choices.back(), plain);
  }
  static constexpr std::pair<char, std::string_view> escapes[] = {
      {'"', "\\\""}, {'\\', "\\\\"}, {'\b', "\\b"}, {'\f', "\\f"},
      {'\n', "\\n"}, {'\r', "\\r"},  {'\t', "\\t"}};
  for (auto [character, escape] : escapes)
    if (!cut(sorted, static_cast<uint32_t>(character),
             static_cast<uint32_t>(character))
             .empty()) {
      choices.emplace_back();
      grammar.appendText(choices.back(), escape);
    }
  if (choices.size() == 1) {
    to.insert(to.end(), choices[0].begin(), choices[0].end());
    return;
  }
  Grammar::Rule rule = grammar.addRule(); // without choices nothing fits
  for (Grammar::Sequence &choice : choices)
    grammar.addAlternative(rule, std::move(choice));
  grammar.appendRule(to, rule);
}

//===----------------------------------------------------------------------===//
// Classes and escapes
//===----------------------------------------------------------------------===//

static void addAll(std::vector<CodeRange> &ranges, std::vector<CodeRange> more,
                   bool negate) {
  more = normalizeRanges(std::move(more), negate);
  ranges.insert(ranges.end(), more.begin(), more.end());
}

static bool readHex(std::string_view text, size_t &at, size_t digits,
                    uint32_t &value) {
  value = 0;
  for (size_t i = 0; i < digits; ++i, ++at) {
    char c = at < text.size() ? text[at] : ' ';
    bool isDigit = c >= '0' && c <= '9';
    c = static_cast<char>(c | 0x20);
    if (!isDigit && (c < 'a' || c > 'f'))
      return false;
    value =
        value * 16 + static_cast<uint32_t>(isDigit ? c - '0' : c - 'a' + 10);
  }
  return true;
}

/// Reads the character after a backslash as ranges; one character is one range.
static bool readEscape(std::string_view text, size_t &at,
                       std::vector<CodeRange> &ranges, std::string &problem) {
  if (at >= text.size()) {
    problem = "a backslash at the end";
    return false;
  }
  char c = text[at++];
  uint32_t code = static_cast<unsigned char>(c);
  switch (c) {
  case 'd':
  case 'D':
    addAll(ranges, {{'0', '9'}}, c == 'D');
    return true;
  case 'w':
  case 'W':
    addAll(ranges, {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}}, c == 'W');
    return true;
  case 's':
  case 'S':
    addAll(ranges, {{'\t', '\r'}, {' ', ' '}}, c == 'S');
    return true;
  case 'n':
    code = '\n';
    break;
  case 'r':
    code = '\r';
    break;
  case 't':
    code = '\t';
    break;
  case 'f':
    code = '\f';
    break;
  case 'v':
    code = '\v';
    break;
  case 'x':
  case 'u':
  case 'U':
    if (!readHex(text, at,
                 c == 'x'   ? 2
                 : c == 'u' ? 4
                            : 8,
                 code) ||
        code > lastCode) {
      problem = std::string("\\") + c + " is not followed by a code point";
      return false;
    }
    break;
  default:
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '0' && c <= '9')) {
      problem = std::string("\\") + c + " is not supported";
      return false;
    }
  }
  ranges.push_back({code, code});
  return true;
}

static bool readCode(std::string_view text, size_t &at, uint32_t &code,
                     std::string &problem) {
  unsigned length = decodeUtf8(text.substr(at), code);
  at += length;
  if (length == 0)
    problem = "it is not UTF-8";
  return length > 0;
}

bool readClass(std::string_view text, size_t &at,
               std::vector<CodeRange> &ranges, std::string &problem) {
  bool negate = at < text.size() && text[at] == '^';
  at += negate;
  std::vector<CodeRange> found;
  auto readOne = [&](std::vector<CodeRange> &one) {
    if (text[at] == '\\')
      return readEscape(text, ++at, one, problem);
    uint32_t code;
    if (!readCode(text, at, code, problem))
      return false;
    one.push_back({code, code});
    return true;
  };
  for (bool isFirst = true;; isFirst = false) {
    if (at >= text.size()) {
      problem = "a class does not end";
      return false;
    }
    if (text[at] == ']' && !(isFirst && negate))
      break;
    std::vector<CodeRange> from, to;
    if (!readOne(from))
      return false;
    bool isRange = at + 1 < text.size() && text[at] == '-' &&
                   text[at + 1] != ']' && from.size() == 1 &&
                   from[0].first == from[0].last;
    if (isRange) {
      ++at;
      if (!readOne(to))
        return false;
      if (to.size() != 1 || to[0].first != to[0].last ||
          to[0].first < from[0].first) {
        problem = "a range of a class is out of order";
        return false;
      }
      from[0].last = to[0].first;
    }
    found.insert(found.end(), from.begin(), from.end());
  }
  ++at;
  ranges = normalizeRanges(std::move(found), negate);
  return true;
}

//===----------------------------------------------------------------------===//
// Patterns
//===----------------------------------------------------------------------===//

namespace {
class PatternReader {
public:
  PatternReader(Grammar &grammar, std::string_view text, bool inString,
                std::string &problem)
      : grammar(grammar), text(text), inString(inString), problem(problem) {}

  /// Alternatives up to a ')' or the end.
  bool readChoices(Grammar::Rule rule);
  bool isAtEnd() const { return at == text.size(); }

private:
  static constexpr unsigned mostDepth = 200;

  bool readItem(Grammar::Sequence &to);
  bool readCount(int64_t &least, int64_t &most, bool &repeats);
  bool readNumber(int64_t &value);
  bool fail(std::string what) {
    if (problem.empty())
      problem = std::move(what) + ", at byte " + std::to_string(at);
    return false;
  }

  Grammar &grammar;
  std::string_view text;
  bool inString;
  std::string &problem;
  size_t at = 0;
  unsigned depth = 0;
};
} // namespace

bool PatternReader::readChoices(Grammar::Rule rule) {
  if (++depth > mostDepth)
    return fail("groups are nested too deeply");
  for (;;) {
    Grammar::Sequence sequence;
    while (at < text.size() && text[at] != '|' && text[at] != ')') {
      if (!readItem(sequence))
        return false;
      if (grammar.isTooLarge())
        return fail("the pattern is too large");
    }
    grammar.addAlternative(rule, std::move(sequence));
    if (grammar.isTooLarge())
      return fail("the pattern is too large");
    if (at == text.size() || text[at] != '|')
      break;
    ++at;
  }
  --depth;
  return true;
}

bool PatternReader::readNumber(int64_t &value) {
  size_t begin = at;
  for (value = 0; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at)
    value = std::min<int64_t>(value * 10 + (text[at] - '0'), 1000000);
  return at > begin;
}

bool PatternReader::readCount(int64_t &least, int64_t &most, bool &repeats) {
  char c = at < text.size() ? text[at] : ' ';
  repeats = c == '*' || c == '+' || c == '?' || c == '{';
  if (!repeats)
    return true;
  ++at;
  least = c == '+' ? 1 : 0;
  most = c == '?' ? 1 : -1;
  if (c == '{') {
    if (!readNumber(least))
      return fail("expected {m}, {m,} or {m,n}");
    most = least;
    if (at < text.size() && text[at] == ',') {
      ++at;
      if (!readNumber(most))
        most = -1;
    }
    if (at == text.size() || text[at++] != '}' || (most >= 0 && most < least))
      return fail("expected {m}, {m,} or {m,n}");
  }
  // Lazy or not, the same texts match.
  if (at < text.size() && text[at] == '?')
    ++at;
  else if (at < text.size() && text[at] == '+')
    return fail("possessive repetitions are not supported");
  return true;
}

bool PatternReader::readItem(Grammar::Sequence &to) {
  Grammar::Sequence item;
  std::vector<CodeRange> ranges;
  std::string why;
  char c = text[at];
  if (c == '(') {
    ++at;
    if (at < text.size() && text[at] == '?') {
      if (text.substr(at, 2) != "?:")
        return fail("of groups with a '?', only (?:...) is supported");
      at += 2;
    }
    Grammar::Rule group = grammar.addRule();
    if (!readChoices(group))
      return false;
    if (at == text.size())
      return fail("a group does not end");
    ++at;
    grammar.appendRule(item, group);
  } else if (c == '[') {
    if (!readClass(text, ++at, ranges, why))
      return fail(why);
    appendCharacters(grammar, item, ranges, inString);
  } else if (c == '.') {
    ++at;
    appendCharacters(grammar, item, normalizeRanges({{'\n', '\n'}}, true),
                     inString);
  } else if (c == '\\') {
    if (!readEscape(text, ++at, ranges, why))
      return fail(why);
    appendCharacters(grammar, item, ranges, inString);
  } else if (c == '^' || c == '$') {
    return fail("anchors are supported at the ends of the pattern alone");
  } else if (c == '*' || c == '+' || c == '?' || c == '{') {
    return fail("a repetition of nothing");
  } else {
    uint32_t code;
    if (!readCode(text, at, code, why))
      return fail(why);
    appendCharacters(grammar, item, {{code, code}}, inString);
  }
  int64_t least, most;
  bool repeats;
  if (!readCount(least, most, repeats))
    return false;
  if (!repeats) {
    to.insert(to.end(), item.begin(), item.end());
    return true;
  }
  Grammar::Rule rule = grammar.addRule();
  grammar.addAlternative(rule, std::move(item));
  return grammar.appendRepeat(to, rule, least, most) ||
         fail("the pattern is too large");
}

bool appendPattern(Grammar &grammar, Grammar::Sequence &to,
                   std::string_view pattern, bool isSearch, bool inString,
                   std::string &problem) {
  bool isBegin = !pattern.empty() && pattern.front() == '^';
  pattern.remove_prefix(isBegin);
  size_t escapes = 0; // "\\$" is no anchor
  while (escapes + 1 < pattern.size() &&
         pattern[pattern.size() - 2 - escapes] == '\\')
    ++escapes;
  bool isEnd = !pattern.empty() && pattern.back() == '$' && escapes % 2 == 0;
  pattern.remove_suffix(isEnd);
  auto appendAnything = [&] {
    Grammar::Sequence any;
    appendCharacters(grammar, any, {{0, lastCode}}, inString);
    Grammar::Rule rule = grammar.addRule();
    grammar.addAlternative(rule, std::move(any));
    grammar.appendRepeat(to, rule, 0, -1);
  };
  if (isSearch && !isBegin)
    appendAnything();
  problem.clear();
  PatternReader reader(grammar, pattern, inString, problem);
  Grammar::Rule rule = grammar.addRule();
  if (!reader.readChoices(rule))
    return false;
  if (!reader.isAtEnd()) {
    problem = "a ')' without a group";
    return false;
  }
  // With alternatives an anchor would belong to one of them.
  if ((isBegin || isEnd) && isSearch && grammar.rules()[rule].size() > 1) {
    problem = "an anchor beside alternatives; put them into a group";
    return false;
  }
  grammar.appendRule(to, rule);
  if (isSearch && !isEnd)
    appendAnything();
  return true;
}

} // namespace attune::runtime
