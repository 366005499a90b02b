//===- Normalization.cpp - Normal forms and grapheme clusters -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Unicode Standard Annexes 15 (normal forms) and 29 (clusters).
//
//===----------------------------------------------------------------------===//

#include "Unicode.h"

#include <algorithm>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Normal forms
//===----------------------------------------------------------------------===//

/// Hangul syllables are computed from their parts.
static constexpr uint32_t syllables = 0xAC00, leads = 0x1100, vowels = 0x1161,
                          tails = 0x11A7;
static constexpr uint32_t numLeads = 19, numVowels = 21, numTails = 28;
static constexpr uint32_t numSyllables = numLeads * numVowels * numTails;

const Unicode::Decomposition *Unicode::decompositionOf(uint32_t c) const {
  auto found = std::lower_bound(decompositions.begin(), decompositions.end(), c,
                                [](const Decomposition &entry, uint32_t c) {
                                  return entry.character < c;
                                });
  return found != decompositions.end() && found->character == c ? &*found
                                                                : nullptr;
}

void Unicode::decompose(uint32_t c, bool compatible,
                        std::vector<uint32_t> &out) const {
  if (c < 0xA0) {
    out.push_back(c);
    return;
  }
  if (c - syllables < numSyllables) {
    uint32_t index = c - syllables, tail = index % numTails;
    out.push_back(leads + index / (numVowels * numTails));
    out.push_back(vowels + index / numTails % numVowels);
    if (tail)
      out.push_back(tails + tail);
    return;
  }
  const Decomposition *entry = decompositionOf(c);
  if (!entry || (entry->compatible && !compatible)) {
    out.push_back(c);
    return;
  }
  for (uint32_t i = 0; i < entry->length; ++i)
    decompose(decomposed[entry->begin + i], compatible, out);
}

uint32_t Unicode::compose(uint32_t first, uint32_t second) const {
  if (first - leads < numLeads && second - vowels < numVowels)
    return syllables +
           ((first - leads) * numVowels + second - vowels) * numTails;
  if (first - syllables < numSyllables && (first - syllables) % numTails == 0 &&
      second > tails && second < tails + numTails)
    return first + second - tails;
  uint64_t pair = uint64_t(first) << 32 | second;
  auto found = std::lower_bound(compositions.begin(), compositions.end(), pair,
                                [](const Composition &entry, uint64_t pair) {
                                  return entry.pair < pair;
                                });
  return found != compositions.end() && found->pair == pair ? found->result : 0;
}

/// Marks between two starters stand in the order of their classes; equal ones
/// stay as they are.
void Unicode::reorder(std::vector<FormCharacter> &characters) const {
  std::vector<std::pair<uint64_t, FormCharacter>> marks;
  for (size_t i = 0; i < characters.size();) {
    size_t begin = i;
    bool sorted = true;
    unsigned last = 0;
    marks.clear();
    for (; i < characters.size(); ++i) {
      unsigned value = combiningClass(characters[i].character);
      if (!value)
        break;
      sorted = sorted && value >= last;
      last = value;
      marks.push_back({uint64_t(value) << 32 | (i - begin), characters[i]});
    }
    if (!sorted) {
      std::sort(marks.begin(), marks.end(),
                [](const auto &a, const auto &b) { return a.first < b.first; });
      for (size_t j = 0; j < marks.size(); ++j)
        characters[begin + j] = marks[j].second;
    }
    i += i < characters.size();
  }
}

/// A mark joins the last starter unless one of its class or higher, or another
/// starter, stands between.
void Unicode::joinPairs(std::vector<FormCharacter> &characters) const {
  size_t kept = 0, starter = SIZE_MAX;
  int last = -1;
  for (FormCharacter c : characters) {
    int value = combiningClass(c.character);
    if (starter != SIZE_MAX && last < value + (last == -1)) {
      FormCharacter &first = characters[starter];
      if (uint32_t joined = compose(first.character, c.character)) {
        first = {joined, first.taken + c.taken};
        continue;
      }
    }
    if (value == 0)
      starter = kept;
    last = value == 0 ? -1 : value;
    characters[kept++] = c;
  }
  characters.resize(kept);
}

/// Bytes of the characters that come from the first `head` bytes of `text`.
/// Characters take those of the text in turn, as many as `taken` says, so a
/// mark that another one overtook stands for that one's place.
size_t Unicode::headOf(const std::vector<FormCharacter> &characters,
                       std::string_view text, size_t head) {
  size_t at = 0, size = 0;
  std::string bytes;
  for (FormCharacter c : characters) {
    // A character that takes nothing stands where the one before it stands.
    if ((c.taken ? at : at - (at > 0)) >= head)
      break;
    for (uint32_t i = 0; i < c.taken; ++i) {
      uint32_t ignored;
      at += decodeCharacter(text, at, ignored);
    }
    bytes.clear();
    appendCharacter(bytes, c.character);
    size += bytes.size();
  }
  return size;
}

