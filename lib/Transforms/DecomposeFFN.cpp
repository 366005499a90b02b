//===- DecomposeFFN.cpp - Feed-forward layers as linear layers - -*- C++
//-*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Transforms/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_DECOMPOSEFFN
#include "attune/Transforms/Passes.h.inc"

namespace {
/// The hidden layer: f32, as wide as the down projection is deep. The width is
/// the second dimension of a plain matrix and of packed panels alike.
RankedTensorType hiddenType(RankedTensorType input, Value down) {
  SmallVector<int64_t> shape(input.getShape());
  shape.back() = cast<RankedTensorType>(down.getType()).getDimSize(1);
  return RankedTensorType::get(shape, Float32Type::get(input.getContext()));
}

struct DecomposePlain final : OpRewritePattern<FFNOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(FFNOp op,
                                PatternRewriter &rewriter) const override {
    auto hidden = LinearOp::create(
        rewriter, op.getLoc(),
        hiddenType(op.getInput().getType(), op.getDown()), op.getInput(),
        op.getUp(), op.getUpBias(), /*residual=*/Value(),
        op.getActivationAttr(), /*gated=*/UnitAttr(), /*scale=*/FloatAttr());
    auto identity = ActivationAttr::get(op.getContext(), Activation::Identity);
    rewriter.replaceOpWithNewOp<LinearOp>(
        op, op.getType(), hidden, op.getDown(), op.getDownBias(),
        op.getResidual(), identity, UnitAttr(), FloatAttr());
    return success();
  }
};

struct DecomposeGated final : OpRewritePattern<GatedFFNOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(GatedFFNOp op,
                                PatternRewriter &rewriter) const override {
    auto hidden =
        LinearOp::create(rewriter, op.getLoc(),
                         hiddenType(op.getInput().getType(), op.getDown()),
                         op.getInput(), op.getGateUp(), op.getGateUpBias(),
                         /*residual=*/Value(), op.getActivationAttr(),
                         rewriter.getUnitAttr(), /*scale=*/FloatAttr());
    auto identity = ActivationAttr::get(op.getContext(), Activation::Identity);
    rewriter.replaceOpWithNewOp<LinearOp>(
        op, op.getType(), hidden, op.getDown(), op.getDownBias(),
        op.getResidual(), identity, UnitAttr(), FloatAttr());
    return success();
  }
};

struct DecomposeFFN final : impl::DecomposeFFNBase<DecomposeFFN> {
  using Base::Base;
  void runOnOperation() override {
    getOperation()->walk([&](Operation *op) {
      if (isa<FFNOp, GatedFFNOp>(op))
        ++numDecomposed;
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<DecomposePlain, DecomposeGated>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
  }
};
} // namespace
} // namespace attune
