//===- CachePages.h - Caches that take memory as they grow ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Each sequence of a group has a row of addresses in every cache, as long as
// its texts can ever be. Memory is behind the beginning of a row alone, in
// pages that are mapped there as the text grows. What two rows begin with alike
// is in the same pages. So kernels see rows in one piece, and need not know.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_CACHEPAGES_H
#define ATTUNE_LIB_RUNTIME_GENERATION_CACHEPAGES_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <vector>

namespace attune::runtime {

/// What pages are made of and mapped by.
class PageSource {
public:
  virtual ~PageSource() = default;
  virtual uint64_t pageBytes() const = 0;
  /// Makes a page. False without an error: there is no memory for it.
  virtual bool make(uint64_t &page, Error &error) = 0;
  virtual void drop(uint64_t page) = 0;
  /// `place` is a multiple of a page's size, in addresses that were reserved.
  /// Nobody may use it before open().
  virtual bool map(uint8_t *place, uint64_t page, Error &error) = 0;
  /// Lets kernels use `count` pages that were mapped side by side.
  virtual bool open(uint8_t *place, size_t count, Error &error) = 0;
  virtual bool unmap(uint8_t *place, Error &error) = 0;
  virtual bool copy(uint8_t *to, const uint8_t *from, uint64_t bytes,
                    Error &error) = 0;
  /// Where a page can be mapped to be filled.
  virtual uint8_t *window() = 0;
};

/// Functions that map give false without an error where pages are used up; then
/// nothing is lost, and what a row holds is mapped.
class CachePages {
public:
  /// At most `most` pages in use.
  CachePages(PageSource &source, unsigned rows, uint64_t most);
  ~CachePages();
  CachePages(const CachePages &) = delete;
  CachePages &operator=(const CachePages &) = delete;

  /// The fewest positions, `least` or more, of which a row of each of such
  /// caches takes whole pages.
  static uint64_t wholePages(const std::vector<uint64_t> &positionBytes,
                             uint64_t pageBytes, uint64_t least);
  /// Rows of `rowBytes`, whole pages, from `base` on.
  void addCache(uint8_t *base, uint64_t rowBytes, uint64_t positionBytes);

  /// Lets positions `from` to `to` of a row be written, and those before be
  /// read as they were.
  bool hold(unsigned row, uint64_t from, uint64_t to, Error &error);
  /// Gives back all pages behind the first `length` positions.
  bool trim(unsigned row, uint64_t length, Error &error);
  /// Row `to` becomes the first `length` positions of row `from`: their whole
  /// pages are shared, the rest is a copy.
  bool share(unsigned to, unsigned from, uint64_t length, Error &error);
  /// Exchanges two rows.
  bool swap(unsigned row, unsigned other, Error &error);

  /// Whether a row has any page.
  bool holds(unsigned row) const;
  /// The most positions that one row can have, of all pages.
  uint64_t mostPositions() const;
  /// Another number of pages in use at most.
  void limitTo(uint64_t most) { asked = limit = most; }
  uint64_t used() const { return inUse; }
  uint64_t most() const { return limit; }
  uint64_t pageBytes() const { return source.pageBytes(); }
  unsigned numCaches() const { return static_cast<unsigned>(caches.size()); }

private:
  struct Page {
    uint64_t made = 0; ///< by the source
    unsigned users = 0;
  };
  struct Cache {
    uint8_t *base;
    uint64_t rowBytes, positionBytes;
    std::vector<std::vector<uint32_t>> rows; ///< numbers of pages
  };
  uint8_t *placeOf(const Cache &cache, unsigned row, size_t at) const {
    return cache.base + row * cache.rowBytes + at * source.pageBytes();
  }
  /// Pages that so many positions lie in.
  size_t pagesFor(const Cache &cache, uint64_t positions) const;
  bool take(uint32_t &number, Error &error);
  void giveBack(uint32_t number);
  bool addPage(Cache &cache, unsigned row, Error &error);
  bool open(Cache &cache, unsigned row, size_t first, Error &error);
  bool mapOpen(uint8_t *place, uint64_t page, Error &error);
  bool holdIn(Cache &cache, unsigned row, uint64_t from, uint64_t to,
              Error &error);
  bool shareIn(Cache &cache, unsigned to, unsigned from, uint64_t length,
               Error &error);
  bool trimIn(Cache &cache, unsigned row, size_t pages, Error &error);
  bool unshare(Cache &cache, unsigned row, size_t at, uint64_t keep,
               Error &error);

  PageSource &source;
  unsigned rows;
  /// The pages that there may be, and that there are while others have memory.
  uint64_t asked, limit, inUse = 0;
  std::vector<Page> pages;
  std::vector<uint32_t> unused; ///< numbers of no page
  std::vector<Cache> caches;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_CACHEPAGES_H
