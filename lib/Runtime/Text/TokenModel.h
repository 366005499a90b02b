//===- TokenModel.h - Words to tokens ---------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The four models of tokenizer.json:
//
//   BPE        characters, merged pair by pair in the order that was learned
//   WordPiece  the longest token that fits, again and again
//   Unigram    the tokens whose scores add up to the most
//   WordLevel  a word is a token
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_TOKENMODEL_H
#define ATTUNE_LIB_RUNTIME_TEXT_TOKENMODEL_H

#include "Vocabulary.h"
#include "attune/Runtime/Error.h"
#include "attune/Runtime/Json.h"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Where in the text of tokenizer.json something is wrong.
struct LoadError {
  std::string message;
  bool unsupported = false;    ///< see Error
  const char *place = nullptr; ///< null: nowhere in particular
};

class TokenModel {
public:
  enum class Kind : uint8_t { BPE, WordPiece, Unigram, WordLevel };

  virtual ~TokenModel() {}
  /// Reads the object "model". Null if something is wrong. What is large comes
  /// from `table` if there is one.
  static std::unique_ptr<TokenModel>
  load(std::string_view json, const TokenizerTable *table, LoadError &error);
  /// Appends the object without its tokens and merges to `out`.
  static bool pickMembers(std::string_view json, std::string &out,
                          LoadError &error);
  /// Writes what is large.
  virtual void write(TokenizerTableWriter &table) const;

  /// Appends the tokens of a word, which is not empty.
  virtual bool encode(std::string_view word, std::vector<int64_t> &ids,
                      Error &error) const;

  Kind kind = Kind::BPE;
  bool byteFallback = false;
  Vocabulary vocabulary;

protected:
  /// What stands beside the vocabulary and the merges.
  struct Members {
    JsonValue small; ///< an object of all other members
    std::string_view vocabulary, merges;
    const TokenizerTable *table = nullptr; ///< in place of both
  };
  static bool readMembers(std::string_view json, Members &members, Kind &kind,
                          LoadError &error);
  virtual bool read(const Members &members, LoadError &error);
  bool readVocabulary(const Members &members, LoadError &error);
  /// The number of "<0xAB>", for each byte, or none.
  void findByteTokens();

  uint32_t unknown = Vocabulary::none;
  std::string unknownText;
  uint32_t byteTokens[256];

  bool appendBytes(std::string_view text, std::vector<int64_t> &ids) const;
};

std::unique_ptr<TokenModel> makeBpe();
std::unique_ptr<TokenModel> makeUnigram();

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_TOKENMODEL_H
