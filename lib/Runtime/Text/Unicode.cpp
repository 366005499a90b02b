//===- Unicode.cpp - What the tokenizer knows of characters ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Unicode.h"

#include <algorithm>

namespace attune::runtime {

#include "UnicodeTables.inc"

//===----------------------------------------------------------------------===//
// Reading the tables
//===----------------------------------------------------------------------===//

int base64Digit(char c) {
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  return c == '+' ? 62 : c == '/' ? 63 : -1;
}

void appendBase64(std::string &out, std::string_view bytes) {
  static const char digits[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j)
      word = word << 8 |
             (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0u);
    for (size_t j = 0; j < 4; ++j)
      out += i + j > bytes.size() ? '=' : digits[word >> (18 - 6 * j) & 63];
  }
}

bool decodeBase64(std::string_view text, std::string &bytes) {
  bytes.clear();
  uint32_t bits = 0;
  unsigned held = 0;
  size_t i = 0;
  for (; i < text.size() && text[i] != '='; ++i) {
    if (text[i] == '\n' || text[i] == '\r' || text[i] == ' ')
      continue;
    int digit = base64Digit(text[i]);
    if (digit < 0)
      return false;
    bits = bits << 6 | static_cast<uint32_t>(digit);
    held += 6;
    if (held >= 8) {
      held -= 8;
      bytes += static_cast<char>(bits >> held);
    }
  }
  return text.find_first_not_of("=\r\n ", i) == std::string_view::npos;
}

namespace {
/// The numbers of a table, one after the other.
class Numbers {
public:
  explicit Numbers(std::string_view table) { decodeBase64(table, bytes); }
  bool more() const { return at < bytes.size(); }
  uint32_t next() {
    uint32_t value = 0;
    for (unsigned shift = 0; at < bytes.size(); shift += 7) {
      unsigned char byte = static_cast<unsigned char>(bytes[at++]);
      value |= uint32_t(byte & 127) << shift;
      if (byte < 128)
        break;
    }
    return value;
  }
  int32_t nextSigned() {
    uint32_t value = next();
    int32_t half = static_cast<int32_t>(value >> 1);
    return value & 1 ? -half - 1 : half;
  }

private:
  std::string bytes;
  size_t at = 0;
};
} // namespace

template <typename Run>
static void readRuns(std::string_view table, std::vector<Run> &runs) {
  Numbers numbers(table);
  for (uint32_t last = 0; numbers.more();) {
    last += numbers.next();
    runs.push_back({last, numbers.next()});
  }
}

template <typename CaseRun>
static void readCaseRuns(std::string_view table, std::vector<CaseRun> &runs) {
  Numbers numbers(table);
  for (uint32_t last = 0; numbers.more();) {
    uint32_t first = last + numbers.next(), length = numbers.next();
    uint32_t step = 1 + (length & 1);
    last = first + (length / 2 - 1) * step;
    runs.push_back({first, last, step, numbers.nextSigned()});
  }
}

static void readEdges(std::string_view table, CharacterRanges &ranges) {
  Numbers numbers(table);
  for (uint32_t last = 0; numbers.more();) {
    uint32_t begin = last + numbers.next();
    last = begin + numbers.next();
    ranges.push_back({begin, last});
  }
}

Unicode::Unicode() {
  loadCategories();
  readRuns(scriptRuns, scripts);
  readRuns(combiningRuns, combining);
  readCaseRuns(lowerCaseRuns, lower);
  readCaseRuns(caseFoldRuns, folds);
  readEdges(wordEdges, words);
  // The table has U+200C and U+200D, which join words; patterns' \w has not.
  words.erase(std::remove(words.begin(), words.end(),
                          std::pair<uint32_t, uint32_t>(0x200C, 0x200E)),
              words.end());
  readEdges(extendEdges, extends);
  readEdges(spacingMarkEdges, spacingMarks);
  readEdges(prependEdges, prepends);
  readEdges(pictographicEdges, pictographs);
  loadDecompositions();
}

/// Pages of 256 characters; those of one category alone are shared.
void Unicode::loadCategories() {
  std::vector<Run> runs;
  readRuns(categoryRuns, runs);
  runs.push_back({0x110000, 0});
  uint32_t uniform[numCategories];
  std::fill(std::begin(uniform), std::end(uniform), UINT32_MAX);
  size_t run = 0;
  for (uint32_t page = 0; page < 0x1100; ++page) {
    uint32_t begin = page << 8, end = begin + 256;
    while (runs[run + 1].start <= begin)
      ++run;
    uint8_t value = static_cast<uint8_t>(runs[run].value);
    bool same = runs[run + 1].start >= end;
    if (same && uniform[value] != UINT32_MAX) {
      pages[page] = uniform[value];
      continue;
    }
    pages[page] = static_cast<uint32_t>(categories.size());
    if (same)
      uniform[value] = pages[page];
    for (uint32_t c = begin; c < end; ++c) {
      if (runs[run + 1].start <= c)
        ++run;
      categories.push_back(static_cast<uint8_t>(runs[run].value));
    }
  }
}

