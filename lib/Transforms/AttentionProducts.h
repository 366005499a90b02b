//===- AttentionProducts.h - The two products of attention ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_ATTENTIONPRODUCTS_H
#define ATTUNE_LIB_TRANSFORMS_ATTENTIONPRODUCTS_H

#include "AttentionChain.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace attune {

/// A tensor each of whose dimensions has a label. Dimension i of the weights
/// has label i; the widths of values and of keys have labels of their own.
struct LabelledTensor {
  mlir::Value value;
  llvm::SmallVector<unsigned> labels;

  mlir::RankedTensorType getType() const {
    return llvm::cast<mlir::RankedTensorType>(value.getType());
  }
  bool has(unsigned label) const { return llvm::is_contained(labels, label); }
  unsigned positionOf(unsigned label) const {
    return llvm::find(labels, label) - labels.begin();
  }
  int64_t sizeOf(unsigned label) const {
    return getType().getDimSize(positionOf(label));
  }
};

/// True if `op` is a sum of products over one of its dimensions that starts
/// from zero.
bool isProduct(mlir::Operation *op);

/// Weights times values, in any layout.
struct Weighing {
  mlir::linalg::LinalgOp op;
  unsigned rank = 0;      // of the weights
  unsigned key = 0;       // the label that is summed over
  LabelledTensor weights; // label i at dimension i
  LabelledTensor value, result;

  unsigned valueWidth() const { return rank; }
  unsigned width() const { return rank + 1; }
};

/// Reads `op` as a product whose operand of number `weights` has the weights.
std::optional<Weighing> readWeighing(mlir::Operation *op, unsigned weights);

/// Queries times keys, and what each dimension of the weights is.
struct ScoreProduct {
  mlir::linalg::LinalgOp op;
  LabelledTensor query, key, value;
  llvm::SmallVector<unsigned> batch; // labels, outermost first
  llvm::SmallVector<unsigned> heads; // those that keys have before the others
  unsigned rows = 0;                 // the label of the queries
  /// The ops that only repeated keys and values for groups of heads, and are
  /// not needed any more.
  llvm::SmallVector<mlir::Operation *> repeats;
  /// Heads of key and value; those of a query are a multiple.
  int64_t keyHeads = 1;
  int64_t queryHeads = 1;
};

/// Reads the op behind a tensor of scores, which stands at `map` of the labels.
MatchFailure readScoreProduct(mlir::Operation *op, mlir::AffineMap map,
                              const Weighing &weighing, ScoreProduct &product);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_ATTENTIONPRODUCTS_H
