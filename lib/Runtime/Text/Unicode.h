//===- Unicode.h - What the tokenizer knows of characters -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Properties of Unicode 14 from tables that GenerateUnicodeTables.py writes. A
// text may hold bytes that are not UTF-8; each is then a character of its own,
// a number from malformedByte on, so that it passes through unchanged.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_UNICODE_H
#define ATTUNE_LIB_RUNTIME_TEXT_UNICODE_H

#include "attune/Runtime/Utf8.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// General categories, in the order of the tables.
enum class Category : uint8_t {
  Lu,
  Ll,
  Lt,
  Lm,
  Lo,
  Mn,
  Mc,
  Me,
  Nd,
  Nl,
  No,
  Pc,
  Pd,
  Ps,
  Pe,
  Pi,
  Pf,
  Po,
  Sm,
  Sc,
  Sk,
  So,
  Zs,
  Zl,
  Zp,
  Cc,
  Cf,
  Cs,
  Co,
  Cn
};
static constexpr unsigned numCategories = 30;

constexpr uint32_t categoryBit(Category category) {
  return 1u << static_cast<unsigned>(category);
}
constexpr uint32_t categoryBits(Category first, Category last) {
  return (categoryBit(last) << 1) - categoryBit(first);
}
static constexpr uint32_t letterCategories =
    categoryBits(Category::Lu, Category::Lo);
static constexpr uint32_t markCategories =
    categoryBits(Category::Mn, Category::Me);
static constexpr uint32_t numberCategories =
    categoryBits(Category::Nd, Category::No);
static constexpr uint32_t punctuationCategories =
    categoryBits(Category::Pc, Category::Po);

static constexpr uint32_t malformedByte = 0x110000;

/// The character that starts at `at`, which must be inside the text, and its
/// length in bytes.
inline unsigned decodeCharacter(std::string_view text, size_t at, uint32_t &c) {
  unsigned char first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) {
    c = first;
    return 1;
  }
  if (unsigned n = decodeUtf8(text.substr(at), c))
    return n;
  c = malformedByte + first;
  return 1;
}

/// Where the character that ends before `at` > 0 starts.
size_t previousCharacter(std::string_view text, size_t at);

inline void appendCharacter(std::string &out, uint32_t c) {
  if (c >= malformedByte)
    out += static_cast<char>(c - malformedByte);
  else
    appendUtf8(out, c);
}

/// Half-open ranges of code points, ascending and apart.
using CharacterRanges = std::vector<std::pair<uint32_t, uint32_t>>;
bool contains(const CharacterRanges &ranges, uint32_t c);

class Unicode {
public:
  Unicode();

  Category category(uint32_t c) const {
    if (c >= 0x110000)
      return Category::Cn;
    return static_cast<Category>(categories[pages[c >> 8] + (c & 0xFF)]);
  }
  bool isIn(uint32_t c, uint32_t bits) const {
    return categoryBit(category(c)) & bits;
  }
  /// The property White_Space.
  static bool isSpace(uint32_t c) {
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xA0 ||
           c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
           c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
  }
  /// \w: Alphabetic, marks, decimal digits and connectors.
  bool isWord(uint32_t c) const { return contains(words, c); }
  /// Punctuation as BERT counts it: all of ASCII that is no letter or digit
  /// counts, too.
  bool isPunctuation(uint32_t c) const;
  /// The number of a script in the order of scriptName, or 0.
  uint8_t script(uint32_t c) const;
  /// Null beyond the last.
  static const char *scriptName(unsigned number);

  /// The characters of a category's name (L, Lu, ...), a script's or a
  /// property's as patterns spell them; false if there is none.
  bool find(std::string_view name, CharacterRanges &ranges) const;

  /// Appends the lower case of a character, which may be two characters.
  void appendLower(std::string &out, uint32_t c) const;
  /// What characters that differ in case alone share.
  uint32_t fold(uint32_t c) const;
  /// All characters that fold like one of `ranges`, with these themselves.
  CharacterRanges closeOverCase(const CharacterRanges &ranges) const;

  /// Normal forms C, D, KC, KD. `head`, if given, is a number of bytes at the
  /// start of `text`; it becomes the number of bytes that these are in the
  /// result, as the reference aligns the two.
  std::string normalize(std::string_view text, bool compatible, bool composed,
                        size_t *head = nullptr) const;

  /// Where the extended grapheme cluster that starts at `at` ends.
  size_t graphemeEnd(std::string_view text, size_t at) const;

private:
  struct Run {
    uint32_t start, value;
  };
  struct CaseRun {
    uint32_t first, last, step;
    int32_t delta;
  };
  struct Decomposition {
    uint32_t character, begin;
    uint8_t length, compatible;
  };
  struct Composition {
    uint64_t pair;
    uint32_t result;
  };
  uint32_t pages[0x1100];
  std::vector<uint8_t> categories;
  std::vector<Run> scripts, combining;
  std::vector<CaseRun> lower, folds;
  std::vector<Decomposition> decompositions;
  std::vector<uint32_t> decomposed;
  std::vector<Composition> compositions;
  CharacterRanges words, extends, spacingMarks, prepends, pictographs;

  /// A character of a normal form, and how many characters of the text it
  /// stands for: none if it is a further one of a decomposition.
  struct FormCharacter {
    uint32_t character, taken;
  };
  void loadCategories();
  void loadDecompositions();
  uint8_t combiningClass(uint32_t c) const;
  const Decomposition *decompositionOf(uint32_t c) const;
  void decompose(uint32_t c, bool compatible, std::vector<uint32_t> &out) const;
  uint32_t compose(uint32_t first, uint32_t second) const;
  void reorder(std::vector<FormCharacter> &characters) const;
  void joinPairs(std::vector<FormCharacter> &characters) const;
  static size_t headOf(const std::vector<FormCharacter> &characters,
                       std::string_view text, size_t head);
  unsigned graphemeBreak(uint32_t c) const;
};

/// The value of a digit of base64; -1: it is none.
int base64Digit(char c);
/// Appends bytes in base64 (RFC 4648).
void appendBase64(std::string &out, std::string_view bytes);
/// Decodes base64; false if the text is none. White space is skipped.
bool decodeBase64(std::string_view text, std::string &bytes);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_UNICODE_H
