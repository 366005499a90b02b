//===- WarpgroupTiles.h - A block's tile, as warpgroups see it --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_WARPGROUPTILES_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_WARPGROUPTILES_H

#include "Warpgroups.h"

#include "attune/TargetInfo/GpuTiles.h"

namespace attune {

/// Threads of a warpgroup, and rows of A that one multiplies.
constexpr int64_t kGroup = 128, kRowsOfGroup = 64;

/// The tile of one block, and the ring through which its operands come: one
/// warpgroup fills it for those that multiply.
struct TileOfBlock {
  TileOfBlock(LinearKernel &kernel, const WarpgroupTile &tile,
              const DepthParts *parts)
      : kernel(kernel), tile(tile), parts(parts) {}

  mlir::Value at(BlockBuilder &b, int64_t offset, mlir::Value number,
                 int64_t bytes) const {
    return b.add(b.add(shared, b.index(offset)), b.mul(number, bytes));
  }
  mlir::Value rowsOf(BlockBuilder &b, mlir::Value stage) const {
    return at(b, 0, stage, tile.rowBytes());
  }
  mlir::Value panelsOf(BlockBuilder &b, mlir::Value stage) const {
    return at(b, tile.stages * tile.rowBytes(), stage, tile.panelBytes());
  }

  /// LinearKernel::storeSums, or where the sums of parts are.
  void store(
      BlockBuilder &b, mlir::Value lane, mlir::Value row, mlir::Value panel,
      int64_t panels,
      llvm::function_ref<mlir::Value(BlockBuilder &, int64_t, int64_t)> pairOf);

  LinearKernel &kernel;
  const WarpgroupTile &tile;
  const DepthParts *parts; ///< null: the result is stored
  mlir::Value part;
  int64_t depth = 0, steps = 0;
  mlir::Value firstStep, numSteps; ///< those of this block
  LinearKernel::Group group;
  mlir::Value thread, firstPanel, shared;
  StageRing ring;
};

/// What the warpgroups that multiply do with weights in few bits: each has 64
/// columns of all rows.
void multiplyQuantized(BlockBuilder &b, TileOfBlock &block);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_WARPGROUPTILES_H
