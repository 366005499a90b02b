//===- GpuAttention.cpp - Tiles of attention on tensor cores --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/GpuAttention.h"

#include <algorithm>

namespace attune {

/// Keys are added up by eight, or sixteen of 16 bits.
static int64_t fewestKeys(int64_t elementBytes) {
  return elementBytes == 4 ? 8 : 16;
}

AttentionTile chooseAttentionTile(int64_t elementBytes, int64_t width,
                                  int64_t valueWidth, bool fewRows) {
  // What a block may declare; of few rows there are many small blocks.
  int64_t limit = (fewRows ? 16 : 48) * 1024;
  AttentionTile tile = {
      elementBytes,    width, std::min(valueWidth, kWidestValues),
      fewRows ? 1 : 4, 64,    true};
  while (tile.keys > fewestKeys(elementBytes) && tile.sharedBytes() > limit)
    tile.keys /= 2;
  // Registers of a lane: 16 rows of queries, 16 of what they weigh.
  constexpr int64_t most = 96;
  int64_t query = width * elementBytes / 8, sums = tile.valueWidth / 2;
  tile.holdsQuery = query + sums <= most;
  return tile;
}

std::optional<AttentionTile>
chooseTileOfBlocks(int64_t elementBytes, int64_t width, int64_t valueWidth,
                   int64_t group, int64_t queries, int64_t keys) {
  AttentionTile tile =
      chooseAttentionTile(elementBytes, width, valueWidth, /*fewRows=*/false);
  while (tile.keys > fewestKeys(elementBytes) && keys % tile.keys != 0)
    tile.keys /= 2;
  if (keys % tile.keys != 0)
    return std::nullopt;
  for (; tile.warps > 0; tile.warps /= 2)
    if (tile.rows() % group == 0 && queries % (tile.rows() / group) == 0)
      return tile;
  return std::nullopt;
}

uint64_t WarpgroupAttentionTile::rowDescriptor() const {
  // Atoms of eight rows one below the other. Along the depth there is one.
  return describeMatrix(16, 8 * kBoxRowBytes, /*swizzle=*/1);
}

uint64_t WarpgroupAttentionTile::valueDescriptor() const {
  // Atoms of eight of the depth one below the other; boxes of 64 columns.
  return describeMatrix(uint64_t(keys) * kBoxRowBytes, 8 * kBoxRowBytes,
                        /*swizzle=*/1);
}

std::optional<WarpgroupAttentionTile>
chooseWarpgroupAttention(int64_t width, int64_t valueWidth, bool readsScores) {
  // The rest of 240 registers is for addresses, maxima and what is computed.
  constexpr int64_t shared = 227 * 1024;
  int64_t held = readsScores ? 120 : 176;
  if (width % 8 != 0 || valueWidth % 8 != 0 || valueWidth > 256)
    return std::nullopt;
  for (int64_t keys : {128, 64}) {
    WarpgroupAttentionTile tile = {width, valueWidth, keys};
    if (tile.heldRegisters() <= held && tile.sharedBytes() <= shared)
      return tile;
  }
  return std::nullopt;
}

} // namespace attune
