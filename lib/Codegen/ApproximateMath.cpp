//===- ApproximateMath.cpp - Vector functions as polynomials ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Math/Transforms/Passes.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "attune/Codegen/Passes.h.inc"

namespace {

Value splat(PatternRewriter &b, Location loc, VectorType type, double value) {
  return arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(type, static_cast<float>(value)));
}

/// 2^x = 2^n * p(f) with n = round(x), f in [-1/2, 1/2]; p interpolates 2^f
/// at the Chebyshev nodes of degree 6 (relative error 7.3e-8 in f32). n is
/// added to the exponent bits. Below -126 the result is 0 (no subnormals), so
/// that exp2(-inf) = 0; above 128 it is +inf.
struct ExpandExp2 final : OpRewritePattern<math::Exp2Op> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &b) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isF32())
      return b.notifyMatchFailure(op, "vectors of f32 only");
    Location loc = op.getLoc();
    auto constant = [&](double value) { return splat(b, loc, type, value); };
    Value x = op.getOperand();
    // minimumf and maximumf would keep a NaN at more cost; compare at the end.
    Value clamped = arith::MaxNumFOp::create(b, loc, x, constant(-127.0));
    clamped = arith::MinNumFOp::create(b, loc, clamped, constant(128.0));
    Value n = math::RoundEvenOp::create(b, loc, clamped);
    Value f = arith::SubFOp::create(b, loc, clamped, n);
    Value p = constant(1.546144470e-4);
    for (double coefficient : {1.340042818e-3, 9.618056679e-3, 5.550327227e-2,
                               2.402265092e-1, 6.931472067e-1, 1.0})
      p = math::FmaOp::create(b, loc, p, f, constant(coefficient));
    auto intType = VectorType::get(type.getShape(), b.getI32Type());
    Value bits = arith::FPToSIOp::create(b, loc, intType, n);
    auto integer = [&](int32_t value) -> Value {
      return arith::ConstantOp::create(b, loc,
                                       DenseElementsAttr::get(intType, value));
    };
    // Added to the exponent of p, since 2^n itself is out of range at the ends:
    // p is at least 1 where n = -126, and below 1 where n = 128 but for x =
    // 128, whose bits become those of +inf.
    Value scaled = arith::ShLIOp::create(b, loc, bits, integer(23));
    scaled = arith::AddIOp::create(
        b, loc, arith::BitcastOp::create(b, loc, intType, p), scaled);
    Value result = arith::BitcastOp::create(b, loc, type, scaled);
    Value tiny = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, x,
                                       constant(-126.0));
    result = arith::SelectOp::create(b, loc, tiny, constant(0.0), result);
    // A NaN stays one.
    Value nan = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNO, x, x);
    b.replaceOpWithNewOp<arith::SelectOp>(op, nan, x, result);
    return success();
  }
};

/// exp(x) = 2^(x log2 e), with the product's rounding error carried along:
/// without it the relative error would grow with |x|.
struct ExpandExp final : OpRewritePattern<math::ExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ExpOp op,
                                PatternRewriter &b) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isF32())
      return b.notifyMatchFailure(op, "vectors of f32 only");
    Location loc = op.getLoc();
    constexpr double log2e = 1.4426950408889634;
    constexpr float high = static_cast<float>(log2e);
    Value x = op.getOperand();
    Value h = splat(b, loc, type, high);
    Value product = arith::MulFOp::create(b, loc, x, h);
    // error = x * h - product, exactly; plus x times the rest of log2 e.
    Value error = math::FmaOp::create(
        b, loc, x, h, arith::NegFOp::create(b, loc, product).getResult());
    error = math::FmaOp::create(b, loc, x, splat(b, loc, type, log2e - high),
                                error);
    Value power = math::Exp2Op::create(b, loc, product);
    // 2^(p + e) = 2^p (1 + e ln 2); e is below 2^-16, e^2 does not matter. An
    // infinite x has no error (inf - inf): the power alone is right.
    Value factor = math::FmaOp::create(b, loc, error,
                                       splat(b, loc, type, 0.6931471805599453),
                                       splat(b, loc, type, 1.0));
    Value result = arith::MulFOp::create(b, loc, power, factor);
    Value size = math::AbsFOp::create(b, loc, x);
    Value usual = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OLT, size,
                                        splat(b, loc, type, 128.0));
    b.replaceOpWithNewOp<arith::SelectOp>(op, usual, result, power);
    return success();
  }
};

struct ApproximateMath final : impl::ApproximateMathBase<ApproximateMath> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandExp, ExpandExp2>(&getContext());
    // tanh and erf from upstream; exp and exp2 are ours, the benefit decides.
    populatePolynomialApproximateTanhPattern(patterns);
    populatePolynomialApproximateErfPattern(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace attune
