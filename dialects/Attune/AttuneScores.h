//===- AttuneScores.h - What happens to a score of attention ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SCORES_H
#define ATTUNE_SCORES_H

#include "Attune/AttuneDialect.h"

#include "mlir/IR/PatternMatch.h"

#include <optional>
#include <type_traits>

namespace attune {

/// The changes of an op to attention scores, in its operands and attributes:
/// `mask_scores`, `attention`, `attention_weights`, `online_attention` or
/// `attention_into`. Null, 1 or unset: nothing. `mask_scores` has the formulas;
/// in kernels they are ScoreArithmetic::modify and KeysInReach of
/// attune/Conversion/ScoreKernels.h. PyTorch's FlexAttention calls such a list
/// score_mod and mask_mod.
struct ScoreModifiers {
  double scale = 1;
  std::optional<double> softcap;
  mlir::Value bias, diagonals, slopes;
  mlir::Value mask, lengths, blocks;
  llvm::ArrayRef<int64_t> blockSizes; ///< queries and keys of one of `blocks`
  CausalAlign causal = CausalAlign::None;
  std::optional<int64_t> window;

  template <typename Op> static ScoreModifiers of(Op op) {
    ScoreModifiers all;
    if constexpr (!std::is_same_v<Op, MaskScoresOp>)
      all.scale = op.getScale().convertToDouble();
    if (auto cap = op.getSoftcap())
      all.softcap = cap->convertToDouble();
    all.bias = op.getBias();
    all.diagonals = op.getDiagonals();
    all.slopes = op.getSlopes();
    all.mask = op.getMask();
    all.causal = op.getCausal();
    if (auto window = op.getWindow())
      all.window = int64_t(*window);
    // The loops around a step have seen to these.
    if constexpr (!std::is_same_v<Op, OnlineAttentionOp> &&
                  !std::is_same_v<Op, AttentionWeightsOp>) {
      all.lengths = op.getLengths();
      all.blocks = op.getBlocks();
      if (auto sizes = op.getBlockSizes())
        all.blockSizes = *sizes;
    }
    return all;
  }

  /// Whether some later keys are hidden.
  bool isCausal() const { return causal != CausalAlign::None; }
  /// Whether some keys are hidden for their distance from the query.
  bool hidesByDistance() const { return isCausal() || window; }
  /// Whether memory has a number for each score.
  bool readsScores() const { return mask || bias || diagonals; }
  /// Whether scores that are not hidden are products times `scale`.
  bool addsNothing() const {
    return !softcap && !bias && !diagonals && !slopes;
  }
  /// Whether all scores are.
  bool onlyScales() const {
    return addsNothing() && !mask && !lengths && !blocks && !hidesByDistance();
  }
};

/// Replaces attention with the ladder that a textbook writes, which keeps all
/// scores in memory: `similarity`, `mask_scores` if there is something to mask
/// or add, `softmax`, `weighted_sum`, and `log_sum_exp` for a second result.
void replaceWithLadder(mlir::RewriterBase &rewriter, AttentionOp op);

} // namespace attune

#endif // ATTUNE_SCORES_H
