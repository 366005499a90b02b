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
  /// The heads of one kind of attention. Ranks share groups, each the keys' one
  /// head with its queries; where there are more ranks than groups, several
  /// ranks have a copy of the keys' and share the queries'.
  struct Heads {
    int64_t queries = 0, keys = 0;
  };

  mlir::RankedTensorType shareOf(mlir::Value value, unsigned kind) override;
  std::optional<unsigned> keysOf(unsigned queries) override;
  unsigned queriesOf(unsigned keys) override { return keys - 1; }
  bool cutsAround() const override { return true; }

  /// The kind of queries of attention like this, which ranks can share.
  mlir::FailureOr<unsigned> kindOf(mlir::Operation *op, Heads heads);
  bool isCopied(unsigned kind) const { return kinds[kind / 2].keys < ranks; }
  int64_t headsOf(unsigned kind) const {
    return kind % 2 ? kinds[kind / 2].keys : kinds[kind / 2].queries;
  }
  /// The shares of ranks in heads of `width` rows or columns each.
  WeightShards::Range rangeOf(unsigned kind, int64_t width,
                              int64_t begin = 0) const;
  int64_t shareOfHeads(unsigned kind) const;
  mlir::LogicalResult markAttention();
  /// Marks the hidden columns of gated layers that are made of products.
  mlir::LogicalResult markHidden();
  mlir::LogicalResult slicePerHead(mlir::Operation *op);
  void noteOwn();
  mlir::LogicalResult cutProjection(LinearOp linear);
  /// Cuts by rows. A product that the result is added to is cut alike.
  mlir::LogicalResult cutProduct(LinearOp linear,
                                 llvm::ArrayRef<WeightShards::Range> ranges);
  mlir::LogicalResult cutNorm(RMSNormOp norm, int64_t columns,
                              llvm::ArrayRef<WeightShards::Range> ranges);
  mlir::LogicalResult cutOutput(LinearOp linear);
  /// Cuts by rows a product that multiplies merged heads.
  mlir::LogicalResult cutGate(LinearOp linear);
  /// A rank's part of what each head has: a number, a bias, a gain.
  mlir::LogicalResult sliceHeads(mlir::OpOperand &operand, int64_t dim,
                                 unsigned kind);

  WeightShards &weights;
  int64_t ranks;
  llvm::SmallVector<Heads> kinds; ///< of queries 2 i, of keys 2 i + 1
};

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_HEADSHARDS_H
