//===- UnfuseAttention.cpp - Attention as a textbook writes it -*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneScores.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_UNFUSEATTENTION
#include "attune/Transforms/Passes.h.inc"

namespace {
struct Unfuse final : OpRewritePattern<AttentionOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    replaceWithLadder(rewriter, op);
    return success();
  }
};

/// Weights from a log-sum-exp are the softmax of the scores that it was made
/// of, which stands before them by now.
struct UnfuseWeights final : OpRewritePattern<AttentionWeightsOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(AttentionWeightsOp op,
                                PatternRewriter &rewriter) const override {
    auto lse = op.getLse().getDefiningOp<LogSumExpOp>();
    if (!lse)
      return rewriter.notifyMatchFailure(op, "its scores are not known");
    Location loc = op.getLoc();
    Value probs = SoftmaxOp::create(rewriter, loc, lse.getScores().getType(),
                                    lse.getScores(), lse.getSinks());
    // The heads asked for, where they are asked for.
    RankedTensorType type = op.getType();
    SmallVector<OpFoldResult> sizes =
        tensor::getMixedSizes(rewriter, loc, op.getDest());
    SmallVector<OpFoldResult> offsets(4, rewriter.getIndexAttr(0));
    offsets[1] = rewriter.getIndexAttr(op.getFromHead());
    SmallVector<OpFoldResult> strides(4, rewriter.getIndexAttr(1));
    Value heads = tensor::ExtractSliceOp::create(rewriter, loc, type, probs,
                                                 offsets, sizes, strides);
    SmallVector<AffineMap> maps(2, rewriter.getMultiDimIdentityMap(4));
    SmallVector<utils::IteratorType> loops(4, utils::IteratorType::parallel);
    rewriter.replaceOpWithNewOp<linalg::GenericOp>(
        op, type, heads, op.getDest(), maps, loops,
        [&](OpBuilder &b, Location loc, ValueRange args) {
          Value weight = args[0];
          if (op.getWhen())
            weight =
                arith::SelectOp::create(b, loc, op.getWhen(), args[0], args[1]);
          linalg::YieldOp::create(b, loc, weight);
        });
    return success();
  }
};

struct UnfuseAttention final : impl::UnfuseAttentionBase<UnfuseAttention> {
  using Base::Base;
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      numUnfused += isa<AttentionOp>(op);
      if (explainFusion && isa<AttentionOp, WeightedSumOp>(op))
        emitRemark(op->getLoc())
            << "not fused: the reference path was asked for, which writes "
               "every score to memory";
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<Unfuse, UnfuseWeights>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
} // namespace attune
