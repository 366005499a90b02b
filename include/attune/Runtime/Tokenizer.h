//===- Tokenizer.h - Text to ids and back -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tokenizer.json, with the meaning that Hugging Face's library `tokenizers`
// gives it. Text becomes ids in these steps:
//
//   1. added tokens such as <|im_end|> are cut out,
//   2. the normalizers change what is left, and more added tokens are cut out,
//   3. the pre-tokenizers cut it into words,
//   4. the model (BPE, WordPiece, Unigram, WordLevel) cuts words into tokens,
//   5. the post-processor puts tokens around it.
//
// A file that asks for anything else is an error that names it.
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

struct ModelInfo;

struct EncodeOptions {
  /// Put the tokens around the text that the tokenizer names for it, such as
  /// BERT's [CLS] and [SEP] or Llama's begin token.
  bool addSpecial = true;
  /// Take special tokens in the text for what they are. Without this, a text
  /// from somewhere else cannot end a turn by spelling <|im_end|>.
  bool matchSpecial = true;
  /// Truncate and pad as the tokenizer's file says.
  bool fit = false;
};

/// One row for a model's inputs; all three have the same length.
struct Encoding {
  std::vector<int64_t> ids;
  std::vector<int64_t> typeIds; ///< `token_type_ids`
  std::vector<int64_t> mask;    ///< `attention_mask`: 0 for padding
};

class Tokenizer {
public:
  /// `json` is the text of a tokenizer.json, which need not outlive this. On
  /// failure `where`, if given, is the byte of the text that is wrong, or its
  /// size if no single one is.
  static std::unique_ptr<Tokenizer> create(std::string_view json, Error &error,
                                           size_t *where = nullptr);
  /// Writes the tokenizer, which `json` made, as a table, which `open` uses as
  /// it lies in memory: it is not parsed.
  bool pack(std::string_view json, std::string &table, Error &error) const;
  /// `table` starts at a multiple of eight bytes, is trusted, and must outlive
  /// this.
  static std::unique_ptr<Tokenizer> open(std::string_view table, Error &error);
  /// The tokenizer that a model carries.
  static std::unique_ptr<Tokenizer> open(const ModelInfo &info, Error &error);
  ~Tokenizer();

  /// Appends the ids of `text` to `ids`, with the tokens that the tokenizer
  /// puts around a text if `addSpecial` is set. Added tokens inside the text
  /// are recognised. Bytes that are not UTF-8 are taken as they are.
  bool encode(std::string_view text, std::vector<int64_t> &ids, Error &error,
              bool addSpecial = true) const;

  /// One text, or two for a model that compares them (`second` is not null).
  bool encode(std::string_view text, const std::string_view *second,
              const EncodeOptions &options, Encoding &encoding,
              Error &error) const;

  /// The id of a token as the file spells it, or -1.
  int64_t tokenToId(std::string_view token) const;
  /// A token as the file spells it; empty for an id it does not know.
  std::string_view tokenOf(int64_t id) const;
  /// The bytes that one id adds to a text, empty for an id it does not know. A
  /// token may end in the middle of a character.
  std::string bytesOf(int64_t id) const;
  bool isSpecial(int64_t id) const;
  /// One more than the largest id.
  int64_t size() const;

  /// The text of all ids, special tokens left out if `skipSpecial` is set. It
  /// is not UTF-8 where the ids are bytes that are not.
  std::string decode(const std::vector<int64_t> &ids, bool skipSpecial) const;

  /// A description for people: "byte-level BPE, 1,024 tokens".
  std::string describe() const;

  struct Data;

private:
  friend class StreamDecoder;
  Tokenizer();
  std::unique_ptr<Data> data;
};

/// Decodes ids as they come, holding back bytes that do not end a character.
class StreamDecoder {
public:
  /// `shown`: special tokens that are not skipped.
  StreamDecoder(const Tokenizer &tokenizer, bool skipSpecial,
                std::vector<int64_t> shown = {})
      : tokenizer(tokenizer), skipSpecial(skipSpecial),
        shown(std::move(shown)) {}
  /// The text that `id` completes; always whole characters, with U+FFFD for
  /// bytes that can no longer become one.
  std::string push(int64_t id);
  /// The text that is still held at the end.
  std::string finish();

private:
  const Tokenizer &tokenizer;
  bool skipSpecial;
  std::vector<int64_t> shown;
  std::string held; ///< of a byte-level tokenizer: bytes of no character yet
  /// Other tokenizers: the last ids. The first `numSaid` of them make `said`,
  /// which was given out.
  std::vector<int64_t> window;
  size_t numSaid = 0;
  std::string said;

  std::string decodeWindow(bool last);
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_TOKENIZER_H
