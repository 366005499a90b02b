//===- Loss.cpp - Cross-entropy ---------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace attune {
namespace {
using Values = KernelBuilder::Values;

/// Every row's term in parallel, then their sum in order.
struct LowerCrossEntropy final : OpRewritePattern<CrossEntropyOp> {
  LowerCrossEntropy(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(CrossEntropyOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getLogits().getType());
    if (type.getRank() < 2 || type.getRank() > 3 ||
        type.isDynamicDim(type.getRank() - 1))
      return rewriter.notifyMatchFailure(
          op, "logits of rank 2 or 3 and of static width only");
    KernelBuilder k(rewriter, op.getLoc());
    Value logits = asRows(k, op.getLogits()), targets = op.getTargets();
    if (type.getRank() == 3)
      targets = tensor::CollapseShapeOp::create(
          rewriter, op.getLoc(), targets,
          ArrayRef<ReassociationIndices>{{0, 1}});
    Value dest = emptyRows(k, op.getLogits(), 1, rewriter.getF32Type());
    Value terms =
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          auto [target, counts] = targetOf(op, k, targets, row);
          Value term = termOf(k, logits, row, target);
          term = arith::SelectOp::create(k.b, k.loc, counts, term, k.f32(0));
          Value zero = k.index(0);
          return tensor::InsertOp::create(k.b, k.loc, term, tile,
                                          ValueRange{zero, zero})
              .getResult();
        });
    rewriter.replaceOp(op, mean(op, k, terms, targets));
    return success();
  }

  /// A row's target, 0 if it does not count, and whether it does.
  static std::pair<Value, Value> targetOf(CrossEntropyOp op, KernelBuilder &k,
                                          Value targets, Value row) {
    Value id = tensor::ExtractOp::create(k.b, k.loc, targets, row);
    Value ignored =
        arith::ConstantIntOp::create(k.b, k.loc, op.getIgnore(), 64);
    Value counts = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ne,
                                         id, ignored);
    Value target =
        arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), id);
    target = arith::SelectOp::create(k.b, k.loc, counts, target, k.index(0));
    return {target, counts};
  }

  /// log(sum_v exp(x[v] - m)) + (m - x[target]) with the row's maximum m.
  Value termOf(KernelBuilder &k, Value logits, Value row, Value target) const {
    int64_t width = cast<RankedTensorType>(logits.getType()).getDimSize(1);
    const double infinity = std::numeric_limits<double>::infinity();
    auto fold = [&](double start, vector::CombiningKind kind,
                    function_ref<Value(KernelBuilder &, Value, Value)> next) {
      Value folded = forColumns(
          k, width, lanes, k.splat(start, lanes),
          [&](KernelBuilder &k, Value column, Value valid, ValueRange sofar) {
            Value x = k.load(logits, {row, column}, lanes, valid, -infinity);
            return Values{next(k, x, sofar[0])};
          })[0];
      return vector::ReductionOp::create(k.b, k.loc, kind, folded).getResult();
    };
    Value max = fold(-infinity, vector::CombiningKind::MAXIMUMF,
                     [](KernelBuilder &k, Value x, Value sofar) -> Value {
                       return arith::MaximumFOp::create(k.b, k.loc, x, sofar);
                     });
    Value shift = k.splat(max, lanes);
    Value sum = fold(0, vector::CombiningKind::ADD,
                     [&](KernelBuilder &k, Value x, Value sofar) -> Value {
                       Value shifted =
                           arith::SubFOp::create(k.b, k.loc, x, shift);
                       Value e = math::ExpOp::create(k.b, k.loc, shifted);
                       return arith::AddFOp::create(k.b, k.loc, sofar, e);
                     });
    // Functions are polynomials on vectors, so a vector of one number it is.
    Value logarithm = vector::ExtractOp::create(
        k.b, k.loc, math::LogOp::create(k.b, k.loc, k.splat(sum, lanes)),
        int64_t{0});
    Value chosen = k.loadScalar(logits, {row, target});
    Value distance = arith::SubFOp::create(k.b, k.loc, max, chosen);
    return arith::AddFOp::create(k.b, k.loc, logarithm, distance);
  }

  static Value mean(CrossEntropyOp op, KernelBuilder &k, Value terms,
                    Value targets) {
    Type f64 = k.b.getF64Type();
    Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getF64FloatAttr(0));
    Value one = arith::ConstantOp::create(k.b, k.loc, k.b.getF64FloatAttr(1));
    Values sums = k.forLoop(
        k.index(0), k.dim(terms, 0), 1, {zero, zero},
        [&](KernelBuilder &k, Value row, ValueRange sofar) {
          Value counts = targetOf(op, k, targets, row).second;
          Value term = arith::ExtFOp::create(
              k.b, k.loc, f64, k.loadScalar(terms, {row, k.index(0)}));
          Value unit = arith::SelectOp::create(k.b, k.loc, counts, one, zero);
          return Values{arith::AddFOp::create(k.b, k.loc, sofar[0], term),
                        arith::AddFOp::create(k.b, k.loc, sofar[1], unit)};
        });
    Value mean = arith::DivFOp::create(k.b, k.loc, sums[0], sums[1]);
    mean = arith::TruncFOp::create(k.b, k.loc, k.b.getF32Type(), mean);
    return tensor::FromElementsOp::create(
        k.b, k.loc, cast<RankedTensorType>(op.getType()), mean);
  }
  int64_t lanes;
};

} // namespace

void populateLossPatterns(RewritePatternSet &patterns,
                          const VectorLowering &lowering) {
  patterns.add<LowerCrossEntropy>(patterns.getContext(), lowering);
}

} // namespace attune
