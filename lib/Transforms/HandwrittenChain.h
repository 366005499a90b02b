//===- HandwrittenChain.h - Attention written in linalg ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_HANDWRITTENCHAIN_H
#define ATTUNE_LIB_TRANSFORMS_HANDWRITTENCHAIN_H

#include "AttentionProducts.h"

#include "mlir/IR/PatternMatch.h"

namespace attune {

/// Added to, or hiding, scores: a tensor read at `map` of the labels.
struct ScoreTensor {
  mlir::Value value;
  mlir::AffineMap map;
  bool hides = false; // a mask that is true where a key is hidden

  explicit operator bool() const { return bool(value); }
};

/// An attention in linalg ops on tensors.
struct HandwrittenChain {
  /// The last op: the product with the values, or what divides it by the sums.
  mlir::Operation *root = nullptr;
  llvm::SmallVector<unsigned> resultLabels;
  Weighing weighing;
  ScoreProduct product;
  llvm::SmallVector<mlir::Operation *> links; // users before producers
  double scale = 1;
  std::optional<double> softcap;
  ScoreTensor bias, mask;
  CausalAlign causal = CausalAlign::None;
  std::optional<int64_t> window;
  /// The rounding of the source that attention does not do: "its scores to
  /// f16".
  std::string rounded;
};

/// The product that `op` is, or divides, if it may be the product of
/// probabilities and values.
mlir::Operation *findWeighing(mlir::Operation *op);

/// Reads the chain whose product with values is `weighing`.
MatchFailure matchHandwritten(mlir::Operation *weighing,
                              HandwrittenChain &chain);

/// Says why attention has no place for `tensor`, if so.
MatchFailure checkBroadcast(const ScoreTensor &tensor, llvm::StringRef what,
                            const HandwrittenChain &chain);

/// Replaces the chain by an attention op, which is returned.
AttentionOp fuseHandwritten(HandwrittenChain &chain,
                            mlir::RewriterBase &rewriter);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_HANDWRITTENCHAIN_H
