//===- Banks.h - Who meets in a bank of shared memory -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_UNIT_TARGETINFO_BANKS_H
#define ATTUNE_TEST_UNIT_TARGETINFO_BANKS_H

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

/// How often the fullest bank is asked for when `addresses` are accessed at
/// once: 32 banks of 4 bytes, each gives one word at a time. A multiprocessor
/// takes as many lanes together as 128 bytes have accesses.
inline int conflicts(const std::vector<int64_t> &addresses, int64_t bytes) {
  int worst = 0;
  size_t together = std::min<size_t>(128 / bytes, addresses.size());
  for (size_t first = 0; first < addresses.size(); first += together) {
    std::map<int64_t, std::set<int64_t>> words;
    for (size_t i = first; i < first + together; ++i)
      for (int64_t word = addresses[i] / 4; word < (addresses[i] + bytes) / 4;
           ++word)
        words[word % 32].insert(word);
    for (auto &[bank, wanted] : words)
      worst = std::max(worst, int(wanted.size()));
  }
  return worst;
}

#endif // ATTUNE_TEST_UNIT_TARGETINFO_BANKS_H
