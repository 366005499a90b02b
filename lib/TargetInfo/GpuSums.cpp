//===- GpuSums.cpp - Tiles of attention by sums over keys -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuSums.h"

#include <utility>

namespace attune {

std::optional<SumsTile> chooseSumsTile(int64_t width, int64_t valueWidth,
                                       bool fewTokens) {
  // Many columns before many tokens: each block makes the features and scores
  // of its tokens anew.
  constexpr std::pair<int64_t, int64_t> sizes[] = {
      {32, 32}, {16, 32}, {16, 16}, {8, 16}, {4, 16}, {4, 8}, {4, 4}};
  for (auto [tokens, columns] : sizes) {
    if (fewTokens && (tokens > kFewTokens || columns > 16))
      continue;
    while (columns > 4 && columns / 2 >= valueWidth)
      columns /= 2;
    SumsTile tile{width, tokens, columns};
    if (tile.sharedBytes() <= 48 * 1024)
      return tile;
  }
  return std::nullopt;
}

} // namespace attune