void Unicode::loadDecompositions() {
  Numbers numbers(decompositionList);
  uint32_t character = 0, part = 0;
  while (numbers.more()) {
    character += numbers.next();
    uint32_t head = numbers.next();
    decompositions.push_back(
        {character, static_cast<uint32_t>(decomposed.size()),
         static_cast<uint8_t>(head >> 1), static_cast<uint8_t>(head & 1)});
    for (uint32_t i = 0; i < head >> 1; ++i) {
      part += static_cast<uint32_t>(numbers.nextSigned());
      decomposed.push_back(part);
    }
  }
  Numbers excluded(exclusionList);
  uint32_t apart = excluded.next();
  for (const Decomposition &entry : decompositions) {
    if (entry.compatible || entry.length != 2)
      continue;
    if (entry.character == apart) {
      apart += excluded.more() ? excluded.next() : 0x110000;
      continue;
    }
    compositions.push_back(
        {uint64_t(decomposed[entry.begin]) << 32 | decomposed[entry.begin + 1],
         entry.character});
  }
  std::sort(compositions.begin(), compositions.end(),
            [](const Composition &a, const Composition &b) {
              return a.pair < b.pair;
            });
}

//===----------------------------------------------------------------------===//
// Properties
//===----------------------------------------------------------------------===//

bool contains(const CharacterRanges &ranges, uint32_t c) {
  auto after = std::upper_bound(
      ranges.begin(), ranges.end(), c,
      [](uint32_t value, const auto &range) { return value < range.first; });
  return after != ranges.begin() && c < std::prev(after)->second;
}

size_t previousCharacter(std::string_view text, size_t at) {
  for (size_t back = 1; back <= 4 && back <= at; ++back) {
    uint32_t c;
    if ((static_cast<unsigned char>(text[at - back]) & 0xC0) == 0x80)
      continue;
    return decodeUtf8(text.substr(at - back, back), c) == back ? at - back
                                                               : at - 1;
  }
  return at - 1;
}

/// The value of the run that `c` lies in.
template <typename Run>
static uint32_t valueAt(const std::vector<Run> &runs, uint32_t c) {
  auto after = std::upper_bound(
      runs.begin(), runs.end(), c,
      [](uint32_t value, const Run &run) { return value < run.start; });
  return after == runs.begin() ? 0 : std::prev(after)->value;
}

uint8_t Unicode::combiningClass(uint32_t c) const {
  return c < 0x300 || c >= 0x110000
             ? uint8_t(0)
             : static_cast<uint8_t>(valueAt(combining, c));
}

uint8_t Unicode::script(uint32_t c) const {
  return c >= 0x110000 ? uint8_t(0) : static_cast<uint8_t>(valueAt(scripts, c));
}

const char *Unicode::scriptName(unsigned number) {
  return number >= 1 && number <= std::size(scriptNames)
             ? scriptNames[number - 1]
             : nullptr;
}

