//===- GpuTiles.h - Tiles of products on tensor cores -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Numbers that kernels for tensor cores are made of: how large a block's tile
// is, where an element lies in shared memory, and which elements a lane of a
// warp holds. Kernels are written in terms of these functions, and unit tests
// hold them against the PTX manual and count bank conflicts.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ANALYSIS_GPUTILES_H
#define ATTUNE_ANALYSIS_GPUTILES_H

#include <cstdint>
#include <string>

namespace attune {

/// What one block computes of a product, and how its warps share it.
struct ProductTile {
  int64_t rows, columns;
  int64_t warpRows, warpColumns; ///< warps along each

  int64_t threads() const { return 32 * warpRows * warpColumns; }
  /// Rows and columns of one warp.
  int64_t rowsOfWarp() const { return rows / warpRows; }
  int64_t columnsOfWarp() const { return columns / warpColumns; }
};
constexpr ProductTile kLargeTile = {128, 128, 2, 4};
constexpr ProductTile kSmallTile = {64, 64, 2, 2};

/// So many rows of a product are worth reading each weight again and again:
/// more make a tile.
constexpr int64_t kFewRows = 8;

/// Multiprocessors of the smallest product with this chip; of an unknown one,
/// a guess.
int64_t countMultiprocessors(const std::string &chip);

/// Time of a [rows, columns] product in tiles, in steps of a multiprocessor:
/// blocks come in waves, and each pays for its multiplications and for what it
/// moves through shared memory.
int64_t costOfTiles(const ProductTile &tile, int64_t rows, int64_t columns,
                    int64_t multiprocessors);

/// From how many rows on large tiles are the better ones.
int64_t rowsForLargeTiles(int64_t columns, int64_t multiprocessors);

/// Rows of 64 bytes in shared memory, in chunks of 16 that are exchanged by row
/// such that neither a copy of whole rows nor the lanes that read a fragment
/// meet in a bank. Elements have 4 bytes, or 2 and are read by ldmatrix.
struct SwizzledRows {
  int64_t elementBytes;

  static constexpr int64_t kRowBytes = 64, kChunkBytes = 16;
  int64_t elementsOfRow() const { return kRowBytes / elementBytes; }
  int64_t elementsOfChunk() const { return kChunkBytes / elementBytes; }
  /// Chunk `c` of row `r` lies where chunk `c ^ ((r & mask()) >> shift())`
  /// would.
  int64_t mask() const { return elementBytes == 4 ? 2 : 6; }
  int64_t shift() const { return elementBytes == 4 ? 0 : 1; }
  /// The element at which a chunk starts.
  int64_t placeOf(int64_t row, int64_t chunk) const {
    int64_t moved = chunk ^ ((row & mask()) >> shift());
    return row * elementsOfRow() + moved * elementsOfChunk();
  }
};

// What lane 4 * group + member has of mma.m16n8k16 (PTX manual, 9.7.14.5.8):
// the place of the first element of each pair, which runs along the columns. B
// comes from ldmatrix.trans as it is needed.
struct FragmentPlace {
  int64_t row, column;
};
constexpr FragmentPlace placeInA(int64_t lane, int64_t pair) {
  return {lane / 4 + 8 * (pair & 1), 2 * (lane % 4) + 8 * (pair >> 1)};
}
constexpr FragmentPlace placeInSum(int64_t lane, int64_t pair) {
  return {lane / 4 + 8 * pair, 2 * (lane % 4)};
}

} // namespace attune

#endif // ATTUNE_ANALYSIS_GPUTILES_H
