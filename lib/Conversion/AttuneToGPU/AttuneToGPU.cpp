//===- AttuneToGPU.cpp - Launches of cooperating threads --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"
#include "LinearAttention.h"

#include "attune/Analysis/GpuTiles.h"
#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNETOGPU
#include "attune/Conversion/Passes.h.inc"

namespace {
struct ConvertAttuneToGPU final
    : impl::ConvertAttuneToGPUBase<ConvertAttuneToGPU> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<Operation *> ops;
    getOperation().walk([&](Operation *op) {
      if (isa<LinearIntoOp, GroupedLinearIntoOp, ExpertTasksIntoOp>(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      if (op->getNumResults() != 0) {
        op->emitOpError("is not bufferized");
        return signalPassFailure();
      }
      OpBuilder builder(op);
      BlockBuilder b(builder, op->getLoc());
      if (auto tasks = dyn_cast<ExpertTasksIntoOp>(op))
        emitExpertTasks(b, tasks);
      else if (auto grouped = dyn_cast<GroupedLinearIntoOp>(op))
        lower(b, LinearKernel(b, grouped));
      else
        lower(b, LinearKernel(b, cast<LinearIntoOp>(op)));
      op->erase();
    }
    SmallVector<AttentionIntoOp> attentions;
    getOperation().walk([&](AttentionIntoOp op) { attentions.push_back(op); });
    for (AttentionIntoOp op : attentions) {
      if (!isa<MemRefType>(op.getDest().getType())) {
        op.emitOpError("is not bufferized");
        return signalPassFailure();
      }
      if (failed(lowerAttention(op, multiprocessors, warpgroups, tf32)))
        return signalPassFailure();
    }
    SmallVector<LinearAttentionIntoOp> sums;
    getOperation().walk([&](LinearAttentionIntoOp op) { sums.push_back(op); });
    for (LinearAttentionIntoOp op : sums) {
      if (op->getNumResults() != 0) {
        op.emitOpError("is not bufferized");
        return signalPassFailure();
      }
      if (failed(lowerLinearAttention(op, multiprocessors)))
        return signalPassFailure();
    }
  }

  void lower(BlockBuilder &b, LinearKernel kernel) {
    kernel.tf32 = tf32;
    Value rows = kernel.numRows;
    if (kernel.tasks)
      return lowerTasks(b, kernel, rows);
    auto few = [&](BlockBuilder &b) {
      chooseBelow(
          b, rows, 2, [&](BlockBuilder &b) { kernel.emitForFewRows(b, 1); },
          [&](BlockBuilder &b) { kernel.emitForFewRows(b, 4); });
    };
    auto many = [&](BlockBuilder &b) {
      if (!kernel.numBatches)
        return lowerTiles(b, kernel, rows);
      lowerStack(b, kernel, b.mul(kernel.numBatches, rows), rows);
    };
    chooseBelow(b, rows, kFewRows + 1, few, many);
  }

  /// Tiles for so many rows in all.
  void lowerTiles(BlockBuilder &b, LinearKernel &kernel, Value rows) {
    if (!kernel.fitsTensorCores())
      return kernel.emitForFewRows(b, 4);
    int64_t columns = kernel.width() * kernel.parts();
    auto large = [&](BlockBuilder &b) {
      if (!warpgroups || !kernel.fitsWarpgroups())
        return kernel.emitTiles(b, kLargeTile);
      chooseBelow(
          b, rows, rowsForWideTiles(columns, multiprocessors),
          [&](BlockBuilder &b) { kernel.emitWarpgroupTiles(b, kGroupTile); },
          [&](BlockBuilder &b) {
            kernel.emitWarpgroupTiles(b, kWideGroupTile);
          });
    };
    chooseBelow(
        b, rows, rowsForLargeTiles(columns, multiprocessors),
        [&](BlockBuilder &b) { kernel.emitTiles(b, kSmallTile); }, large);
  }

  /// The same where each matrix has a part of the rows, about `each`, which
  /// have to fill more than half of a large tile.
  void lowerStack(BlockBuilder &b, LinearKernel &kernel, Value rows,
                  Value each) {
    Value large = b.less(b.index(kLargeTile.rows / 2), each);
    lowerTiles(b, kernel, b.select(large, rows, b.index(0)));
  }

  /// So many rows in all that each matrix has few, whatever the router says, or
  /// probably.
  void lowerTasks(BlockBuilder &b, LinearKernel &kernel, Value rows) {
    chooseBelow(
        b, rows, kFewRows + 1,
        [&](BlockBuilder &b) { kernel.emitForFewRows(b, 1); },
        [&](BlockBuilder &b) {
          if (!kernel.fitsTensorCores())
            return kernel.emitForFewRows(b, 4);
          chooseBelow(
              b, rows, kFewRows * kFewRows + 1,
              [&](BlockBuilder &b) { kernel.emitForFewRows(b, 4); },
              [&](BlockBuilder &b) {
                lowerStack(b, kernel, rows, b.div(rows, kernel.matrices()));
              });
        });
  }
};
} // namespace
} // namespace attune
