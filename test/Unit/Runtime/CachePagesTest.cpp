//===- CachePagesTest.cpp - Rows that take pages as they grow -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Generation/CachePages.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <random>
#include <utility>

using namespace attune::runtime;

namespace {

/// Pages of 64 bytes in a map, at addresses that stand for themselves.
class MapSource : public PageSource {
public:
  explicit MapSource(uint64_t most) : most(most) {}

  uint64_t pageBytes() const override { return 64; }
  bool make(uint64_t &page, Error &) override {
    if (pages.size() == most)
      return false;
    page = next++;
    // Whoever reads what was not written finds this.
    pages[page] = std::vector<uint8_t>(64, 0xee);
    return true;
  }
  void drop(uint64_t page) override {
    for (auto &[place, other] : places)
      EXPECT_NE(other.page, page) << "is still mapped";
    EXPECT_EQ(pages.erase(page), 1u);
  }
  bool map(uint8_t *place, uint64_t page, Error &) override {
    EXPECT_EQ(addressOf(place) % 64, 0u);
    EXPECT_EQ(pages.count(page), 1u);
    EXPECT_TRUE(places.insert({addressOf(place), {page}}).second);
    return true;
  }
  bool open(uint8_t *place, size_t count, Error &error) override {
    ++opened;
    if (opensFail || (failing > 0 && failing-- > 0))
      return error.set(ExitInternalError, "as the test wants it");
    for (size_t i = 0; i < count; ++i) {
      auto at = places.find(addressOf(place) + i * 64);
      EXPECT_NE(at, places.end());
      if (at == places.end())
        return false;
      EXPECT_FALSE(std::exchange(at->second.isOpen, true));
    }
    return true;
  }
  bool unmap(uint8_t *place, Error &) override {
    EXPECT_EQ(places.erase(addressOf(place)), 1u);
    return true;
  }
  bool copy(uint8_t *to, const uint8_t *from, uint64_t bytes,
            Error &) override {
    for (uint64_t i = 0; i < bytes; ++i)
      at(addressOf(to) + i) = at(addressOf(from) + i);
    return true;
  }
  uint8_t *window() override { return nullptr; }

  static uint64_t addressOf(const uint8_t *place) {
    return reinterpret_cast<uintptr_t>(place);
  }
  uint8_t &at(uint64_t address) {
    auto place = places.find(address / 64 * 64);
    if (place == places.end() || !place->second.isOpen) {
      ADD_FAILURE() << "nothing is to be used at " << address;
      static uint8_t none;
      return none;
    }
    return pages[place->second.page][address % 64];
  }

  struct Place {
    uint64_t page;
    bool isOpen = false;
  };
  uint64_t most, next = 1;
  size_t opened = 0; ///< calls
  bool opensFail = false;
  int failing = 0; ///< of the next calls of open()
  std::map<uint64_t, std::vector<uint8_t>> pages;
  std::map<uint64_t, Place> places;
};

/// Two caches of rows, of 24 and of 20 bytes a position, and what rows should
/// hold.
struct Group {
  explicit Group(uint64_t most, unsigned rows = 3)
      : source(most), pages(source, rows, most), rows(rows) {
    length = CachePages::wholePages({24, 20}, 64, 40);
    for (size_t i = 0; i < 2; ++i)
      pages.addCache(reinterpret_cast<uint8_t *>(base(i)), bytes[i] * length,
                     bytes[i]);
  }
  uint64_t base(size_t cache) const { return (cache + 1) * 64 << 20; }
  uint64_t place(size_t cache, unsigned row, uint64_t position) const {
    return base(cache) + (row * length + position) * bytes[cache];
  }
  /// Appends positions as a step does.
  bool append(unsigned row, uint64_t count) {
    Error error;
    uint64_t from = held[row].size();
    if (!pages.hold(row, from, from + count, error))
      return false;
    for (uint64_t i = from; i < from + count; ++i) {
      held[row].push_back(uint8_t(++written % 200));
      for (size_t cache = 0; cache < 2; ++cache)
        for (uint64_t byte = 0; byte < bytes[cache]; ++byte)
          source.at(place(cache, row, i) + byte) = held[row].back();
    }
    return true;
  }
  bool share(unsigned to, unsigned from, uint64_t count) {
    Error error;
    bool works = pages.share(to, from, count, error);
    held[to].clear();
    if (works)
      held[to].assign(held[from].begin(), held[from].begin() + count);
    return works;
  }
  void check() {
    for (unsigned row = 0; row < rows; ++row)
      for (size_t i = 0; i < held[row].size(); ++i)
        for (size_t cache = 0; cache < 2; ++cache)
          for (uint64_t byte : {uint64_t(0), bytes[cache] - 1})
            ASSERT_EQ(source.at(place(cache, row, i) + byte), held[row][i])
                << "row " << row << ", position " << i;
    EXPECT_EQ(pages.used(), source.pages.size());
    EXPECT_LE(pages.used(), pages.most());
  }

