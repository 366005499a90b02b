//===- MatrixTiles.h - Registers of a CPU's matrix unit ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_MATRIXTILES_H
#define ATTUNE_CONVERSION_MATRIXTILES_H

#include <cstdint>

/// AMX has eight registers of 16 rows of 64 bytes. One instruction adds to a
/// tile of sums, 16 x 16 in f32, what 16 rows of 32 bf16 give with 16 rows of a
/// panel in pairs: 32 of its inputs for 16 of its outputs. Another one adds in
/// i32 what rows of 64 bytes give with a panel in quads.
namespace attune {

inline constexpr int64_t kMatrixRows = 16;
inline constexpr int64_t kMatrixColumns = 16;   ///< f32 of a row
inline constexpr int64_t kMatrixDepth = 32;     ///< bf16 of a row
inline constexpr int64_t kMatrixByteDepth = 64; ///< of a row
/// Two by two tiles of sums, two of rows and two of the panel are all eight
/// registers: each tile that is loaded is multiplied twice.
inline constexpr int64_t kMatrixBlock = 2;

/// Whether outputs of panels of `lanes`, from `depth` inputs, are multiplied in
/// tiles.
inline bool fillsMatrixTiles(int64_t depth, int64_t lanes) {
  return depth >= kMatrixDepth && lanes % kMatrixColumns == 0 &&
         lanes <= kMatrixBlock * kMatrixColumns;
}

/// Whether many queries of this width meet keys, and their probabilities values
/// of that width, in tiles: all numbers are bf16, a panel has `lanes` keys or
/// channels.
inline bool attendsInMatrixTiles(int64_t width, int64_t valueWidth,
                                 int64_t lanes) {
  return lanes == kMatrixBlock * kMatrixColumns && width % kMatrixDepth == 0 &&
         valueWidth % lanes == 0;
}

} // namespace attune

#endif // ATTUNE_CONVERSION_MATRIXTILES_H
