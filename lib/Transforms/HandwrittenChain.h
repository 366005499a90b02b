//===- HandwrittenChain.h - Attention written in linalg ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_HANDWRITTENCHAIN_H
#define ATTUNE_LIB_TRANSFORMS_HANDWRITTENCHAIN_H

#include "AttentionChain.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/PatternMatch.h"

namespace attune {

/// A product over one dimension: [batch..., m, k] times a matrix per batch.
struct Contraction {
  mlir::linalg::LinalgOp op;
  unsigned rank = 0; // of the result
  /// The right side is [batch..., n, k], as keys are; else [batch..., k, n], as
  /// values are.
  bool rightByRows = false;

  mlir::Value left() { return op.getDpsInputs()[0]; }
  mlir::Value right() { return op.getDpsInputs()[1]; }
};

/// An attention in linalg ops on tensors of rank 2 to 4.
struct HandwrittenChain {
  Contraction scores, weighing;
  llvm::SmallVector<mlir::Operation *> links;
  double scale = 1;
  /// Added to, or hiding, scores; at some of their indices, keys among them.
  mlir::Value bias, mask;
  mlir::AffineMap biasMap, maskMap;
};

/// True if `op` averages something with the rows of a softmax, so that one may
/// ask why it is no attention.
bool looksLikeWeighing(mlir::Operation *op);

/// Reads the chain that ends in `root`.
Refusal matchHandwritten(mlir::Operation *root, HandwrittenChain &chain);

/// Replaces the chain by an attention op, which is returned.
AttentionOp fuseHandwritten(HandwrittenChain &chain,
                            mlir::RewriterBase &rewriter);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_HANDWRITTENCHAIN_H
