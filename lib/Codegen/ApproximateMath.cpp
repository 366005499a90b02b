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

/// 2^x = 2^(n-1) * 2 p(f) with n = round(x), f in [-1/2, 1/2]; p is of degree 5
/// and closest to 2^f relative to it (error 7.5e-8, in f32 2.2e-7; p(0) = 1).
/// Adding 1.5 * 2^23 + 126 to x rounds it and leaves n - 1 with a float's bias
/// in the low bits, where a shift makes an exponent of it. That of n = -126 is
/// 0 and stands for 0, so from 2^-125.5 down the result is 0; from 2^128 up it
/// is +inf. A NaN goes through all steps, so none of them asks for it.
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
    // One instruction each, which gives the second operand where one is NaN.
    auto clamp = [&](arith::CmpFPredicate past, double bound, Value value) {
      Value limit = constant(bound);
      Value beyond = arith::CmpFOp::create(b, loc, past, limit, value);
      return arith::SelectOp::create(b, loc, beyond, limit, value);
    };
    Value clamped = clamp(arith::CmpFPredicate::OGT, -126.0, x);
    clamped = clamp(arith::CmpFPredicate::OLT, 128.0, clamped);
    Value magic = constant(0x1.8p23 + 126);
    Value shifted = arith::AddFOp::create(b, loc, clamped, magic);
    Value n = arith::SubFOp::create(b, loc, shifted, magic);
    Value f = arith::SubFOp::create(b, loc, clamped, n);
    Value p = constant(2.655294491e-3);
    for (double coefficient :
         {1.935108192e-2, 1.110142618e-1, 4.804424047e-1, 1.386293888, 2.0})
      p = math::FmaOp::create(b, loc, p, f, constant(coefficient));
    auto intType = VectorType::get(type.getShape(), b.getI32Type());
    Value exponent = arith::ShLIOp::create(
        b, loc, arith::BitcastOp::create(b, loc, intType, shifted),
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(intType, 23)));
    b.replaceOpWithNewOp<arith::MulFOp>(
        op, p, arith::BitcastOp::create(b, loc, type, exponent));
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
