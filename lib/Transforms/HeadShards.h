//===- HeadShards.h - Which rank has which heads ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H
#define ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H

#include "WeightShards.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attune {

/// Cuts attention by heads: what has heads gets a rank's share of them, from
/// the projection that makes them to the one that merges them, and so do caches
/// through loops and calls.
class HeadShards {
public:
  HeadShards(mlir::ModuleOp module, WeightShards &weights)
      : module(module), weights(weights), ranks(weights.getRanks()) {}

  mlir::LogicalResult run();

private:
  /// The type of one rank's share, or null after an error.
  mlir::RankedTensorType shareOf(mlir::Value value);
  /// Notes that each rank has a part of `value`.
  mlir::LogicalResult mark(mlir::Value value);
  mlir::LogicalResult followUse(mlir::OpOperand &use);
  mlir::LogicalResult followSource(mlir::Value value);
  mlir::LogicalResult followArgument(mlir::BlockArgument argument);
  mlir::LogicalResult cutProjection(LinearOp linear);
  mlir::LogicalResult cutOutput(LinearOp linear);
  /// A rank's part of what each head has: a number, a bias, a gain.
  mlir::LogicalResult sliceHeads(mlir::OpOperand &operand, int64_t dim,
                                 int64_t heads);
  mlir::LogicalResult refuse(mlir::Operation *op);

  mlir::ModuleOp module;
  WeightShards &weights;
  int64_t ranks;
  llvm::DenseSet<mlir::Value> marked;
  /// How many heads there were.
  llvm::DenseMap<mlir::Value, int64_t> wholeHeads;
  llvm::SmallVector<mlir::Value> work;
  llvm::SetVector<mlir::Operation *> projections, outputs, perHead;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H