bool Unicode::isPunctuation(uint32_t c) const {
  if (c < 0x80)
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') ||
           (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
  return isIn(c, punctuationCategories);
}

/// Names are compared as Unicode asks: without case, spaces, '_' and '-'.
static std::string looseName(std::string_view name) {
  std::string out;
  for (char c : name)
    if (c != '_' && c != '-' && c != ' ')
      out += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return out;
}

static uint32_t categoriesNamed(const std::string &name) {
  static constexpr const char *spelled[] = {
      "lu", "ll", "lt", "lm", "lo", "mn", "mc", "me", "nd", "nl",
      "no", "pc", "pd", "ps", "pe", "pi", "pf", "po", "sm", "sc",
      "sk", "so", "zs", "zl", "zp", "cc", "cf", "cs", "co", "cn"};
  static constexpr struct {
    const char *name;
    uint32_t bits;
  } groups[] = {
      {"l", letterCategories},
      {"letter", letterCategories},
      {"m", markCategories},
      {"mark", markCategories},
      {"n", numberCategories},
      {"number", numberCategories},
      {"p", punctuationCategories},
      {"punctuation", punctuationCategories},
      {"punct", punctuationCategories},
      {"s", categoryBits(Category::Sm, Category::So)},
      {"symbol", categoryBits(Category::Sm, Category::So)},
      {"z", categoryBits(Category::Zs, Category::Zp)},
      {"separator", categoryBits(Category::Zs, Category::Zp)},
      {"c", categoryBits(Category::Cc, Category::Cn)},
      {"other", categoryBits(Category::Cc, Category::Cn)},
      {"l&", categoryBits(Category::Lu, Category::Lt)},
      {"lc", categoryBits(Category::Lu, Category::Lt)},
      {"digit", categoryBit(Category::Nd)},
      {"upper", categoryBit(Category::Lu)},
      {"uppercaseletter", categoryBit(Category::Lu)},
      {"lower", categoryBit(Category::Ll)},
      {"lowercaseletter", categoryBit(Category::Ll)},
      {"cntrl", categoryBit(Category::Cc)},
      {"any", (categoryBit(Category::Cn) << 1) - 1},
  };
  for (const auto &group : groups)
    if (name == group.name)
      return group.bits;
  for (unsigned i = 0; i < numCategories; ++i)
    if (name == spelled[i])
      return 1u << i;
  return 0;
}

bool Unicode::find(std::string_view given, CharacterRanges &ranges) const {
  std::string name = looseName(given);
  size_t equals = name.find('=');
  if (equals != std::string::npos)
    name = name.substr(equals + 1);
  ranges.clear();
  auto add = [&](uint32_t begin, uint32_t end) {
    if (!ranges.empty() && ranges.back().second == begin)
      ranges.back().second = end;
    else
      ranges.push_back({begin, end});
  };
  if (name == "space" || name == "whitespace") {
    for (uint32_t c = 0; c <= 0x3000; ++c)
      if (isSpace(c))
        add(c, c + 1);
    return true;
  }
  if (name == "word" || name == "w") {
    ranges = words;
    return true;
  }
  if (name == "alpha" || name == "alphabetic" || name == "alnum") {
    // \w without connectors, and marks that do not join.
    uint32_t left = categoryBit(Category::Pc);
    if (name != "alnum")
      left |= categoryBit(Category::Nd);
    for (auto [begin, end] : words)
      for (uint32_t c = begin; c < end; ++c)
        if (!isIn(c, left))
          add(c, c + 1);
    return true;
  }
  if (uint32_t bits = categoriesNamed(name)) {
    // Pages of equal content are one behind the other where a script fills
    // them, or nothing does: what one of a single kind is, the next is, too.
    bool isUniform = false;
    for (uint32_t page = 0; page < 0x1100; ++page) {
      uint32_t begin = page << 8, before = page ? pages[page - 1] : ~0u;
      if (isUniform && pages[page] == before) {
        if (isIn(begin, bits))
          add(begin, begin + 256);
        continue;
      }
      unsigned count = 0;
      for (uint32_t c = begin; c < begin + 256; ++c)
        if (isIn(c, bits)) {
          add(c, c + 1);
          ++count;
        }
      isUniform = count == 0 || count == 256;
    }
    return true;
  }
  for (unsigned number = 1; const char *script = scriptName(number); ++number)
    if (looseName(script) == name) {
      for (size_t i = 0; i < scripts.size(); ++i)
        if (scripts[i].value == number)
          add(scripts[i].start,
              i + 1 < scripts.size() ? scripts[i + 1].start : 0x110000);
      return true;
    }
  return false;
}

//===----------------------------------------------------------------------===//
// Case
//===----------------------------------------------------------------------===//

template <typename CaseRun>
static uint32_t mapCase(const std::vector<CaseRun> &runs, uint32_t c) {
  auto after = std::upper_bound(
      runs.begin(), runs.end(), c,
      [](uint32_t value, const CaseRun &run) { return value < run.first; });
  if (after == runs.begin())
    return c;
  const CaseRun &run = *std::prev(after);
  if (c > run.last || (c - run.first) % run.step)
    return c;
  return c + static_cast<uint32_t>(run.delta);
}

void Unicode::appendLower(std::string &out, uint32_t c) const {
  if (c == 0x130)
    out += "i\xCC\x87"; // the one character with two in lower case
  else
    appendCharacter(out, mapCase(lower, c));
}

uint32_t Unicode::fold(uint32_t c) const { return mapCase(folds, c); }

CharacterRanges Unicode::closeOverCase(const CharacterRanges &ranges) const {
  std::vector<uint32_t> more;
  auto inside = [&](uint32_t c) { return contains(ranges, c); };
  auto addFold = [&](uint32_t folded) {
    bool wanted = inside(folded);
    for (const CaseRun &run : folds) {
      uint32_t c = folded - static_cast<uint32_t>(run.delta);
      if (c >= run.first && c <= run.last && (c - run.first) % run.step == 0)
        wanted = wanted || inside(c);
    }
    if (!wanted)
      return;
    more.push_back(folded);
    for (const CaseRun &run : folds) {
      uint32_t c = folded - static_cast<uint32_t>(run.delta);
      if (c >= run.first && c <= run.last && (c - run.first) % run.step == 0)
        more.push_back(c);
    }
  };
  for (const CaseRun &run : folds)
    for (uint32_t c = run.first; c <= run.last; c += run.step)
      addFold(c + static_cast<uint32_t>(run.delta));
  CharacterRanges all = ranges;
  for (uint32_t c : more)
    all.push_back({c, c + 1});
  std::sort(all.begin(), all.end());
  CharacterRanges out;
  for (auto [begin, end] : all)
    if (!out.empty() && begin <= out.back().second)
      out.back().second = std::max(out.back().second, end);
    else
      out.push_back({begin, end});
  return out;
}

} // namespace attune::runtime
