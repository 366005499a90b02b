//===- PreTokenizer.h - Cutting text into words -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_PRETOKENIZER_H
#define ATTUNE_LIB_RUNTIME_TEXT_PRETOKENIZER_H

#include "Normalizer.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// The splitting that a tokenizer.json's "pre_tokenizer" describes.
class PreTokenizer {
public:
  /// A word: a stretch of the text, never empty.
  struct Piece {
    size_t begin, end;
    /// How many of its bytes come from the first character of the whole text:
    /// more than one word may, as a ligature is written out.
    size_t head;
  };

  explicit PreTokenizer(const Unicode &unicode) : unicode(unicode) {}
  bool load(const JsonValue &json, Error &error);
  /// Whether bytes become the characters of ByteAlphabet here.
  bool isByteLevel() const;

  /// Cuts `text` into words, and changes it on the way where a step says so.
  /// `head` bytes of it come from the first character of the whole text.
  bool split(std::string &text, size_t head, std::vector<Piece> &pieces,
             Error &error) const;

private:
  enum class Behavior : uint8_t {
    Removed,
    Isolated,
    MergedWithPrevious,
    MergedWithNext,
    Contiguous
  };
  enum class Prepend : uint8_t { First, Never, Always };
  struct Step {
    enum Kind : uint8_t {
      Pattern,
      Digits,
      Punctuation,
      Space,     ///< White_Space
      Words,     ///< \w+|[^\w\s]+
      Delimiter, ///< the character `delimiter`
      Scripts,
      FixedLength,
      ByteLevel,
      Metaspace
    } kind = Pattern;
    Behavior behavior = Behavior::Isolated;
    bool invert = false;
    bool prefixSpace = false; ///< ByteLevel
    Prepend prepend = Prepend::Always;
    bool split = true; ///< Metaspace: cut as well
    uint32_t delimiter = 0;
    size_t length = 0;       ///< FixedLength
    std::string replacement; ///< Metaspace: `delimiter` in UTF-8
    Regex regex;
  };
  /// A stretch that matches, or one between matches.
  struct Span {
    size_t begin, end;
    bool match;
  };

  const Unicode &unicode;
  ByteAlphabet alphabet;
  std::vector<Step> steps;

  bool loadStep(const JsonValue &json, unsigned depth, Error &error);
  bool loadSplit(const JsonValue &json, Step &step, Error &error);
  bool loadMetaspace(const JsonValue &json, Step &step, Error &error);
  bool loadCharacters(const std::string &type, const JsonValue &json,
                      Error &error);
  bool findSpans(const Step &step, std::string_view text,
                 std::vector<Span> &spans, size_t &budget) const;
  void findScripts(std::string_view text, std::vector<Span> &spans) const;
  bool cut(const Step &step, std::string_view text, std::vector<Piece> &pieces,
           size_t &budget) const;
  void rewrite(const Step &step, std::string &text,
               std::vector<Piece> &pieces) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_PRETOKENIZER_H
