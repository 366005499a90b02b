//===- TokenizerData.h - The parts of a tokenizer ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_TOKENIZERDATA_H
#define ATTUNE_LIB_RUNTIME_TEXT_TOKENIZERDATA_H

#include "AddedTokens.h"
#include "Decoder.h"
#include "PostProcessor.h"
#include "PreTokenizer.h"
#include "TokenModel.h"
#include "attune/Runtime/Tokenizer.h"

namespace attune::runtime {

/// Words of a text that were met before, and their ids. Words come again.
class WordCache {
public:
  /// Null if the word is not there.
  const std::vector<int64_t> *find(std::string_view word, uint64_t hash) const {
    const Entry *entry = slots.empty() ? nullptr : &slots[hash & mask];
    return entry && entry->word == word ? &entry->ids : nullptr;
  }
  void add(std::string_view word, uint64_t hash, const int64_t *begin,
           const int64_t *end) {
    if (slots.empty())
      slots.resize(mask + 1);
    Entry &entry = slots[hash & mask];
    entry.word = word;
    entry.ids.assign(begin, end);
  }

private:
  static constexpr size_t mask = 16383;
  struct Entry {
    std::string word;
    std::vector<int64_t> ids;
  };
  std::vector<Entry> slots;
};

struct Tokenizer::Data {
  Unicode unicode;
  std::unique_ptr<TokenModel> model;
  std::vector<AddedToken> added;
  /// By id: the index in `added` plus one, or 0.
  std::vector<uint32_t> addedOf;
  AddedTokenMatcher raw{unicode}, normalized{unicode};
  Normalizer normalizer{unicode};
  PreTokenizer preTokenizer{unicode};
  PostProcessor postProcessor;
  Decoder decoder{unicode};
  bool byteLevel = false;

  /// `json` is a whole tokenizer.json, or the parts of `table`, which must
  /// outlive this.
  bool load(std::string_view json, const TokenizerTable *table,
            LoadError &error);
  /// Gives a tokenizer.json without its tokens and merges.
  bool pickParts(std::string_view json, std::string &out, Error &error);
  const AddedToken *addedToken(int64_t id) const {
    return id >= 0 && static_cast<uint64_t>(id) < addedOf.size() &&
                   addedOf[static_cast<size_t>(id)]
               ? &added[addedOf[static_cast<size_t>(id)] - 1]
               : nullptr;
  }
  bool encodeText(std::string_view text, bool matchSpecial,
                  std::vector<int64_t> &ids, Error &error) const;

private:
  struct Parts; ///< the members of the file
  bool readParts(std::string_view json, Parts &parts, LoadError &error);
  bool loadAdded(const JsonValue &list, Error &error);
  bool takeAdded(const TokenizerTable &table);
  void listAdded();
  bool setAdded(AddedToken token, Error &error);
  bool encodeSection(std::string_view text, size_t head, WordCache *cache,
                     std::vector<int64_t> &ids, Error &error) const;
  bool encodeWord(std::string_view word, WordCache *cache,
                  std::vector<int64_t> &ids, Error &error) const;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_TOKENIZERDATA_H
