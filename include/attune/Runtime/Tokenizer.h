//===- Tokenizer.h - Byte-level BPE from tokenizer.json ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Text becomes ids in three steps: added tokens are cut out first, the rest is
// split into words by a fixed pattern (the one of GPT-2 or of Llama 3, matched
// by hand), and the bytes of each word are merged pair by pair in the order the
// tokenizer learned. What a tokenizer.json asks for beyond that is an error
// that names it.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_TOKENIZER_H
#define ATTUNE_RUNTIME_TOKENIZER_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

class Tokenizer {
public:
  /// `json` is the text of a tokenizer.json.
  static std::unique_ptr<Tokenizer> create(std::string_view json, Error &error);
  ~Tokenizer();

  /// Appends the ids of `text` to `ids`, with the tokens that the tokenizer
  /// puts around a text if `addSpecial` is set (Llama 3's begin token; GPT-2
  /// has none). Bytes that are not UTF-8 are taken as they are.
  bool encode(std::string_view text, std::vector<int64_t> &ids, Error &error,
              bool addSpecial = true) const;

  /// The bytes of one id; nothing for an id it does not know. A token may end
  /// in the middle of a character.
  std::string_view bytesOf(int64_t id) const;
  bool isSpecial(int64_t id) const;

  /// The bytes of all ids, special tokens left out if `skipSpecial` is set.
  std::string decode(const std::vector<int64_t> &ids, bool skipSpecial) const;

  struct Data;

private:
  Tokenizer();
  std::unique_ptr<Data> data;
};

/// Decodes ids as they come, holding back bytes that do not end a character.
class StreamDecoder {
public:
  StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial)
      : tokenizer(tokenizer), skipSpecial(skipSpecial) {}
  /// The text that `id` completes; always whole characters, with U+FFFD for
  /// bytes that can no longer become one.
  std::string push(int64_t id);
  /// What is left at the end.
  std::string finish();

private:
  const Tokenizer &tokenizer;
  bool skipSpecial;
  std::string held;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_TOKENIZER_H
