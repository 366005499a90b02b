//===- GpuAttention.h - Tiles of attention on tensor cores ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// As GpuTiles.h: numbers that the kernel is written in terms of, and that unit
// tests hold against the PTX manual.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ANALYSIS_GPUATTENTION_H
#define ATTUNE_ANALYSIS_GPUATTENTION_H

#include "attune/Analysis/GpuTiles.h"

#include <optional>

namespace attune {

/// Rows of one warp: those of a fragment.
constexpr int64_t kWarpRows = 16;

/// What one block computes of attention: 16 rows in each warp against some keys
/// at a time. Keys and values lie in shared memory as columns of SwizzledRows,
/// 64 bytes wide, one such column behind the other.
struct AttentionTile {
  int64_t elementBytes; ///< of queries, keys and values
  int64_t width;        ///< of a head's queries and keys
  int64_t valueWidth;   ///< of its values, or what one block takes of it
  int64_t warps;
  int64_t keys;    ///< of one step
  bool holdsQuery; ///< in registers; else read anew in every step

  /// One is filled while the other is read.
  static constexpr int64_t kStages = 2;

  int64_t rows() const { return kWarpRows * warps; }
  int64_t threads() const { return 32 * warps; }
  SwizzledRows swizzle() const { return {elementBytes}; }
  /// Columns of 64 bytes that hold this width.
  int64_t columns(int64_t width) const {
    int64_t each = swizzle().elementsOfRow();
    return (width + each - 1) / each;
  }
  /// Elements of one stage.
  int64_t stageOf(int64_t width) const {
    return columns(width) * keys * swizzle().elementsOfRow();
  }
  int64_t sharedBytes() const {
    return kStages * elementBytes * (stageOf(width) + stageOf(valueWidth));
  }
};

/// The widest queries and keys that shared memory has room for.
constexpr int64_t kWidestHead = 640;

/// So many channels of the values does one block take at most.
constexpr int64_t kWidestValues = 128;

/// A block of four warps for many rows, of one for few.
AttentionTile chooseAttentionTile(int64_t elementBytes, int64_t width,
                                  int64_t valueWidth, bool fewRows);

/// The same for a mask of blocks of so many queries and keys, each of which is
/// some whole tiles of the `group` heads that share keys; none if no tile is
/// small enough.
std::optional<AttentionTile>
chooseTileOfBlocks(int64_t elementBytes, int64_t width, int64_t valueWidth,
                   int64_t group, int64_t queries, int64_t keys);

/// So many parts are the keys of a few queries split into, at least; each has
/// so many keys if there are enough of them.
constexpr int64_t kLeastKeysOfPart = 128, kMostParts = 64;

// f32 is multiplied as tf32, by mma.m16n8k8, whose lanes have columns m and
// m + 4 of A where they have 2m and 2m + 1 of sums. So that weights go from one
// to the other, column c of eight scores is that of key `keyOfColumn(c)`, and
// the two rows of B that a lane has are those of keys `keyOfColumn(2m)` and
// `keyOfColumn(2m + 1)`. Any order would do; in this one neither the lanes that
// read keys nor those that read values meet in a bank.
constexpr int64_t keyOfColumn(int64_t column) {
  int64_t member = column / 2;
  return column % 2 ? 4 + (member ^ 1) : member;
}

} // namespace attune

#endif // ATTUNE_ANALYSIS_GPUATTENTION_H
