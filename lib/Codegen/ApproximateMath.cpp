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
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_APPROXIMATEMATH
#include "attune/Codegen/Passes.h.inc"

namespace {

Value splat(PatternRewriter &b, Location loc, Type type, double value) {
  TypedAttr constant = b.getF32FloatAttr(static_cast<float>(value));
  if (auto vector = dyn_cast<VectorType>(type))
    constant = DenseElementsAttr::get(vector, static_cast<float>(value));
  return arith::ConstantOp::create(b, loc, constant);
}

/// 2^x = 2^n p(f) with n = round(x), f in [-1/2, 1/2]; p is of degree 5 and
/// closest to 2^f relative to it (error 7.5e-8, in f32 2.2e-7; p(0) = 1), or of
/// degree 3 (error 1.02e-4) where `afn` allows that. From 2^-125.5 down, where
/// n is -126, the result is 0; from 2^128 up it is +inf.
struct ExpandExp2 final : OpRewritePattern<math::Exp2Op> {
  ExpandExp2(MLIRContext *context, bool scales)
      : OpRewritePattern(context), scales(scales) {}

  LogicalResult matchAndRewrite(math::Exp2Op op,
                                PatternRewriter &b) const override {
    auto type = dyn_cast<VectorType>(op.getType());
    if (!type || !type.getElementType().isF32())
      return b.notifyMatchFailure(op, "vectors of f32 only");
    bool whole = type.getRank() == 1 && !type.isScalable() &&
                 type.getDimSize(0) % kScaled == 0;
    b.replaceOp(op, scales && whole ? byScaling(op, type, b)
                                    : byExponents(op, type, b));
    return success();
  }

private:
  /// Numbers that one instruction scales.
  static constexpr int64_t kScaled = 16;

  /// scale * p(f), for a scale that is a power of two.
  static Value polynomial(math::Exp2Op op, PatternRewriter &b, Value f,
                          double scale) {
    static constexpr double exact[] = {1.3276472455e-3, 9.67554096e-3,
                                       5.55071309e-2,   2.4022120235e-1,
                                       6.93146944e-1,   1.0};
    static constexpr double rough[] = {5.500893112e-2, 2.422109593e-1,
                                       6.932829271e-1, 1.0};
    bool isRough =
        bitEnumContainsAll(op.getFastmath(), arith::FastMathFlags::afn);
    ArrayRef<double> coefficients = isRough ? ArrayRef(rough) : ArrayRef(exact);
    Location loc = op.getLoc();
    Value p = splat(b, loc, op.getType(), scale * coefficients[0]);
    for (double coefficient : coefficients.drop_front())
      p = math::FmaOp::create(b, loc, p, f,
                              splat(b, loc, op.getType(), scale * coefficient));
    return p;
  }

  /// 2^(n-1) * 2 p(f): adding 1.5 * 2^23 + 126 to x rounds it and leaves n - 1
  /// with a float's bias in the low bits, where a shift makes an exponent of
  /// it. That of n = -126 is 0 and stands for 0. A NaN goes through all steps,
  /// so none of them asks for it.
  static Value byExponents(math::Exp2Op op, VectorType type,
                           PatternRewriter &b) {
    Location loc = op.getLoc();
    auto constant = [&](double value) { return splat(b, loc, type, value); };
    // One instruction each, which gives the second operand where one is NaN.
    auto clamp = [&](arith::CmpFPredicate past, double bound, Value value) {
      Value limit = constant(bound);
      Value beyond = arith::CmpFOp::create(b, loc, past, limit, value);
      return arith::SelectOp::create(b, loc, beyond, limit, value);
    };
    Value clamped = clamp(arith::CmpFPredicate::OGT, -126.0, op.getOperand());
    clamped = clamp(arith::CmpFPredicate::OLT, 128.0, clamped);
    Value magic = constant(0x1.8p23 + 126);
    Value shifted = arith::AddFOp::create(b, loc, clamped, magic);
    Value n = arith::SubFOp::create(b, loc, shifted, magic);
    Value p = polynomial(op, b, arith::SubFOp::create(b, loc, clamped, n), 2.0);
    auto intType = VectorType::get(type.getShape(), b.getI32Type());
    Value exponent = arith::ShLIOp::create(
        b, loc, arith::BitcastOp::create(b, loc, intType, shifted),
        arith::ConstantOp::create(b, loc, DenseElementsAttr::get(intType, 23)));
    return arith::MulFOp::create(
        b, loc, p, arith::BitcastOp::create(b, loc, type, exponent));
  }

