//===- Norms.cpp - Layer and root-mean-square normalisation -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attune {
namespace {

/// Sum over a row of `term(vector)`, as a scalar. Lanes beyond the row count as
/// zero: `term` sees zeros there unless it shifts, hence `valid`.
Value sumRow(KernelBuilder &k, Value input, Value row, int64_t width,
             int64_t lanes, function_ref<Value(KernelBuilder &, Value)> term) {
  Value total = forColumns(
      k, width, lanes, k.splat(0.0, lanes),
      [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
        Value value = term(k, k.load(input, {row, column}, lanes, valid));
        if (valid) {
          Value mask = vector::CreateMaskOp::create(
              k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), valid);
          value = arith::SelectOp::create(k.b, k.loc, mask, value,
                                          k.splat(0.0, lanes));
        }
        return KernelBuilder::Values{
            arith::AddFOp::create(k.b, k.loc, carried[0], value)};
      })[0];
  return vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD,
                                     total);
}

/// 1 / sqrt(sum / width + eps), in every lane.
Value inverseDeviation(KernelBuilder &k, Value sum, int64_t width, double eps,
                       int64_t lanes) {
  Value mean = arith::DivFOp::create(k.b, k.loc, sum, k.f32(width));
  Value root = math::SqrtOp::create(
      k.b, k.loc,
      arith::AddFOp::create(k.b, k.loc, mean, k.f32(eps)).getResult());
  return k.splat(arith::DivFOp::create(k.b, k.loc, k.f32(1.0), root), lanes);
}

struct LowerLayerNorm final : OpRewritePattern<LayerNormOp> {
  LowerLayerNorm(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(LayerNormOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getRank() < 2 || type.getRank() > 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    int64_t width = type.getShape().back();
    KernelBuilder k(rewriter, op.getLoc());
    Value input = asRows(k, op.getInput());
    Value dest = emptyRows(k, op.getInput(), width, type.getElementType());
    Value rows =
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          Value sum = sumRow(k, input, row, width, lanes,
                             [](KernelBuilder &, Value x) { return x; });
          Value mean = k.splat(
              arith::DivFOp::create(k.b, k.loc, sum, k.f32(width)), lanes);
          // Two passes: the mean first, then squares of what is left, which
          // does not cancel for rows far from zero.
          Value squares =
              sumRow(k, input, row, width, lanes,
                     [&](KernelBuilder &k, Value x) -> Value {
                       Value d = arith::SubFOp::create(k.b, k.loc, x, mean);
                       return arith::MulFOp::create(k.b, k.loc, d, d);
                     });
          Value scale = inverseDeviation(k, squares, width,
                                         op.getEps().convertToDouble(), lanes);
          return forColumns(
              k, width, lanes, tile,
              [&](KernelBuilder &k, Value column, Value valid,
                  ValueRange carried) {
                Value x = k.load(input, {row, column}, lanes, valid);
                x = arith::SubFOp::create(k.b, k.loc, x, mean);
                x = arith::MulFOp::create(k.b, k.loc, x, scale);
                if (op.getGamma())
                  x = arith::MulFOp::create(
                      k.b, k.loc, x,
                      k.load(op.getGamma(), {column}, lanes, valid));
                if (op.getBeta())
                  x = arith::AddFOp::create(
                      k.b, k.loc, x,
                      k.load(op.getBeta(), {column}, lanes, valid));
                return KernelBuilder::Values{
                    k.store(x, carried[0], {k.index(0), column}, valid)};
              })[0];
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }
  int64_t lanes;
};

struct LowerRMSNorm final : OpRewritePattern<RMSNormOp> {
  LowerRMSNorm(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(RMSNormOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t rank = type.getRank(), width = type.getShape().back();
    if (rank < 2 || rank > 4)
      return rewriter.notifyMatchFailure(op, "rank 2 to 4 only");
    KernelBuilder k(rewriter, op.getLoc());
    if (rank == 4)
      return perHead(op, k, rewriter);
    Value input = asRows(k, op.getInput());
    Value dest = emptyRows(k, op.getInput(), width, type.getElementType());
    Value rows =
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          Value squares = sumRow(k, input, row, width, lanes, square);
          auto load = [&](KernelBuilder &k, Value, Value column, Value valid) {
            return k.load(input, {row, column}, lanes, valid);
          };
          return scaleRow(op, k, squares, width, load, tile, {k.index(0)});
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }

  static Value square(KernelBuilder &k, Value x) {
    return arith::MulFOp::create(k.b, k.loc, x, x);
  }

  Value scaleRow(RMSNormOp op, KernelBuilder &k, Value squares, int64_t width,
                 function_ref<Value(KernelBuilder &, Value tile, Value column,
                                    Value valid)>
                     load,
                 Value tile, ArrayRef<Value> prefix) const {
    Value scale = inverseDeviation(k, squares, width,
                                   op.getEps().convertToDouble(), lanes);
    return forColumns(
        k, width, lanes, tile,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          Value x = load(k, carried[0], column, valid);
          x = arith::MulFOp::create(k.b, k.loc, x, scale);
          if (op.getGamma()) {
            Value gamma = k.load(op.getGamma(), {column}, lanes, valid);
            if (!op.getOffset().isZero())
              gamma = arith::AddFOp::create(
                  k.b, k.loc, gamma,
                  k.splat(op.getOffset().convertToDouble(), lanes));
            x = arith::MulFOp::create(k.b, k.loc, x, gamma);
          }
          SmallVector<Value> at(prefix);
          at.push_back(column);
          return KernelBuilder::Values{k.store(x, carried[0], at, valid)};
        })[0];
  }