std::string Unicode::normalize(std::string_view text, bool compatible,
                               bool composed, size_t *head) const {
  auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  std::string out;
  out.reserve(text.size());
  std::vector<FormCharacter> characters;
  std::vector<uint32_t> parts;
  size_t newHead = 0;
  for (size_t at = 0; at < text.size();) {
    // ASCII changes only where something else follows it.
    size_t end = at;
    while (end < text.size() && ascii(text[end]))
      ++end;
    size_t sure = end < text.size() && end > at ? end - 1 : end;
    out.append(text.data() + at, sure - at);
    if (head && at < *head)
      newHead += std::min(sure, *head) - at;
    at = sure;
    characters.clear();
    while (at < text.size()) {
      uint32_t c;
      unsigned length = decodeCharacter(text, at, c);
      if (c < 0x80 && !characters.empty())
        break;
      parts.clear();
      decompose(c, compatible, parts);
      for (size_t i = 0; i < parts.size(); ++i)
        characters.push_back({parts[i], i == 0 ? 1U : 0U});
      at += length;
    }
    reorder(characters);
    if (composed)
      joinPairs(characters);
    if (head && sure < *head)
      newHead += headOf(characters, text.substr(sure), *head - sure);
    for (FormCharacter c : characters)
      appendCharacter(out, c.character);
  }
  if (head)
    *head = newHead;
  return out;
}

//===----------------------------------------------------------------------===//
// Grapheme clusters
//===----------------------------------------------------------------------===//

namespace {
enum Break : unsigned {
  Other,
  Control,
  Extend,
  Joiner,
  Regional,
  Prepend,
  Spacing,
  Lead,
  Vowel,
  Tail,
  Syllable,
  SyllableTail,
  Pictograph
};
} // namespace

unsigned Unicode::graphemeBreak(uint32_t c) const {
  if (c >= 0x20 && c < 0x7F)
    return Other;
  if (c == 0x200D)
    return Joiner;
  if (contains(extends, c))
    return Extend;
  if (contains(prepends, c))
    return Prepend;
  if (contains(spacingMarks, c))
    return Spacing;
  if (c >= 0x1F1E6 && c <= 0x1F1FF)
    return Regional;
  if ((c >= 0x1100 && c <= 0x115F) || (c >= 0xA960 && c <= 0xA97C))
    return Lead;
  if ((c >= 0x1160 && c <= 0x11A7) || (c >= 0xD7B0 && c <= 0xD7C6))
    return Vowel;
  if ((c >= 0x11A8 && c <= 0x11FF) || (c >= 0xD7CB && c <= 0xD7FB))
    return Tail;
  if (c - syllables < numSyllables)
    return (c - syllables) % numTails ? SyllableTail : Syllable;
  if (contains(pictographs, c))
    return Pictograph;
  uint32_t bits = categoryBit(Category::Cc) | categoryBit(Category::Cf) |
                  categoryBit(Category::Zl) | categoryBit(Category::Zp);
  if (isIn(c, bits) || (category(c) == Category::Cn &&
                        (c == 0x2065 || (c >= 0xFFF0 && c < 0xFFF9) ||
                         (c >= 0xE0000 && c < 0xE1000))))
    return Control;
  return Other;
}

size_t Unicode::graphemeEnd(std::string_view text, size_t at) const {
  uint32_t c;
  at += decodeCharacter(text, at, c);
  unsigned last = graphemeBreak(c);
  bool crlf = c == '\r';
  // A pictograph, then what extends it, then a joiner: one more may follow.
  bool joins = last == Pictograph, joined = false;
  unsigned flags = last == Regional;
  while (at < text.size()) {
    unsigned length = decodeCharacter(text, at, c);
    unsigned kind = graphemeBreak(c);
    bool together = false;
    if (last == Control)
      together = crlf && c == '\n';
    else if (kind == Extend || kind == Joiner || kind == Spacing)
      together = true;
    else if (kind == Control)
      together = false;
    else if (last == Prepend)
      together = true;
    else if (last == Lead)
      together = kind == Lead || kind == Vowel || kind == Syllable ||
                 kind == SyllableTail;
    else if (last == Vowel || last == Syllable)
      together = kind == Vowel || kind == Tail;
    else if (last == Tail || last == SyllableTail)
      together = kind == Tail;
    else if (last == Regional && kind == Regional)
      together = flags % 2 == 1;
    else if (joined && kind == Pictograph)
      together = true;
    if (!together)
      break;
    at += length;
    crlf = false;
    flags = kind == Regional ? flags + 1 : 0;
    joined = joins && kind == Joiner;
    joins = kind == Pictograph || (joins && (kind == Extend || kind == Joiner));
    if (last == Control)
      break;
    last = kind;
  }
  return at;
}

} // namespace attune::runtime
