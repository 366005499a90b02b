//===- GrammarText.cpp - Grammars as people write them --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrammarText.h"

#include "../TextHash.h"
#include "Pattern.h"

#include <algorithm>

namespace attune::runtime {

namespace {
class GrammarReader {
public:
  GrammarReader(std::string_view text, Grammar &grammar, std::string &problem)
      : text(text), grammar(grammar), problem(problem) {}
  bool read();

private:
  struct Name {
    std::string text;
    Grammar::Rule rule;
    size_t used; ///< where, for messages
    bool isDefined;
  };
  static constexpr unsigned mostDepth = 200;

  bool fail(std::string what, size_t where) {
    size_t line = 1 + std::count(text.begin(), text.begin() + where, '\n');
    problem = "line " + std::to_string(line) + ": " + std::move(what);
    return false;
  }
  void skipSpace(bool lines);
  std::string_view readName();
  Name &nameOf(std::string_view name, size_t where);
  bool beginsRule();
  bool readChoices(Grammar::Rule rule, bool inGroup);
  bool readItem(Grammar::Sequence &to, bool inGroup);
  bool readText(Grammar::Sequence &to);
  bool readRepeat(int64_t &least, int64_t &most, bool &repeats);

  std::string_view text;
  Grammar &grammar;
  std::string &problem;
  size_t at = 0;
  unsigned depth = 0;
  std::vector<Name> names;
  HashIndex index; ///< of names
};
} // namespace

void GrammarReader::skipSpace(bool lines) {
  while (at < text.size()) {
    char c = text[at];
    if (c == '#')
      at = std::min(text.find('\n', at), text.size());
    else if (c == ' ' || c == '\t' || (lines && (c == '\n' || c == '\r')))
      ++at;
    else
      return;
  }
}

static bool isNameChar(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '-' || c == '_';
}

std::string_view GrammarReader::readName() {
  size_t begin = at;
  while (at < text.size() && isNameChar(text[at]))
    ++at;
  return text.substr(begin, at - begin);
}

GrammarReader::Name &GrammarReader::nameOf(std::string_view name,
                                           size_t where) {
  TextHash hash;
  hash.add(name);
  uint32_t number = index.find(hash.value, names.size(), [&](uint32_t known) {
    return names[known].text == name;
  });
  if (number == names.size())
    names.push_back({std::string(name), grammar.addRule(), where, false});
  return names[number];
}

/// Whether "NAME ::=" comes next, which ends the rule before.
bool GrammarReader::beginsRule() {
  size_t before = at;
  bool begins = !readName().empty();
  skipSpace(/*lines=*/false);
  begins = begins && text.substr(at, 3) == "::=";
  at = before;
  return begins;
}

bool GrammarReader::read() {
  skipSpace(/*lines=*/true);
  while (at < text.size()) {
    size_t where = at;
    if (!beginsRule())
      return fail("expected NAME ::= ...", at);
    Name &name = nameOf(readName(), where);
    if (name.isDefined)
      return fail("the rule '" + name.text + "' is there twice", where);
    name.isDefined = true;
    Grammar::Rule rule = name.rule;
    skipSpace(/*lines=*/false);
    at += 3;
    skipSpace(/*lines=*/true);
    if (!readChoices(rule, /*inGroup=*/false))
      return false;
    skipSpace(/*lines=*/true);
  }
  const Name *root = nullptr;
  for (const Name &name : names) {
    if (!name.isDefined)
      return fail("there is no rule '" + name.text + "'", name.used);
    if (name.text == "root")
      root = &name;
  }
  if (!root)
    return fail("there is no rule 'root'", 0);
  grammar.root = root->rule;
  int64_t left = grammar.findLeftRecursion();
  if (left < 0)
    return true;
  for (const Name &name : names)
    if (name.rule == static_cast<Grammar::Rule>(left))
      return fail("the rule '" + name.text +
                      "' begins with itself; write repetitions with * or +",
                  name.used);
  return fail("a group begins with the rule it stands in", 0);
}

bool GrammarReader::readChoices(Grammar::Rule rule, bool inGroup) {
  if (++depth > mostDepth)
    return fail("groups are nested too deeply", at);
  for (;;) {
    Grammar::Sequence sequence;
    for (;;) {
      skipSpace(inGroup);
      if (at == text.size() || text[at] == '|' || text[at] == ')')
        break;
      if (!inGroup && (text[at] == '\n' || text[at] == '\r')) {
        // A rule goes on in the next line if that begins no other one.
        skipSpace(/*lines=*/true);
        if (at == text.size() || text[at] == '|' || beginsRule())
          break;
        continue;
      }
      if (!readItem(sequence, inGroup))
        return false;
      if (grammar.isTooLarge())
        return fail("the grammar is too large", at);
    }
    grammar.addAlternative(rule, std::move(sequence));
    if (grammar.isTooLarge())
      return fail("the grammar is too large", at);
    if (at == text.size() || text[at] != '|')
      break;
    ++at;
    skipSpace(/*lines=*/true);
  }
  --depth;
  return true;
}

bool GrammarReader::readText(Grammar::Sequence &to) {
  size_t begin = at++;
  while (at < text.size() && text[at] != '"' && !grammar.isTooLarge()) {
    if (text[at] != '\\') {
      grammar.appendText(to, text.substr(at++, 1));
      continue;
    }
    // An escape is one of a class with nothing else in it.
    size_t length = 2;
    char kind = at + 1 < text.size() ? text[at + 1] : ' ';
    length += kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    std::string one = std::string(text.substr(at, length)) + "]", why;
    std::vector<CodeRange> ranges;
    size_t place = 0;
    if (!readClass(one, place, ranges, why) || place != one.size() ||
        ranges.size() != 1 || ranges[0].first != ranges[0].last)
      return fail("a text has a wrong escape" + (why.empty() ? "" : ": " + why),
                  at);
    grammar.appendRanges(to, ranges);
    at += length;
  }
  if (grammar.isTooLarge())
    return fail("the grammar is too large", at);
  if (at == text.size())
    return fail("a text does not end", begin);
  ++at;
  return true;
}

bool GrammarReader::readRepeat(int64_t &least, int64_t &most, bool &repeats) {
  char c = at < text.size() ? text[at] : ' ';
  repeats = c == '*' || c == '+' || c == '?' || c == '{';
  if (!repeats)
    return true;
  size_t begin = at++;
  least = c == '+' ? 1 : 0;
  most = c == '?' ? 1 : -1;
  if (c != '{')
    return true;
  auto readNumber = [&](int64_t &value) {
    size_t from = at;
    for (value = 0; at < text.size() && text[at] >= '0' && text[at] <= '9';
         ++at)
      value = std::min<int64_t>(value * 10 + (text[at] - '0'), 1000000);
    return at > from;
  };
  bool good = readNumber(least);
  most = least;
  if (good && at < text.size() && text[at] == ',') {
    ++at;
    if (!readNumber(most))
      most = -1;
  }
  good = good && at < text.size() && text[at] == '}' &&
         (most < 0 || most >= least);
  ++at;
  return good || fail("expected {m}, {m,} or {m,n}", begin);
}

bool GrammarReader::readItem(Grammar::Sequence &to, bool inGroup) {
  size_t begin = at;
  Grammar::Sequence item;
  char c = text[at];
  if (c == '"') {
    if (!readText(item))
      return false;
  } else if (c == '[') {
    std::vector<CodeRange> ranges;
    std::string why;
    if (!readClass(text, ++at, ranges, why))
      return fail(why, begin);
    grammar.appendRanges(item, ranges);
  } else if (c == '.') {
    ++at;
    grammar.appendRanges(item, {{0, 0x10FFFF}});
  } else if (c == '(') {
    ++at;
    Grammar::Rule group = grammar.addRule();
    if (!readChoices(group, /*inGroup=*/true))
      return false;
    if (at == text.size())
      return fail("a group does not end", begin);
    ++at;
    grammar.appendRule(item, group);
  } else if (std::string_view name = readName(); !name.empty()) {
    grammar.appendRule(item, nameOf(name, begin).rule);
  } else {
    return fail("expected a text in quotes, a class, a group or a rule", at);
  }
  int64_t least, most;
  bool repeats;
  if (!readRepeat(least, most, repeats))
    return false;
  if (!repeats) {
    to.insert(to.end(), item.begin(), item.end());
    return true;
  }
  Grammar::Rule rule = grammar.addRule();
  grammar.addAlternative(rule, std::move(item));
  return grammar.appendRepeat(to, rule, least, most) ||
         fail("the grammar is too large", begin);
}

bool parseGrammarText(std::string_view text, Grammar &grammar,
                      std::string &problem) {
  problem.clear();
  return GrammarReader(text, grammar, problem).read();
}

} // namespace attune::runtime