  const uint64_t bytes[2] = {24, 20};
  MapSource source;
  CachePages pages;
  unsigned rows;
  uint64_t length, written = 0;
  std::map<unsigned, std::vector<uint8_t>> held;
};

TEST(CachePages, RowsAreWholePages) {
  EXPECT_EQ(CachePages::wholePages({64}, 64, 7), 7u);
  // 64 / gcd(64, 24) = 8, and 16 for 20 bytes.
  EXPECT_EQ(CachePages::wholePages({24}, 64, 7), 8u);
  EXPECT_EQ(CachePages::wholePages({24, 20}, 64, 17), 32u);
  // A Llama of 8 billion weights, and TinyLlama: 2048 * 11264 = 11 * 2^21.
  EXPECT_EQ(CachePages::wholePages({65536, 65536}, 2 << 20, 8192), 8192u);
  EXPECT_EQ(CachePages::wholePages({11264, 11264}, 2 << 20, 2000), 2048u);
}

TEST(CachePages, TakesWhatPositionsNeed) {
  Group group(100);
  EXPECT_EQ(group.pages.used(), 0u);
  EXPECT_TRUE(group.append(0, 1));
  EXPECT_EQ(group.pages.used(), 2u); // one of each cache
  // Two positions of 24 bytes and three of 20 fit into a page.
  EXPECT_TRUE(group.append(0, 1));
  EXPECT_EQ(group.pages.used(), 2u);
  EXPECT_TRUE(group.append(0, 1));
  EXPECT_EQ(group.pages.used(), 3u);
  EXPECT_TRUE(group.append(0, 1));
  EXPECT_EQ(group.pages.used(), 4u);
  group.check();
  Error error;
  EXPECT_TRUE(group.pages.trim(0, 2, error));
  EXPECT_EQ(group.pages.used(), 2u);
  EXPECT_TRUE(group.pages.trim(0, 0, error));
  EXPECT_EQ(group.pages.used(), 0u);
  EXPECT_TRUE(group.source.places.empty());
}

TEST(CachePages, SharesWholePagesOfABeginning) {
  Group group(100);
  EXPECT_TRUE(group.append(0, 16)); // 6 and 5 pages, all full
  EXPECT_EQ(group.pages.used(), 11u);
  EXPECT_TRUE(group.share(1, 0, 16));
  EXPECT_EQ(group.pages.used(), 11u);
  EXPECT_TRUE(group.share(2, 0, 15)); // the last of each is a copy
  EXPECT_EQ(group.pages.used(), 13u);
  group.check();
  EXPECT_TRUE(group.append(1, 3));
  EXPECT_TRUE(group.append(2, 3));
  group.check();
  // A row that goes back does not write into what others have.
  group.held[0].resize(5);
  EXPECT_TRUE(group.append(0, 2));
  group.check();
  Error error;
  for (unsigned row : {0u, 1u, 2u})
    EXPECT_TRUE(group.pages.trim(row, 0, error));
  EXPECT_EQ(group.pages.used(), 0u);
}

TEST(CachePages, SaysWhenAllAreInUse) {
  Group group(4);
  EXPECT_EQ(group.pages.mostPositions(), 5u); // 120 and 100 bytes
  EXPECT_TRUE(group.append(0, 3));
  Error error;
  EXPECT_FALSE(group.pages.hold(1, 0, 3, error));
  EXPECT_EQ(error.code, ExitSuccess);
  group.check();
  EXPECT_TRUE(group.pages.trim(1, 0, error));
  EXPECT_TRUE(group.pages.trim(0, 0, error));
  group.held[0].clear();
  EXPECT_TRUE(group.append(1, 5));
  EXPECT_FALSE(group.append(1, 1));
  group.check();
}

TEST(CachePages, OpensThePagesOfAGrowthAtOnce) {
  Group group(100);
  EXPECT_TRUE(group.append(0, 30)); // 12 and 10 pages
  EXPECT_EQ(group.source.opened, 2u);
  EXPECT_TRUE(group.share(1, 0, 29));
  EXPECT_EQ(group.source.opened, 4u);
  group.check();
  // Pages that cannot be used are given back.
  Error error;
  uint64_t before = group.pages.used();
  group.source.opensFail = true;
  EXPECT_FALSE(group.pages.hold(2, 0, 30, error));
  EXPECT_EQ(error.code, ExitInternalError);
  EXPECT_FALSE(group.pages.share(2, 0, 29, error));
  EXPECT_EQ(group.pages.used(), before);
  group.check();
}

/// A page that takes the place of a shared one cannot be used: the row has the
/// shared one again, or ends before it.
TEST(CachePages, KeepsASharedPageThatCannotBeReplaced) {
  for (int failing : {1, 2}) {
    Group group(100);
    EXPECT_TRUE(group.append(0, 16));
    EXPECT_TRUE(group.share(1, 0, 16));
    uint64_t before = group.pages.used();
    group.source.failing = failing;
    Error error;
    EXPECT_FALSE(group.pages.hold(1, 0, 1, error));
    EXPECT_EQ(error.code, ExitInternalError);
    EXPECT_EQ(group.source.failing, 0);
    EXPECT_EQ(group.pages.used(), before);
    if (failing == 2)
      group.held[1].clear();
    group.check();
    EXPECT_TRUE(group.pages.trim(1, 0, error));
    group.held[1].clear();
    EXPECT_TRUE(group.append(1, 5));
    group.check();
  }
}

TEST(CachePages, FindsThatOthersHaveTheMemory) {
  Group group(100);
  group.source.most = 3;
  EXPECT_FALSE(group.append(0, 40));
  EXPECT_EQ(group.pages.most(), 3u);
  EXPECT_EQ(group.pages.mostPositions(), 3u);
  // They give it back while a text ends, or while there is none.
  Error error;
  group.source.most = 100;
  EXPECT_TRUE(group.pages.trim(0, 0, error));
  EXPECT_EQ(group.pages.most(), 6u);
  group.held[0].clear();
  EXPECT_TRUE(group.append(0, 40));
  EXPECT_EQ(group.pages.most(), 100u);
  EXPECT_TRUE(group.pages.trim(0, 0, error));
  group.held[0].clear();
  group.source.most = 0;
  EXPECT_FALSE(group.append(1, 1));
  EXPECT_EQ(group.pages.most(), 0u);
  group.source.most = 100;
  EXPECT_TRUE(group.append(1, 1));
  group.check();
}

TEST(CachePages, HoldsWhatRowsHoldWhateverComes) {
  for (unsigned seed = 0; seed < 10; ++seed) {
    std::mt19937 random(seed);
    auto below = [&](uint64_t count) { return random() % count; };
    Group group(20 + 5 * seed, 4);
    for (int turn = 0; turn < 100; ++turn) {
      auto row = unsigned(below(4)), other = unsigned(below(4));
      size_t length = group.held[row].size();
      Error error;
      switch (below(5)) {
      case 0:
      case 1:
        if (length < 40)
          group.append(row, 1 + below(40 - length));
        break;
      case 2: // goes back, with memory or without
        group.held[row].resize(below(length + 1));
        if (below(2))
          EXPECT_TRUE(group.pages.trim(row, group.held[row].size(), error));
        break;
      case 3:
        if (row != other)
          group.share(other, row, below(length + 1));
        break;
      case 4:
        EXPECT_TRUE(group.pages.swap(row, other, error));
        std::swap(group.held[row], group.held[other]);
        break;
      }
      EXPECT_EQ(error.code, ExitSuccess);
      group.check();
      if (HasFatalFailure())
        return;
    }
  }
}

} // namespace
