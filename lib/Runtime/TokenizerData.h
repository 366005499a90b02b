//===- TokenizerData.h - Vocabulary, merges and added tokens ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TOKENIZERDATA_H
#define ATTUNE_LIB_RUNTIME_TOKENIZERDATA_H

#include "PreTokenizer.h"
#include "attune/Runtime/Tokenizer.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Text to id, by open addressing; the keys are the tokens themselves.
class TokenMap {
public:
  void reserve(size_t count);
  /// False if the text is there already.
  bool insert(std::string_view text, uint32_t id,
              const std::vector<std::string> &texts);
  /// The id, or -1.
  int64_t find(std::string_view text,
               const std::vector<std::string> &texts) const;

private:
  std::vector<uint32_t> slots; ///< id + 1, or 0
};

/// Pair of ids to what they merge into.
class MergeMap {
public:
  struct Merge {
    uint32_t rank, result;
  };
  void reserve(size_t count);
  /// False if the pair is there already.
  bool insert(uint32_t left, uint32_t right, Merge merge);
  const Merge *find(uint32_t left, uint32_t right) const;

private:
  struct Slot {
    uint64_t key = 0; ///< left and right plus one, or 0
    Merge merge = {0, 0};
  };
  std::vector<Slot> slots;
};

struct AddedToken {
  std::string text;
  uint32_t id = 0;
  bool special = false, stripLeft = false, stripRight = false,
       singleWord = false;
};

struct Tokenizer::Data {
  static constexpr uint32_t unknown = UINT32_MAX;

  std::vector<std::string> texts;    ///< bytes of each id
  std::vector<uint8_t> specialFlags; ///< of each id
  uint32_t byteIds[256];             ///< id of each byte alone
  TokenMap vocabulary;
  MergeMap merges;
  bool wholeWords = false; ///< a word in the vocabulary is not merged
  bool composed = false;   ///< the text must be in normal form C
  uint32_t unknownId = unknown;
  std::vector<AddedToken> added;       ///< longest first
  bool startsAdded[256] = {};          ///< first bytes of added tokens
  std::vector<int64_t> prefix, suffix; ///< ids around every text
  PreTokenizer words;
  CharacterClasses classes;

  bool load(std::string_view json, Error &error);
  /// Appends the ids of one word.
  bool encodeWord(std::string_view word, std::vector<int64_t> &ids,
                  Error &error) const;
  bool encodeText(std::string_view text, std::vector<int64_t> &ids,
                  Error &error) const;
  const AddedToken *addedAt(std::string_view text, size_t at) const;

private:
  bool loadModel(const struct JsonValue &model, Error &error);
  bool loadMerges(const struct JsonValue &merges, Error &error);
  bool loadAdded(const struct JsonValue &added, Error &error);
  bool loadNormalizer(const struct JsonValue &normalizer, Error &error);
  bool loadDecoder(const struct JsonValue &decoder, Error &error);
  bool loadPostProcessor(const struct JsonValue &processor, Error &error);
  bool setToken(uint32_t id, std::string text, Error &error);
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TOKENIZERDATA_H
