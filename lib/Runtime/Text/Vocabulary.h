//===- Vocabulary.h - Tokens and their numbers ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_VOCABULARY_H
#define ATTUNE_LIB_RUNTIME_TEXT_VOCABULARY_H

#include "../TextHash.h"
#include "TokenizerTable.h"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Texts by number and numbers by text, by open addressing.
class Vocabulary {
public:
  static constexpr uint32_t none = UINT32_MAX;
  static constexpr uint32_t maxTokens = 1u << 22;

  /// False if the number has a text already. A text that is there already gets
  /// the newer number.
  bool add(std::string_view text, uint32_t id);
  uint32_t find(std::string_view text) const {
    TextHash hash;
    hash.add(text);
    return find(text, hash.finish());
  }
  uint32_t find(std::string_view text, uint64_t hash) const;
  bool has(uint32_t id) const {
    return id < entries.size() && entries[id].begin != none;
  }
  std::string_view text(uint32_t id) const {
    return has(id) ? std::string_view(arena.data() + entries[id].begin,
                                      entries[id].length)
                   : std::string_view();
  }
  /// One more than the largest number.
  uint32_t size() const { return static_cast<uint32_t>(entries.size()); }
  uint32_t count() const { return numTexts; }
  size_t longest() const { return maxLength; }

  void write(TokenizerTableWriter &table) const;
  /// False if the sections do not fit one another. The table must outlive this.
  bool take(const TokenizerTable &table);

private:
  struct Entry {
    uint32_t begin = none, length = 0;
  };
  Column<char> arena;
  Column<Entry> entries;
  Column<uint32_t> slots; ///< number + 1, or 0; a power of two
  uint32_t numTexts = 0;
  size_t used = 0, maxLength = 0;

  void grow();
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_VOCABULARY_H
