//===- CachePages.cpp - Caches that take memory as they grow --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CachePages.h"

#include <algorithm>
#include <numeric>

namespace attune::runtime {

CachePages::CachePages(PageSource &source, unsigned rows, uint64_t most)
    : source(source), rows(rows), asked(most), limit(most) {}

CachePages::~CachePages() {
  Error ignored;
  for (unsigned row = 0; row < rows; ++row)
    trim(row, 0, ignored);
}

uint64_t CachePages::wholePages(const std::vector<uint64_t> &positionBytes,
                                uint64_t pageBytes, uint64_t least) {
  uint64_t unit = 1;
  for (uint64_t bytes : positionBytes)
    unit = std::lcm(unit, pageBytes / std::gcd(pageBytes, bytes));
  return (least + unit - 1) / unit * unit;
}

void CachePages::addCache(uint8_t *base, uint64_t rowBytes,
                          uint64_t positionBytes) {
  caches.push_back({base, rowBytes, positionBytes, {}});
  caches.back().rows.resize(rows);
}

size_t CachePages::pagesFor(const Cache &cache, uint64_t positions) const {
  uint64_t bytes = positions * cache.positionBytes, page = source.pageBytes();
  return static_cast<size_t>((bytes + page - 1) / page);
}

/// A page with one user.
bool CachePages::take(uint32_t &number, Error &error) {
  Page page;
  if (inUse == 0) // others may have given memory back
    limit = asked;
  if (inUse >= limit)
    return false;
  if (!source.make(page.made, error)) {
    // Others use the memory, too: there is no more than this.
    if (error.code == ExitSuccess)
      limit = inUse;
    return false;
  }
  page.users = 1;
  if (unused.empty()) {
    number = static_cast<uint32_t>(pages.size());
    pages.push_back(page);
  } else {
    number = unused.back();
    unused.pop_back();
    pages[number] = page;
  }
  ++inUse;
  return true;
}

void CachePages::giveBack(uint32_t number) {
  if (--pages[number].users > 0)
    return;
  source.drop(pages[number].made);
  unused.push_back(number);
  --inUse;
  // It is there again, and perhaps more than that.
  limit = std::min(asked, limit + 1);
}

bool CachePages::trimIn(Cache &cache, unsigned row, size_t most, Error &error) {
  std::vector<uint32_t> &held = cache.rows[row];
  while (held.size() > most) {
    if (!source.unmap(placeOf(cache, row, held.size() - 1), error))
      return false;
    giveBack(held.back());
    held.pop_back();
  }
  return true;
}

bool CachePages::trim(unsigned row, uint64_t length, Error &error) {
  for (Cache &cache : caches)
    if (!trimIn(cache, row, pagesFor(cache, length), error))
      return false;
  return true;
}

/// Lets kernels use what a row holds from a page on; without that they are
/// given back.
bool CachePages::open(Cache &cache, unsigned row, size_t first, Error &error) {
  size_t held = cache.rows[row].size();
  if (held <= first ||
      source.open(placeOf(cache, row, first), held - first, error))
    return true;
  Error ignored;
  trimIn(cache, row, first, ignored);
  return false;
}

bool CachePages::mapOpen(uint8_t *place, uint64_t page, Error &error) {
  if (!source.map(place, page, error))
    return false;
  if (source.open(place, 1, error))
    return true;
  Error ignored;
  source.unmap(place, ignored);
  return false;
}

/// Gives a row a page of its own in place of one that others use, too, with the
/// same first `keep` bytes.
bool CachePages::unshare(Cache &cache, unsigned row, size_t at, uint64_t keep,
                         Error &error) {
  uint32_t &held = cache.rows[row][at], own;
  if (!take(own, error))
    return false;
  uint8_t *place = placeOf(cache, row, at);
  bool works = true;
  if (keep > 0) {
    works = mapOpen(source.window(), pages[own].made, error);
    if (works) {
      works = source.copy(source.window(), place, keep, error);
      works &= source.unmap(source.window(), error);
    }
  }
  if (!works || !source.unmap(place, error)) {
    giveBack(own);
    return false;
  }
  if (!mapOpen(place, pages[own].made, error)) {
    giveBack(own);
    // The row has the shared page again, or ends before it.
    Error ignored;
    if (!mapOpen(place, pages[held].made, ignored) &&
        trimIn(cache, row, at + 1, ignored)) {
      giveBack(held);
      cache.rows[row].pop_back();
    }
    return false;
  }
  giveBack(held);
  held = own;
  return true;
}

/// Maps a page at the end of what a row holds.
bool CachePages::addPage(Cache &cache, unsigned row, Error &error) {
  std::vector<uint32_t> &held = cache.rows[row];
  uint32_t number;
  if (!take(number, error))
    return false;
  if (!source.map(placeOf(cache, row, held.size()), pages[number].made,
                  error)) {
    giveBack(number);
    return false;
  }
  held.push_back(number);
  return true;
}

bool CachePages::holdIn(Cache &cache, unsigned row, uint64_t from, uint64_t to,
                        Error &error) {
  std::vector<uint32_t> &held = cache.rows[row];
  uint64_t begin = from * cache.positionBytes, page = source.pageBytes();
  size_t last = pagesFor(cache, to);
  for (size_t at = begin / page; at < std::min(last, held.size()); ++at) {
    uint64_t keep = begin > at * page ? begin - at * page : 0;
    if (pages[held[at]].users > 1 && !unshare(cache, row, at, keep, error))
      return false;
  }
  size_t before = held.size();
  while (held.size() < last && addPage(cache, row, error))
    ;
  return open(cache, row, before, error) && held.size() >= last;
}

bool CachePages::hold(unsigned row, uint64_t from, uint64_t to, Error &error) {
  if (from >= to)
    return true;
  for (Cache &cache : caches)
    if (!holdIn(cache, row, from, to, error))
      return false;
  return true;
}

bool CachePages::shareIn(Cache &cache, unsigned to, unsigned from,
                         uint64_t length, Error &error) {
  std::vector<uint32_t> &own = cache.rows[to], &other = cache.rows[from];
  uint64_t bytes = length * cache.positionBytes, page = source.pageBytes();
  auto whole = static_cast<size_t>(bytes / page);
  // Those that are the same stay.
  size_t same = 0;
  while (same < std::min({whole, own.size(), other.size()}) &&
         own[same] == other[same])
    ++same;
  if (!trimIn(cache, to, same, error))
    return false;
  bool works = true;
  while (works && own.size() < whole) {
    uint32_t number = other[own.size()];
    works =
        source.map(placeOf(cache, to, own.size()), pages[number].made, error);
    if (works) {
      own.push_back(number);
      ++pages[number].users;
    }
  }
  uint64_t rest = bytes % page;
  works = works && (rest == 0 || addPage(cache, to, error));
  if (!open(cache, to, same, error) || !works)
    return false;
  return rest == 0 || source.copy(placeOf(cache, to, whole),
                                  placeOf(cache, from, whole), rest, error);
}

bool CachePages::share(unsigned to, unsigned from, uint64_t length,
                       Error &error) {
  for (Cache &cache : caches)
    if (!shareIn(cache, to, from, length, error))
      return false;
  return true;
}

bool CachePages::swap(unsigned row, unsigned other, Error &error) {
  if (row == other)
    return true;
  for (Cache &cache : caches) {
    std::vector<uint32_t> &a = cache.rows[row], &b = cache.rows[other];
    for (unsigned each : {row, other})
      for (size_t at = 0; at < cache.rows[each].size(); ++at)
        if (!source.unmap(placeOf(cache, each, at), error))
          return false;
    std::swap(a, b);
    for (unsigned each : {row, other}) {
      const std::vector<uint32_t> &held = cache.rows[each];
      for (size_t at = 0; at < held.size(); ++at)
        if (!source.map(placeOf(cache, each, at), pages[held[at]].made, error))
          return false;
      if (!open(cache, each, 0, error))
        return false;
    }
  }
  return true;
}

bool CachePages::holds(unsigned row) const {
  return std::any_of(caches.begin(), caches.end(), [&](const Cache &cache) {
    return !cache.rows[row].empty();
  });
}

uint64_t CachePages::mostPositions() const {
  uint64_t low = 0, high = UINT64_MAX;
  for (const Cache &cache : caches)
    high = std::min(high, cache.rowBytes / cache.positionBytes);
  while (low < high) {
    uint64_t middle = low + (high - low + 1) / 2, needed = 0;
    for (const Cache &cache : caches)
      needed += pagesFor(cache, middle);
    if (needed <= limit)
      low = middle;
    else
      high = middle - 1;
  }
  return low;
}

} // namespace attune::runtime
