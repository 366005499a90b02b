//===- TokenizerTable.h - A tokenizer that needs no parsing -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A product holds its tokenizer as a table: what is large lies in it as it is
// used, so that a start touches the few pages that a text needs. A header is
// followed by sections, each at a multiple of eight bytes. A table is as
// trusted as the code beside it: its length and the sums of what is read at
// each start tell that it is whole.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_TEXT_TOKENIZERTABLE_H
#define ATTUNE_LIB_RUNTIME_TEXT_TOKENIZERTABLE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Values that this owns, or that lie in a table.
template <typename T> class Column {
public:
  Column() = default;
  Column(const Column &) = delete;
  Column &operator=(const Column &) = delete;

  const T *data() const { return values; }
  size_t size() const { return count; }
  bool empty() const { return count == 0; }
  const T &operator[](size_t i) const { return values[i]; }
  const T *begin() const { return values; }
  const T *end() const { return values + count; }

  /// For values that this owns.
  T &at(size_t i) { return own[i]; }
  void resize(size_t size) {
    own.resize(size);
    take();
  }
  void append(const T *first, size_t size) {
    own.insert(own.end(), first, first + size);
    take();
  }
  void set(std::vector<T> all) {
    own = std::move(all);
    take();
  }

  void borrow(const T *first, size_t size) {
    values = first;
    count = size;
  }

private:
  std::vector<T> own;
  const T *values = nullptr;
  size_t count = 0;

  void take() { borrow(own.data(), own.size()); }
};

struct TokenizerTable {
  enum Section : uint8_t {
    Parts,      ///< a tokenizer.json without its tokens and merges
    Numbers,    ///< struct Counts
    Added,      ///< struct AddedRecord, of each added token
    AddedTexts, ///< the text and the pattern of each, without gaps
    Entries,    ///< where the text of each token is
    Texts,      ///< the texts of tokens, without gaps
    TokenSlots, ///< tokens by the hashes of their texts
    MergeSlots, ///< BPE: merges by the hashes of their pairs
    Scores,     ///< Unigram: of each token
    Beginnings, ///< Unigram: of tokens
    NumSections,
  };
  struct Counts {
    uint32_t texts, longest;
    double unknownScore; ///< Unigram
  };
  struct AddedRecord {
    uint32_t id, textBytes, patternBytes, flags;
  };
  struct Place {
    uint64_t offset, bytes;
  };
  struct Header {
    char magic[16];
    uint64_t bytes; ///< of all
    uint64_t sum;   ///< of the places and of the sections up to AddedTexts
    Place places[NumSections];
  };
  static constexpr char magic[16] = "attune tokens 1";

  /// `bytes` start at a multiple of eight. False if they are no such table.
  bool open(std::string_view bytes);
  std::string_view text(Section section) const {
    const Place &place = header->places[section];
    return {base + place.offset, place.bytes};
  }
  template <typename T> bool get(Section section, Column<T> &column) const {
    const Place &place = header->places[section];
    column.borrow(reinterpret_cast<const T *>(base + place.offset),
                  place.bytes / sizeof(T));
    return place.bytes % sizeof(T) == 0;
  }
  const Counts &counts() const {
    return *reinterpret_cast<const Counts *>(text(Numbers).data());
  }

  /// Of what is read at each start.
  static uint64_t sumOf(const char *base, const Header &header);

private:
  const char *base = nullptr;
  const Header *header = nullptr;
};

/// Lays sections out one behind the other.
class TokenizerTableWriter {
public:
  TokenizerTable::Counts counts = {0, 0, 0};

  /// What a column has must outlive this.
  template <typename T>
  void add(TokenizerTable::Section section, const Column<T> &column) {
    contents[section] = {reinterpret_cast<const char *>(column.data()),
                         column.size() * sizeof(T)};
  }
  void add(TokenizerTable::Section section, std::string bytes) {
    owned[section] = std::move(bytes);
    contents[section] = owned[section];
  }
  std::string finish();

private:
  std::string_view contents[TokenizerTable::NumSections];
  std::string owned[TokenizerTable::NumSections];
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_TEXT_TOKENIZERTABLE_H