  /// The same bits by VSCALEFPS, which multiplies by 2^n whatever n is, in
  /// three steps fewer. Where n is infinite f is NaN, and the result +inf as
  /// Intel's manual has it, or 0 as below.
  static Value byScaling(math::Exp2Op op, VectorType type, PatternRewriter &b) {
    Location loc = op.getLoc();
    Value x = op.getOperand();
    Value n = math::RoundEvenOp::create(b, loc, x);
    Value p = polynomial(op, b, arith::SubFOp::create(b, loc, x, n), 1.0);
    // Not `greater`: a NaN stays one.
    Value usual = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UGT, n,
                                        splat(b, loc, type, -126.0));
    VectorType part = VectorType::get(kScaled, b.getF32Type());
    Value zero = splat(b, loc, part, 0.0);
    Value all = arith::ConstantOp::create(b, loc, b.getI16IntegerAttr(-1));
    Value rounding = arith::ConstantOp::create(
        b, loc, b.getI32IntegerAttr(/*_MM_FROUND_CUR_DIRECTION=*/4));
    Value result;
    int64_t lanes = type.getDimSize(0);
    for (int64_t lane = 0; lane < lanes; lane += kScaled) {
      auto of = [&](Value whole) -> Value {
        if (lanes == kScaled)
          return whole;
        return vector::ExtractStridedSliceOp::create(b, loc, whole, lane,
                                                     kScaled, 1);
      };
      // Operands are in the intrinsic's order, whatever their names here.
      Value power = x86vector::MaskScaleFOp::create(b, loc, part, of(p), of(n),
                                                    zero, all, rounding);
      power = arith::SelectOp::create(b, loc, of(usual), power, zero);
      if (lanes == kScaled)
        return power;
      if (!result)
        result = splat(b, loc, type, 0.0);
      result =
          vector::InsertStridedSliceOp::create(b, loc, power, result, lane, 1);
    }
    return result;
  }

  bool scales;
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

/// erf(x) = x P(x^2) / Q(x^2) up to |x| = 3.92, where f32 rounds it to 1, and
/// +-1 beyond. P and Q, of degrees 6 and 4, are closest to erf(x) / x with
/// errors weighted by x, so the absolute error of erf is even (4.6e-8, in f32
/// 3.1e-7). A NaN is not beyond and goes through all steps.
struct ExpandErf final : OpRewritePattern<math::ErfOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::ErfOp op,
                                PatternRewriter &b) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return b.notifyMatchFailure(op, "f32 only");
    Location loc = op.getLoc();
    Value x = op.getOperand();
    Value square = arith::MulFOp::create(b, loc, x, x);
    auto polynomial = [&](std::initializer_list<double> highestFirst) {
      Value sum = splat(b, loc, type, *highestFirst.begin());
      for (double coefficient : llvm::drop_begin(highestFirst))
        sum = math::FmaOp::create(b, loc, sum, square,
                                  splat(b, loc, type, coefficient));
      return sum;
    };
    Value above = polynomial({1.989912057e-8, -1.978933597e-6, 1.462469069e-4,
                              3.872106317e-3, 5.109700561e-2, 2.038294971e-1,
                              1.128378987});
    Value below = polynomial(
        {9.984783828e-4, 1.469259895e-2, 1.166198701e-1, 5.139696598e-1, 1.0});
    Value inside = arith::DivFOp::create(
        b, loc, arith::MulFOp::create(b, loc, x, above), below);
    Value outside =
        math::CopySignOp::create(b, loc, splat(b, loc, type, 1.0), x);
    Value size = math::AbsFOp::create(b, loc, x);
    Value beyond = arith::CmpFOp::create(b, loc, arith::CmpFPredicate::OGE,
                                         size, splat(b, loc, type, 3.92));
    b.replaceOpWithNewOp<arith::SelectOp>(op, beyond, outside, inside);
    return success();
  }
};

