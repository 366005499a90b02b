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

/// A norm of queries or keys [B, H, T, Dh], head by head, in place.
struct HeadNorm {
  Value input, gamma, beta;
  bool centred; ///< subtracts the mean
  double eps, offset;
};

Value lowerHeadNorm(KernelBuilder &k, const HeadNorm &norm, int64_t lanes) {
  Value input = norm.input, zero = k.index(0);
  int64_t width = cast<RankedTensorType>(input.getType()).getDimSize(3);
  auto size = [&](int64_t i) { return getAsOpFoldResult(k.dim(input, i)); };
  OpFoldResult one = k.b.getIndexAttr(1), channels = k.b.getIndexAttr(width);
  Value tokens = k.dim(input, 2);

  auto row = [&](KernelBuilder &k, Value head, Value t, Value tile) {
    auto load = [&](KernelBuilder &k, Value from, Value column, Value valid) {
      return k.load(from, {zero, zero, t, column}, lanes, valid);
    };
    auto sum = [&](function_ref<Value(KernelBuilder &, Value)> term) -> Value {
      Value total = forColumns(
          k, width, lanes, k.splat(0.0, lanes),
          [&](KernelBuilder &k, Value column, Value valid, ValueRange sums) {
            Value x = term(k, load(k, tile, column, valid));
            if (valid) {
              Value mask = vector::CreateMaskOp::create(
                  k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), valid);
              x = arith::SelectOp::create(k.b, k.loc, mask, x,
                                          k.splat(0.0, lanes));
            }
            return KernelBuilder::Values{
                arith::AddFOp::create(k.b, k.loc, sums[0], x)};
          })[0];
      return vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD,
                                         total);
    };
    Value mean;
    if (norm.centred)
      mean = k.splat(
          arith::DivFOp::create(k.b, k.loc,
                                sum([](KernelBuilder &, Value x) { return x; }),
                                k.f32(width)),
          lanes);
    auto centre = [&](KernelBuilder &k, Value x) -> Value {
      return mean ? arith::SubFOp::create(k.b, k.loc, x, mean).getResult() : x;
    };
    Value squares = sum([&](KernelBuilder &k, Value x) -> Value {
      Value d = centre(k, x);
      return arith::MulFOp::create(k.b, k.loc, d, d);
    });
    Value scale = inverseDeviation(k, squares, width, norm.eps, lanes);
    auto channel = [&](KernelBuilder &k, Value from, Value column,
                       Value valid) {
      SmallVector<Value> at;
      if (cast<RankedTensorType>(from.getType()).getRank() == 2)
        at.push_back(head);
      at.push_back(column);
      return k.load(from, at, lanes, valid);
    };
    // Each column is read before it is written, in the same tile.
    return forColumns(
        k, width, lanes, tile,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          Value x = centre(k, load(k, carried[0], column, valid));
          x = arith::MulFOp::create(k.b, k.loc, x, scale);
          if (norm.gamma) {
            Value gamma = channel(k, norm.gamma, column, valid);
            if (norm.offset != 0)
              gamma = arith::AddFOp::create(k.b, k.loc, gamma,
                                            k.splat(norm.offset, lanes));
            x = arith::MulFOp::create(k.b, k.loc, x, gamma);
          }
          if (norm.beta)
            x = arith::AddFOp::create(k.b, k.loc, x,
                                      channel(k, norm.beta, column, valid));
          return KernelBuilder::Values{
              k.store(x, carried[0], {zero, zero, t, column}, valid)};
        })[0];
  };
  return k.forallTiles(
      {size(0), size(1)}, input,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{
            {ivs[0], ivs[1], k.index(0), k.index(0)},
            {one, one, getAsOpFoldResult(tokens), channels}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        Value head = ivs[1];
        return k.forLoop(zero, tokens, 1, tile,
                         [&](KernelBuilder &k, Value t, ValueRange carried) {
                           return KernelBuilder::Values{
                               row(k, head, t, carried[0])};
                         })[0];
      });
}

struct LowerLayerNorm final : OpRewritePattern<LayerNormOp> {
  LowerLayerNorm(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(LayerNormOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getRank() < 2 || type.getRank() > 4)
      return rewriter.notifyMatchFailure(op, "rank 2 to 4 only");
    int64_t width = type.getShape().back();
    KernelBuilder k(rewriter, op.getLoc());
    if (type.getRank() == 4) {
      HeadNorm norm = {op.getInput(),    op.getGamma(),
                       op.getBeta(),
                       /*centred=*/true, op.getEps().convertToDouble(),
                       /*offset=*/0};
      rewriter.replaceOp(op, lowerHeadNorm(k, norm, lanes));
      return success();
    }
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
    if (rank == 4) {
      HeadNorm norm = {op.getInput(),
                       op.getGamma(),
                       /*beta=*/Value(),
                       /*centred=*/false,
                       op.getEps().convertToDouble(),
                       op.getOffset().convertToDouble()};
      rewriter.replaceOp(op, lowerHeadNorm(k, norm, lanes));
      return success();
    }
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

  int64_t lanes;
};

} // namespace

void populateNormPatterns(RewritePatternSet &patterns,
                          const VectorLowering &lowering) {
  patterns.add<LowerLayerNorm, LowerRMSNorm>(patterns.getContext(), lowering);
}

} // namespace attune
