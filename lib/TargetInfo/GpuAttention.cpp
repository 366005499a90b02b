//===- GpuAttention.cpp - Tiles of attention on tensor cores --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuAttention.h"

#include <algorithm>

namespace attune {

AttentionTile chooseAttentionTile(int64_t elementBytes, int64_t width,
                                  int64_t valueWidth, bool fewRows,
                                  bool scaled) {
  // Few rows make many small blocks.
  int64_t limit = fewRows ? 16 * 1024 : kSharedBytesOfBlock;
  AttentionTile tile = {
      elementBytes,    width, std::min(valueWidth, kWidestValues),
      fewRows ? 1 : 4, 64,    true,
      scaled};
  while (tile.keys > fewestKeys(elementBytes) && tile.sharedBytes() > limit)
    tile.keys /= 2;
  // Registers of a lane: 16 rows of queries, 16 of results.
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
  for (; tile.warps > 0; tile.warps /= 2)
    if (liesInBlock(tile, group, queries, keys))
      return tile;
  return std::nullopt;
}

bool liesInBlock(const AttentionTile &tile, int64_t group, int64_t queries,
                 int64_t keys) {
  return keys % tile.keys == 0 && tile.rows() % group == 0 &&
         queries % (tile.rows() / group) == 0;
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
chooseWarpgroupAttention(int64_t width, int64_t valueWidth, bool readsScores,
                         bool scaled) {
  if (width % 8 != 0 || valueWidth % 8 != 0 || valueWidth > 256)
    return std::nullopt;
  auto fits = [&](const WarpgroupAttentionTile &tile) {
    return tile.heldRegisters() <= tile.registersToHold(readsScores) &&
           tile.sharedBytes() <= kSharedBytesOfWarpgroups;
  };
  for (int64_t keys : {128, 64, 32}) {
    // With so few, only wide heads in bytes are left.
    if (keys == 32 && !scaled)
      break;
    WarpgroupAttentionTile tile = {width, valueWidth, keys, scaled};
    if (!fits(tile))
      continue;
    // Making numbers of bytes takes now more, now less than the products.
    // Stages are counted by a power of two, whose remainders are cheap.
    WarpgroupAttentionTile more = tile;
    more.stages *= 2;
    return scaled && fits(more) ? more : tile;
  }
  return std::nullopt;
}

} // namespace attune
