//===- PreTokenizer.cpp - Cutting text into words -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The patterns are regular expressions in the files; matching the few that are
// in use by hand is faster than any engine and cannot blow up. Every match
// function returns the length of the match at the start of the text, which is
// never empty: the patterns together cover every character.
//
//===----------------------------------------------------------------------===//

#include "PreTokenizer.h"
#include "attune/Runtime/Utf8.h"

#include <algorithm>

namespace attune::runtime {

#include "UnicodeTables.inc"

//===----------------------------------------------------------------------===//
// CharacterClasses
//===----------------------------------------------------------------------===//

static bool isSpace(uint32_t c) {
  return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

static bool inRanges(const std::vector<std::pair<uint32_t, uint32_t>> &ranges,
                     uint32_t c) {
  auto after = std::upper_bound(
      ranges.begin(), ranges.end(), c,
      [](uint32_t c, const auto &range) { return c < range.first; });
  return after != ranges.begin() && c < std::prev(after)->second;
}

CharacterClasses::CharacterClasses() {
  auto expand = [](const uint16_t *table, size_t count, auto &ranges) {
    uint32_t end = 0;
    for (size_t i = 0; i < count; i += 2) {
      uint32_t start = end + table[i];
      end = start + table[i + 1];
      ranges.emplace_back(start, end);
    }
  };
  expand(letterRanges, sizeof(letterRanges) / sizeof(letterRanges[0]), letters);
  expand(numberRanges, sizeof(numberRanges) / sizeof(numberRanges[0]), numbers);
  for (uint32_t c = 0; c < sizeof(low); ++c)
    low[c] = isSpace(c)             ? Space
             : inRanges(letters, c) ? Letter
             : inRanges(numbers, c) ? Number
                                    : Other;
}

CharacterClasses::Class CharacterClasses::classify(uint32_t c) const {
  if (c < sizeof(low))
    return low[c];
  return inRanges(letters, c)   ? Letter
         : inRanges(numbers, c) ? Number
         : isSpace(c)           ? Space
                                : Other;
}

//===----------------------------------------------------------------------===//
// Matching
//===----------------------------------------------------------------------===//

namespace {
struct Character {
  uint32_t code = 0;
  unsigned bytes = 0; ///< 0 at the end of the text
  CharacterClasses::Class kind = CharacterClasses::Other;
};
} // namespace

static Character characterAt(std::string_view text, size_t at,
                             const CharacterClasses &classes) {
  Character c;
  if (at >= text.size())
    return c;
  c.bytes = decodeUtf8(text.substr(at), c.code);
  if (!c.bytes) { // a stray byte is a character of no class
    c.code = 0xFFFD;
    c.bytes = 1;
    return c;
  }
  c.kind = classes.classify(c.code);
  return c;
}

/// Where the run of characters of one class that begins at `from` ends.
size_t PreTokenizer::runOf(std::string_view text, size_t from,
                           int wanted) const {
  for (;;) {
    Character c = characterAt(text, from, classes);
    if (!c.bytes || c.kind != wanted)
      return from;
    from += c.bytes;
  }
}

/// \s+(?!\S)|\s+ : all of the space at the end of the text, else all but the
/// last, which belongs to the word after it, unless it is the only one.
size_t PreTokenizer::matchSpace(std::string_view text) const {
  size_t at = 0, last = 0;
  for (;;) {
    Character c = characterAt(text, at, classes);
    if (!c.bytes)
      return at;
    if (c.kind != CharacterClasses::Space)
      return last ? last : at;
    last = at;
    at += c.bytes;
  }
}

/// 's|'t|'re|'ve|'m|'ll|'d, in lower case or in any. The long s folds to s.
static size_t matchContraction(std::string_view text, bool anyCase) {
  if (text.empty() || text[0] != '\'')
    return 0;
  auto lower = [&](size_t i) -> char {
    if (i >= text.size())
      return '\0';
    char c = text[i];
    return anyCase && c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  };
  char a = lower(1), b = lower(2);
  if (a == 's' || a == 't' || a == 'm' || a == 'd')
    return 2;
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') ||
      (a == 'l' && b == 'l'))
    return 3;
  if (anyCase && text.substr(1, 2) == "\xC5\xBF")
    return 3;
  return 0;
}

/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
size_t PreTokenizer::matchGpt2(std::string_view text) const {
  if (size_t n = matchContraction(text, false))
    return n;
  size_t at = text[0] == ' ' ? 1 : 0;
  Character c = characterAt(text, at, classes);
  if (!c.bytes || c.kind == CharacterClasses::Space)
    return matchSpace(text);
  return runOf(text, at, c.kind);
}

/// (?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|
///  ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+
size_t PreTokenizer::matchLlama3(std::string_view text, unsigned digits) const {
  if (size_t n = matchContraction(text, true))
    return n;
  Character first = characterAt(text, 0, classes);
  Character second = characterAt(text, first.bytes, classes);
  bool newline = first.code == '\r' || first.code == '\n';
  if (first.kind == CharacterClasses::Letter)
    return runOf(text, 0, CharacterClasses::Letter);
  if (!newline && first.kind != CharacterClasses::Number && second.bytes &&
      second.kind == CharacterClasses::Letter)
    return runOf(text, first.bytes, CharacterClasses::Letter);
  if (first.kind == CharacterClasses::Number) {
    size_t at = 0;
    for (unsigned i = 0; i < digits; ++i) {
      Character c = characterAt(text, at, classes);
      if (!c.bytes || c.kind != CharacterClasses::Number)
        break;
      at += c.bytes;
    }
    return at;
  }
  size_t at = text[0] == ' ' ? 1 : 0;
  Character c = at ? second : first;
  if (c.bytes && c.kind == CharacterClasses::Other) {
    at = runOf(text, at, CharacterClasses::Other);
    while (at < text.size() && (text[at] == '\r' || text[at] == '\n'))
      ++at;
    return at;
  }
  // Space that holds line ends is cut after the last of them.
  size_t end = runOf(text, 0, CharacterClasses::Space);
  size_t lineEnd = text.substr(0, end).find_last_of("\r\n");
  if (lineEnd != std::string_view::npos)
    return lineEnd + 1;
  return matchSpace(text);
}

/// Each digit alone, what is between digits together.
size_t PreTokenizer::matchDigits(std::string_view text) const {
  Character c = characterAt(text, 0, classes);
  if (c.kind == CharacterClasses::Number)
    return c.bytes;
  size_t at = 0;
  do {
    at += c.bytes;
    c = characterAt(text, at, classes);
  } while (c.bytes && c.kind != CharacterClasses::Number);
  return at;
}

void PreTokenizer::split(std::string_view text,
                         std::vector<size_t> &words) const {
  words.clear();
  if (text.empty())
    return;
  words.push_back(text.size());
  std::vector<size_t> pieces;
  for (const Step &step : steps) {
    pieces.swap(words);
    words.clear();
    size_t begin = 0;
    for (size_t end : pieces) {
      while (begin < end) {
        std::string_view rest = text.substr(begin, end - begin);
        begin += step.kind == Step::Gpt2     ? matchGpt2(rest)
                 : step.kind == Step::Llama3 ? matchLlama3(rest, step.digits)
                                             : matchDigits(rest);
        words.push_back(begin);
      }
    }
  }
}

//===----------------------------------------------------------------------===//
// Loading
//===----------------------------------------------------------------------===//

static bool flag(const JsonValue &json, const char *key, bool otherwise) {
  const JsonValue *value = json.find(key);
  return value && value->isBool() ? value->boolean : otherwise;
}

bool PreTokenizer::loadSplit(const JsonValue &json, Error &error) {
  const JsonValue *pattern = json.find("pattern");
  const JsonValue *regex = pattern ? pattern->find("Regex") : nullptr;
  const JsonValue *behavior = json.find("behavior");
  if (!regex || !regex->isString() || !behavior || !behavior->isString())
    return error.badInput("tokenizer: pre-tokenizer 'Split' without a regular "
                          "expression and a behavior is not supported");
  bool isolated =
      behavior->string == "Isolated" && !flag(json, "invert", false);
  bool inverse = behavior->string == "Removed" && flag(json, "invert", false);
  if (!isolated && !inverse)
    return error.badInput("tokenizer: behavior '" + behavior->string +
                          "' of pre-tokenizer 'Split' is not supported");
  struct Known {
    const char *regex;
    Step step;
  };
  static constexpr Known known[] = {
      {"'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+"
       "|\\s+(?!\\S)|\\s+",
       {Step::Gpt2, 1}},
      {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}"
       "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
       {Step::Llama3, 3}},
      {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+"
       "|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]"
       "|\\s+(?!\\S)|\\s+",
       {Step::Llama3, 3}},
      {"'(?i:[sdmt]|ll|ve|re)|[^\\r\\n\\p{L}\\p{N}]?+\\p{L}+|\\p{N}{1,3}"
       "| ?[^\\s\\p{L}\\p{N}]++[\\r\\n]*|\\s*[\\r\\n]|\\s+(?!\\S)|\\s+",
       {Step::Llama3, 3}},
      {"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}"
       "| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+",
       {Step::Llama3, 1}},
  };
  for (const Known &entry : known)
    if (regex->string == entry.regex) {
      steps.push_back(entry.step);
      return true;
    }
  return error.badInput("tokenizer: the pattern of pre-tokenizer 'Split' is "
                        "neither GPT-2's nor Llama 3's nor a relative of "
                        "theirs: " +
                        regex->string.substr(0, 200));
}

