//===- PreTokenizer.h - Cutting text into words -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_PRETOKENIZER_H
#define ATTUNE_LIB_RUNTIME_PRETOKENIZER_H

#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

/// \p{L} and \p{N} of Unicode 14.
class CharacterClasses {
public:
  enum Class : uint8_t { Other, Letter, Number, Space };
  CharacterClasses();
  Class classify(uint32_t codePoint) const;

private:
  std::vector<std::pair<uint32_t, uint32_t>> letters, numbers;
  Class low[0x250];
};

/// The splitting that a tokenizer.json's "pre_tokenizer" describes.
class PreTokenizer {
public:
  /// `json` may be null: the text is then one word.
  bool load(const JsonValue *json, Error &error);

  /// Whether each text gets a space in front unless it has one.
  bool addsPrefixSpace() const { return prefixSpace; }

  /// Cuts `text` into words that together are the text; `words` receives the
  /// end of each.
  void split(std::string_view text, std::vector<size_t> &words) const;

private:
  /// How one step cuts a piece of text.
  struct Step {
    enum Kind : uint8_t { Gpt2, Llama3, Digits } kind = Gpt2;
    unsigned digits = 1; ///< most digits in a row (Llama3)
  };
  bool loadStep(const JsonValue &json, Error &error);
  bool loadSplit(const JsonValue &json, Error &error);
  size_t matchGpt2(std::string_view text) const;
  size_t matchLlama3(std::string_view text, unsigned digits) const;
  size_t matchDigits(std::string_view text) const;
  size_t runOf(std::string_view text, size_t from, int wanted) const;
  size_t matchSpace(std::string_view text) const;

  CharacterClasses classes;
  std::vector<Step> steps;
  bool prefixSpace = false;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_PRETOKENIZER_H
