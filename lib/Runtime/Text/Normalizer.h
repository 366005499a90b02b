//===- Normalizer.h - Changing text before it is cut ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_NORMALIZER_H
#define ATTUNE_LIB_RUNTIME_TEXT_NORMALIZER_H

#include "Regex.h"
#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// A map of SentencePiece from short texts to what replaces them: a trie of
/// double arrays and the replacements behind it, each ending in zero.
class PrecompiledMap {
public:
  /// False if the base64 text holds no such map.
  bool load(std::string_view base64);
  void apply(const Unicode &unicode, std::string_view text,
             std::string &out) const;

private:
  std::vector<uint32_t> units;
  std::string replacements;
  bool find(std::string_view text, std::string_view &replacement) const;
};

/// Byte-level tokenizers write each byte as a visible character: itself where
/// Latin-1 prints it, else the next unused one from U+0100 on.
class ByteAlphabet {
public:
  ByteAlphabet();
  void append(std::string &out, std::string_view bytes) const {
    for (char byte : bytes)
      out.append(spelled[static_cast<unsigned char>(byte)].bytes,
                 spelled[static_cast<unsigned char>(byte)].length);
  }
  /// False, and nothing appended, if a character stands for no byte.
  bool appendBytes(std::string &out, std::string_view text) const;

private:
  struct {
    char bytes[2];
    uint8_t length;
  } spelled[256];
  int16_t byteOf[0x200];
};

/// The pattern of "Split" and "Replace": {"String": ...} or {"Regex": ...}.
bool loadPattern(const JsonValue &json, const char *owner,
                 const Unicode &unicode, Regex &regex, Error &error);

/// "a boolean, or `otherwise` if there is none".
bool flagOf(const JsonValue &json, const char *key, bool otherwise);
/// Empty if there is no such text.
std::string textOf(const JsonValue &json, const char *key);

class Normalizer {
public:
  explicit Normalizer(const Unicode &unicode) : unicode(unicode) {}
  bool load(const JsonValue &json, Error &error);
  /// Whether bytes become the characters of ByteAlphabet here.
  bool isByteLevel() const;

  /// Changes `text`. `head` becomes the number of bytes that its first
  /// character became; 0 if nothing is left of it. False with an error if a
  /// pattern takes too long.
  bool apply(std::string &text, size_t &head, Error &error) const;

private:
  struct Step {
    enum Kind : uint8_t {
      Form,
      Lowercase,
      StripAccents,
      Strip,
      Nmt,
      Bert,
      Precompiled,
      Replace,
      Prepend,
      ByteLevel
    } kind = Form;
    bool compatible = false, composed = false; // Form
    bool left = false, right = false;          // Strip
    bool clean = false, chinese = false, accents = false, lower = false; // Bert
    std::string content; // Replace, Prepend
    Regex regex;         // Replace
    PrecompiledMap map;  // Precompiled
  };
  /// How much of a text of `size` bytes the steps may make.
  static size_t mostFor(size_t size) { return (size_t(4) << 20) + 4 * size; }
  const Unicode &unicode;
  ByteAlphabet alphabet;
  std::vector<Step> steps;

  bool loadStep(const JsonValue &json, unsigned depth, Error &error);
  bool loadSimple(const std::string &type, const JsonValue &json, Step &step);
  std::string lower(std::string_view text) const;
  /// The parts of BertNormalizer before and behind its normal form.
  std::string bertClean(const Step &step, std::string_view text) const;
  std::string bertLower(const Step &step, std::string_view text) const;
  bool replace(const Step &step, std::string_view text, std::string &out,
               Error &error) const;
  bool applyStep(const Step &step, std::string_view text, std::string &out,
                 Error &error) const;
  bool stepHead(const Step &step, std::string_view text, std::string &head,
                Error &error) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_NORMALIZER_H
