//===- KernelMath.cpp - Functions that PTX does not have --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/SinCos.h"
#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_KERNELMATH
#include "attune/Target/PTX/Passes.h.inc"

namespace {

/// f(x) of one number as that of a vector of one.
template <typename Op> struct ScalarToVector final : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "single f32 only");
    Location loc = op.getLoc();
    auto type = VectorType::get({1}, op.getType());
    Value vector =
        vector::BroadcastOp::create(rewriter, loc, type, op.getOperand());
    vector = Op::create(rewriter, loc, vector);
    rewriter.replaceOpWithNewOp<vector::ExtractOp>(op, vector, 0);
    return success();
  }
};

/// A sine or a cosine as arithmetic.
template <typename Op> struct ExpandSinCos final : OpRewritePattern<Op> {
  using OpRewritePattern<Op>::OpRewritePattern;
  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    if (!op.getType().isF32())
      return rewriter.notifyMatchFailure(op, "single f32 only");
    KernelBuilder k(rewriter, op.getLoc());
    auto [sine, cosine] = emitSinCos(k, k.splat(op.getOperand(), 1));
    rewriter.replaceOpWithNewOp<vector::ExtractOp>(
        op, std::is_same_v<Op, math::SinOp> ? sine : cosine, 0);
    return success();
  }
};

struct KernelMath final : impl::KernelMathBase<KernelMath> {
  using Base::Base;
  void runOnOperation() override {
    SmallVector<Operation *> inside;
    getOperation().walk([&](Operation *op) {
      if (isa<math::ExpOp, math::Exp2Op, math::LogOp, math::SinOp, math::CosOp>(
              op))
        inside.push_back(op);
    });
    RewritePatternSet patterns(&getContext());
    patterns.add<ScalarToVector<math::ExpOp>, ScalarToVector<math::Exp2Op>,
                 ExpandSinCos<math::SinOp>, ExpandSinCos<math::CosOp>>(
        &getContext());
    populateMathPolynomialApproximationPatterns(
        patterns, [](StringRef name) { return name == "math.log"; });
    // They make new ones of their kind.
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps);
    if (failed(applyOpPatternsGreedily(inside, std::move(patterns), config)))
      return signalPassFailure();
    WalkResult known = getOperation().walk([](Operation *op) {
      if (!isa<math::MathDialect>(op->getDialect()) || hasCode(op))
        return WalkResult::advance();
      op->emitOpError("of type ")
          << op->getResult(0).getType() << " cannot be computed on a GPU";
      return WalkResult::interrupt();
    });
    if (known.wasInterrupted())
      signalPassFailure();
  }

  /// Whether there is an instruction, or a polynomial in
  /// attune-approximate-math.
  static bool hasCode(Operation *op) {
    if (isa<math::SqrtOp, math::FmaOp, math::AbsFOp, math::AbsIOp,
            math::RoundEvenOp, math::FloorOp, math::CeilOp, math::TruncOp,
            math::CopySignOp, math::CountLeadingZerosOp,
            math::CountTrailingZerosOp, math::CtPopOp>(op))
      return true;
    return isa<math::ExpOp, math::Exp2Op, math::TanhOp, math::ErfOp,
               math::RsqrtOp>(op) &&
           getElementTypeOrSelf(op->getResult(0)).isF32();
  }
};
} // namespace
} // namespace attune
