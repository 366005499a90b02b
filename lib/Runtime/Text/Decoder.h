//===- Decoder.h - Tokens to text -------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_DECODER_H
#define ATTUNE_LIB_RUNTIME_TEXT_DECODER_H

#include "Normalizer.h"

#include <string>
#include <vector>

namespace attune::runtime {

/// What "decoder" of a tokenizer.json says. Each step turns texts into texts;
/// in the end they stand one behind the other.
class Decoder {
public:
  explicit Decoder(const Unicode &unicode) : unicode(unicode) {}
  bool load(const JsonValue &json, Error &error);

  /// Bytes that are no UTF-8 stay as they are.
  std::string apply(std::vector<std::string> texts) const;

  /// Whether the text of a token does not depend on those around it.
  bool isByteLevel() const {
    return steps.size() == 1 && steps[0].kind == Step::ByteLevel;
  }
  /// Whether tokens like <0xAB> stand for bytes.
  bool hasBytes() const;

private:
  struct Step {
    enum Kind : uint8_t {
      ByteLevel,
      WordPiece,
      Metaspace,
      Bpe,
      ByteFallback,
      Fuse,
      Strip,
      Replace,
      Ctc
    } kind = Fuse;
    bool cleanup = false;       ///< WordPiece, Ctc
    bool dropsFirst = false;    ///< Metaspace
    std::string text, content;  ///< prefix, suffix, character, token; Replace
    size_t start = 0, stop = 0; ///< Strip: most characters
    Regex regex;                ///< Replace
  };
  const Unicode &unicode;
  ByteAlphabet alphabet;
  std::vector<Step> steps;
  bool joinsWithSpace = true; ///< there is no decoder

  bool loadStep(const JsonValue &json, unsigned depth, Error &error);
  void applyStep(const Step &step, std::vector<std::string> &texts) const;
  void joinBytes(std::vector<std::string> &texts) const;
  std::string replaced(const Step &step, const std::string &text) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_DECODER_H