bool PreTokenizer::loadStep(const JsonValue &json, Error &error) {
  const JsonValue *type = json.find("type");
  if (!type || !type->isString())
    return error.badInput("tokenizer: a pre-tokenizer without a 'type'");
  if (type->string == "Sequence") {
    const JsonValue *list = json.find("pretokenizers");
    if (!list || !list->isArray())
      return error.badInput("tokenizer: pre-tokenizer 'Sequence' without "
                            "'pretokenizers'");
    for (const JsonValue &item : list->items)
      if (!loadStep(item, error))
        return false;
    return true;
  }
  if (type->string == "ByteLevel") {
    prefixSpace = prefixSpace || flag(json, "add_prefix_space", true);
    if (flag(json, "use_regex", true))
      steps.push_back({Step::Gpt2, 1});
    return true;
  }
  if (type->string == "Split")
    return loadSplit(json, error);
  if (type->string == "Digits" && flag(json, "individual_digits", false)) {
    steps.push_back({Step::Digits, 1});
    return true;
  }
  return error.badInput("tokenizer: pre-tokenizer '" + type->string +
                        "' is not supported; ByteLevel, Split, Digits (each "
                        "alone) and Sequence are");
}

bool PreTokenizer::load(const JsonValue *json, Error &error) {
  if (!json || json->isNull())
    return true;
  return loadStep(*json, error);
}

} // namespace attune::runtime
