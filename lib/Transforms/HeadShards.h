//===- HeadShards.h - Which rank has which heads ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H
#define ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H

#include "HeadFlow.h"
#include "WeightShards.h"

namespace attune {

/// Cuts attention by heads: what has heads gets a rank's share of them.
class HeadShards final : HeadFlow {
public:
  HeadShards(mlir::ModuleOp module, WeightShards &weights)
      : HeadFlow(module, "cut by heads among ranks"), weights(weights),
        ranks(weights.getRanks()) {}

  mlir::LogicalResult run();

private:
  mlir::RankedTensorType shareOf(mlir::Value value, unsigned kind) override;
  std::optional<unsigned> keysOf(unsigned queries) override { return queries; }
  unsigned queriesOf(unsigned keys) override { return keys; }
  bool cutsGates() const override { return true; }
  mlir::LogicalResult cutProjection(LinearOp linear);
  mlir::LogicalResult cutOutput(LinearOp linear);
  /// What multiplies merged heads, by rows.
  mlir::LogicalResult cutGate(LinearOp linear);
  /// A rank's part of what each head has: a number, a bias, a gain.
  mlir::LogicalResult sliceHeads(mlir::OpOperand &operand, int64_t dim,
                                 int64_t heads);

  WeightShards &weights;
  int64_t ranks;
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H
