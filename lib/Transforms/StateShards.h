//===- StateShards.h - Which rank has which memories ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_STATESHARDS_H
#define ATTUNE_LIB_TRANSFORMS_STATESHARDS_H

#include "WeightShards.h"

#include "Attune/AttuneDialect.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

namespace attune {

/// Cuts what delta rules read and keep: each rank has the memories of its
/// heads, and of the tokens that the convolution before them saw, the channels
/// that these heads read.
class StateShards {
public:
  StateShards(mlir::ModuleOp module, WeightShards &weights)
      : module(module), weights(weights), ranks(weights.getRanks()) {}

  /// Whether ranks have equally many heads of a rule; if not, a warning says
  /// that it stays whole.
  bool canCut(DeltaRuleOp rule) const;
  /// Cuts the weights of a rule, and notes what it reads and keeps.
  mlir::LogicalResult addRule(DeltaRuleOp rule);
  /// Goes on from what was noted to where it comes from and where it is kept.
  mlir::LogicalResult follow();
  /// Callers allocate caches by their entry's attributes.
  void updateCaches();

private:
  using Ranges = llvm::SmallVector<WeightShards::Range>;

  /// Gives `value` a rank's share of its columns; `ranges` says which, where a
  /// projection computes it.
  mlir::LogicalResult mark(mlir::Value value, const Ranges &ranges);
  mlir::LogicalResult cutProjection(LinearOp linear, const Ranges &ranges);
  /// The columns from `offset` on of what a rule reads.
  mlir::FailureOr<mlir::tensor::ExtractSliceOp>
  findPart(mlir::Value value, int64_t offset, mlir::Value from);
  mlir::LogicalResult followSource(mlir::Value value, const Ranges &ranges);
  mlir::LogicalResult followUse(mlir::OpOperand &use, const Ranges &ranges);
  mlir::LogicalResult followArgument(mlir::BlockArgument argument,
                                     const Ranges &ranges);
  mlir::LogicalResult refuse(mlir::Operation *op);

  mlir::ModuleOp module;
  WeightShards &weights;
  int64_t ranks;
  llvm::DenseMap<mlir::Value, Ranges> marked;
  /// Slices whose columns are cut: what rules read of the convolution.
  llvm::DenseSet<mlir::Operation *> parts;
  llvm::SmallVector<mlir::Value> work;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_STATESHARDS_H