  /// [B, H, T, Dh]: the norm of queries and keys, head by head, in place.
  LogicalResult perHead(RMSNormOp op, KernelBuilder &k,
                        PatternRewriter &rewriter) const {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t width = type.getDimSize(3);
    Value input = op.getInput();
    auto size = [&](int64_t i) { return getAsOpFoldResult(k.dim(input, i)); };
    OpFoldResult one = k.b.getIndexAttr(1), channels = k.b.getIndexAttr(width);
    Value tokens = k.dim(input, 2);
    Value result = k.forallTiles(
        {size(0), size(1)}, input,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{
              {ivs[0], ivs[1], k.index(0), k.index(0)},
              {one, one, getAsOpFoldResult(tokens), channels}};
        },
        [&](KernelBuilder &k, ValueRange, Value tile) {
          Value zero = k.index(0);
          return k.forLoop(
              zero, tokens, 1, tile,
              [&](KernelBuilder &k, Value t, ValueRange carried) {
                Value rowTile = carried[0];
                Value total = forColumns(
                    k, width, lanes, k.splat(0.0, lanes),
                    [&](KernelBuilder &k, Value column, Value valid,
                        ValueRange sums) {
                      Value x = k.load(rowTile, {zero, zero, t, column}, lanes,
                                       valid);
                      return KernelBuilder::Values{k.fma(x, x, sums[0])};
                    })[0];
                Value squares = vector::ReductionOp::create(
                    k.b, k.loc, vector::CombiningKind::ADD, total);
                // Each column is read before it is written, in the same tile.
                auto load = [&](KernelBuilder &k, Value current, Value column,
                                Value valid) {
                  return k.load(current, {zero, zero, t, column}, lanes, valid);
                };
                return KernelBuilder::Values{scaleRow(
                    op, k, squares, width, load, rowTile, {zero, zero, t})};
              })[0];
        });
    rewriter.replaceOp(op, result);
    return success();
  }
  int64_t lanes;
};

} // namespace

void populateNormPatterns(RewritePatternSet &patterns,
                          const VectorLowering &lowering) {
  patterns.add<LowerLayerNorm, LowerRMSNorm>(patterns.getContext(), lowering);
}

} // namespace attune