/// 1 / sqrt(x) = y (1 + e q(e)), where y comes from x by halving its exponent,
/// which an integer shift does (Lomont 2003), and e = x y^2 - 1, rounded once.
/// The constant makes |e| smallest (0.0682) and q, of degree 3, brings the
/// result closest there, relative to it (2.3e-8, in f32 1.0e-7; a root and a
/// quotient: 9e-8). Unlike a CPU's own estimate it has the same bits
/// everywhere. Whatever is not positive and normal gets the root and the
/// quotient.
struct ExpandRsqrt final : OpRewritePattern<math::RsqrtOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(math::RsqrtOp op,
                                PatternRewriter &b) const override {
    Type type = op.getType();
    if (!getElementTypeOrSelf(type).isF32())
      return b.notifyMatchFailure(op, "f32 only");
    Location loc = op.getLoc();
    auto constant = [&](double value) { return splat(b, loc, type, value); };
    auto vector = dyn_cast<VectorType>(type);
    Type intType = b.getI32Type();
    if (vector)
      intType = vector.clone(intType);
    auto integer = [&](int32_t value) -> Value {
      TypedAttr attr = b.getI32IntegerAttr(value);
      if (vector)
        attr = DenseElementsAttr::get(cast<VectorType>(intType), value);
      return arith::ConstantOp::create(b, loc, attr);
    };
    Value x = op.getOperand();
    Value bits = arith::BitcastOp::create(b, loc, intType, x);
    Value y = arith::BitcastOp::create(
        b, loc, type,
        arith::SubIOp::create(
            b, loc, integer(0x5f374740),
            arith::ShRUIOp::create(b, loc, bits, integer(1)).getResult()));
    Value e = math::FmaOp::create(b, loc, arith::MulFOp::create(b, loc, x, y),
                                  y, constant(-1.0));
    Value q = constant(0.27494487);
    for (double coefficient : {-0.313931435, 0.374997705, -0.499998331})
      q = math::FmaOp::create(b, loc, q, e, constant(coefficient));
    Value near =
        math::FmaOp::create(b, loc, arith::MulFOp::create(b, loc, y, e), q, y);
    // From 2^-126 up and below infinity, as the bits have it.
    Value usual = arith::CmpIOp::create(
        b, loc, arith::CmpIPredicate::ult,
        arith::SubIOp::create(b, loc, bits, integer(0x00800000)),
        integer(0x7f000000));
    Value all = usual;
    if (vector)
      all = vector::ReductionOp::create(b, loc, vector::CombiningKind::AND,
                                        usual);
    auto exact = [&](OpBuilder &inner, Location loc) {
      Value quotient = arith::DivFOp::create(
          inner, loc, constant(1.0),
          math::SqrtOp::create(inner, loc, x).getResult());
      if (vector)
        quotient = arith::SelectOp::create(inner, loc, usual, near, quotient);
      scf::YieldOp::create(inner, loc, quotient);
    };
    b.replaceOpWithNewOp<scf::IfOp>(
        op, all,
        [&](OpBuilder &inner, Location loc) {
          scf::YieldOp::create(inner, loc, near);
        },
        exact);
    return success();
  }
};

struct ApproximateMath final : impl::ApproximateMathBase<ApproximateMath> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ExpandErf, ExpandExp, ExpandRsqrt>(&getContext());
    patterns.add<ExpandExp2>(&getContext(), scales);
    populatePolynomialApproximateTanhPattern(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace
} // namespace attune
