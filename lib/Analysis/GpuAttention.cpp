//===- GpuAttention.cpp - Tiles of attention on tensor cores --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/GpuAttention.h"

namespace attune {

AttentionTile chooseAttentionTile(int64_t elementBytes, int64_t width,
                                  int64_t valueWidth, bool fewRows) {
  // What a block may declare; of few rows there are many small blocks.
  int64_t limit = (fewRows ? 16 : 48) * 1024;
  AttentionTile tile = {elementBytes,    width, valueWidth,
                        fewRows ? 1 : 4, 64,    true};
  int64_t least = elementBytes == 4 ? 8 : 16;
  while (tile.keys > least && tile.sharedBytes() > limit)
    tile.keys /= 2;
  // Registers of a lane: 16 rows of queries, 16 of what they weigh.
  constexpr int64_t most = 160;
  int64_t query = width * elementBytes / 8, sums = valueWidth / 2;
  tile.holdsQuery = query + sums <= most;
  return tile;
}

} // namespace attune
