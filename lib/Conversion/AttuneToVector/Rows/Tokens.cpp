//===- Tokens.cpp - Making, counting and picking tokens ---------*- C++ -*-===//
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

Value divide(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::DivSIOp::create(k.b, k.loc, lhs, rhs);
}
Value remainder(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::RemSIOp::create(k.b, k.loc, lhs, rhs);
}
Value select(KernelBuilder &k, Value condition, Value yes, Value no) {
  return arith::SelectOp::create(k.b, k.loc, condition, yes, no);
}
Value less(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, lhs, rhs);
}
Value max(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::MaxSIOp::create(k.b, k.loc, lhs, rhs);
}
Value integer(KernelBuilder &k, int64_t value) {
  return arith::ConstantOp::create(k.b, k.loc, k.b.getI64IntegerAttr(value));
}
Value toInteger(KernelBuilder &k, Value index) {
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), index);
}
Value toIndex(KernelBuilder &k, Value integer) {
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), integer);
}
Value extract(KernelBuilder &k, Value tensor, ValueRange at) {
  return tensor::ExtractOp::create(k.b, k.loc, tensor, at);
}

int64_t widthOf(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape().back();
}

/// [rows, width] of f32 or of what `like` holds.
Value emptyMatrix(KernelBuilder &k, Value rows, int64_t width, Value like) {
  Type element = cast<RankedTensorType>(like.getType()).getElementType();
  return tensor::EmptyOp::create(
      k.b, k.loc, {getAsOpFoldResult(rows), k.b.getIndexAttr(width)}, element);
}

/// Each row is one place: the loops over channels and kernel fill its columns.
struct LowerPatches final : OpRewritePattern<PatchesOp> {
  LowerPatches(MLIRContext *context, const VectorLowering &)
      : OpRewritePattern(context) {}

  LogicalResult matchAndRewrite(PatchesOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput();
    int64_t width = widthOf(op.getResult());
    auto inputType = cast<RankedTensorType>(input.getType());
    if (ShapedType::isDynamic(width) ||
        inputType.isDynamicDim(op.getChannelDim()))
      return rewriter.notifyMatchFailure(op, "needs known channels");
    size_t dims = op.getKernel().size();
    SmallVector<Value> sizes, places;
    Value count = k.index(1);
    for (size_t i = 0; i < dims; ++i) {
      sizes.push_back(k.dim(input, op.getFirstPlaceDim() + i));
      Value room =
          k.add(sizes[i], k.index(2 * op.getPadding()[i] - op.getKernel()[i]));
      places.push_back(
          k.add(divide(k, room, k.index(op.getStride()[i])), k.index(1)));
      count = k.mul(count, places[i]);
    }
    Value batch = k.dim(input, 0);
    Value dest = emptyMatrix(k, k.mul(batch, count), width, op.getResult());
    Value rows =
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          SmallVector<Value> start(dims);
          Value place = remainder(k, row, count);
          Value sample = divide(k, row, count);
          for (size_t i = dims; i-- > 0;) {
            Value step = i ? remainder(k, place, places[i]) : place;
            place = i ? divide(k, place, places[i]) : place;
            start[i] = k.sub(k.mul(step, op.getStride()[i]),
                             k.index(op.getPadding()[i]));
          }
          int64_t channels = inputType.getDimSize(op.getChannelDim());
          return k.forLoop(
              k.index(0), k.index(channels), 1, tile,
              [&](KernelBuilder &k, Value channel, ValueRange carried) {
                return overKernel(op, k, 0, sample, channel, channel, start,
                                  sizes, {}, Value(), carried[0]);
              })[0];
        });
    auto type = cast<RankedTensorType>(op.getType());
    rewriter.replaceOp(
        op, UnflattenTokensOp::create(k.b, k.loc, type, rows, batch, count));
    return success();
  }

  /// Loops over the kernel's dimensions from `dim` on. `column` counts what the
  /// outer loops have reached; `inside` is false beyond the input's edge.
  static Values overKernel(PatchesOp op, KernelBuilder &k, size_t dim,
                           Value sample, Value channel, Value column,
                           ArrayRef<Value> start, ArrayRef<Value> sizes,
                           SmallVector<Value> at, Value inside, Value tile) {
    if (dim == start.size()) {
      SmallVector<Value> indices = {sample};
      if (!op.getChannelsLast())
        indices.push_back(channel);
      indices.append(at);
      if (op.getChannelsLast())
        indices.push_back(channel);
      Value x = extract(k, op.getInput(), indices);
      if (inside)
        x = select(k, inside, x, k.f32(0));
      return {tensor::InsertOp::create(k.b, k.loc, x, tile,
                                       ValueRange{k.index(0), column})};
    }
    return k.forLoop(
        k.index(0), k.index(op.getKernel()[dim]), 1, tile,
        [&](KernelBuilder &k, Value step, ValueRange carried) {
          Value place = k.add(start[dim], step), within = inside;
          if (op.getPadding()[dim] != 0) {
            // Outside of it some other element is read and not used.
            Value last = k.sub(sizes[dim], k.index(1));
            Value clamped = k.min(max(k, place, k.index(0)), last);
            Value here = arith::CmpIOp::create(
                k.b, k.loc, arith::CmpIPredicate::eq, place, clamped);
            within = within ? arith::AndIOp::create(k.b, k.loc, within, here)
                                  .getResult()
                            : here;
            place = clamped;
          }
          SmallVector<Value> next(at);
          next.push_back(place);
          Value column2 = k.add(k.mul(column, op.getKernel()[dim]), step);
          return overKernel(op, k, dim + 1, sample, channel, column2, start,
                            sizes, next, within, carried[0]);
        });
  }
};

struct LowerPrependTokens final : OpRewritePattern<PrependTokensOp> {
  LowerPrependTokens(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(PrependTokensOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput(), tokens = op.getTokens();
    int64_t width = widthOf(op.getResult());
    Value batch = k.dim(input, 0), before = k.dim(tokens, 0);
    Value length = k.add(before, k.dim(input, 1));
    Value dest = emptyMatrix(k, k.mul(batch, length), width, op.getResult());
    int64_t lanes = lowering.lanes;
    Value rows =
        forallVectors(k, dest, lowering,
                      [&](KernelBuilder &k, Value row, Value column,
                          Value valid, Value tile, ValueRange at) {
                        Value sample = divide(k, row, length);
                        Value token = remainder(k, row, length);
                        Value isNew = less(k, token, before);
                        // Both are read, one is kept.
                        Value own = k.min(token, k.sub(before, k.index(1)));
                        Value old = max(k, k.sub(token, before), k.index(0));
                        Value x = k.load(tokens, {own, column}, lanes, valid);
                        Value y =
                            k.load(input, {sample, old, column}, lanes, valid);
                        return k.store(select(k, isNew, x, y), tile, at, valid);
                      });
    rewriter.replaceOp(op, UnflattenTokensOp::create(k.b, k.loc, op.getType(),
                                                     rows, batch, length));
    return success();
  }
  VectorLowering lowering;
};

struct LowerTokenPositions final : OpRewritePattern<TokenPositionsOp> {
  LowerTokenPositions(MLIRContext *context, const VectorLowering &)
      : OpRewritePattern(context) {}

  LogicalResult matchAndRewrite(TokenPositionsOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput(), length = k.dim(input, 1);
    auto type = cast<RankedTensorType>(op.getType());
    SmallVector<OpFoldResult> sizes = {getAsOpFoldResult(k.dim(input, 0)),
                                       getAsOpFoldResult(length)};
    Value dest =
        tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
    Value result = k.forallTiles(
        {sizes[0]}, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{{ivs[0], k.index(0)},
                                     {k.b.getIndexAttr(1), sizes[1]}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          return k.forLoop(
              k.index(0), length, 1, {tile, integer(k, 0)},
              [&](KernelBuilder &k, Value token, ValueRange carried) {
                Value number = toInteger(k, token), counted = carried[1];
                if (op.getPad()) {
                  Value id = extract(k, input, {ivs[0], token});
                  Value isPad = arith::CmpIOp::create(
                      k.b, k.loc, arith::CmpIPredicate::eq, id,
                      integer(k, *op.getPad()));
                  Value next = k.add(counted, integer(k, 1));
                  number = select(k, isPad, integer(k, 0), next);
                  counted = select(k, isPad, counted, next);
                }
                Value written =
                    tensor::InsertOp::create(k.b, k.loc, number, carried[0],
                                             ValueRange{k.index(0), token});
                return Values{written, counted};
              })[0];
        });
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LowerFindToken final : OpRewritePattern<FindTokenOp> {
  LowerFindToken(MLIRContext *context, const VectorLowering &)
      : OpRewritePattern(context) {}

  LogicalResult matchAndRewrite(FindTokenOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value ids = op.getIds(), length = k.dim(ids, 1);
    OpFoldResult batch = getAsOpFoldResult(k.dim(ids, 0));
    Value dest =
        tensor::EmptyOp::create(k.b, k.loc, ArrayRef{batch}, k.b.getI64Type());
    Value result = k.forallTiles(
        {batch}, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{{ivs[0]}, {k.b.getIndexAttr(1)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          // The best so far, and where: 1 for a match, or the id itself.
          Value least =
              integer(k, op.getId() ? 0 : std::numeric_limits<int64_t>::min());
          Value where =
              k.forLoop(k.index(0), length, 1, {integer(k, 0), least},
                        [&](KernelBuilder &k, Value token, ValueRange carried) {
                          Value score = extract(k, ids, {ivs[0], token});
                          if (op.getId()) {
                            Value equal = arith::CmpIOp::create(
                                k.b, k.loc, arith::CmpIPredicate::eq, score,
                                integer(k, *op.getId()));
                            // Later matches are better ones, if the last is
                            // asked for.
                            Value match = op.getLast() ? toInteger(k, token)
                                                       : integer(k, 1);
                            if (op.getLast())
                              match = arith::AddIOp::create(k.b, k.loc, match,
                                                            integer(k, 1));
                            score = select(k, equal, match, integer(k, 0));
                          }
                          Value better = less(k, carried[1], score);
                          return Values{select(k, better, toInteger(k, token),
                                               carried[0]),
                                        select(k, better, score, carried[1])};
                        })[0];
          return tensor::InsertOp::create(k.b, k.loc, where, tile,
                                          ValueRange{k.index(0)})
              .getResult();
        });
    if (result.getType() != op.getType())
      result = tensor::CastOp::create(k.b, k.loc, op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LowerPool final : OpRewritePattern<PoolOp> {
  LowerPool(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(PoolOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput();
    int64_t width = widthOf(input);
    Value batch = k.dim(input, 0), length = k.dim(input, 1);
    Value dest = emptyMatrix(k, batch, width, op.getResult());
    bool picks =
        op.getKind() == PoolKind::Token || op.getKind() == PoolKind::Last;
    Value result =
        forallRows(k, dest, [&](KernelBuilder &k, Value sample, Value tile) {
          return picks ? pick(op, k, sample, length, tile)
                       : reduce(op, k, sample, length, tile);
        });
    if (result.getType() != op.getType())
      result = tensor::CastOp::create(k.b, k.loc, op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }

  static Value visible(PoolOp op, KernelBuilder &k, Value sample, Value token) {
    Value zero = k.index(0);
    return extract(k, op.getMask(), {sample, zero, zero, token});
  }

  /// One token's row; zeros for number -1.
  Value pick(PoolOp op, KernelBuilder &k, Value sample, Value length,
             Value tile) const {
    Value token = k.index(op.getIndex());
    if (op.getAt())
      token = toIndex(k, extract(k, op.getAt(), {sample}));
    if (op.getKind() == PoolKind::Last)
      token = k.sub(length, k.index(1));
    if (op.getMask())
      token = k.forLoop(k.index(0), length, 1, k.index(-1),
                        [&](KernelBuilder &k, Value at, ValueRange carried) {
                          return Values{select(k, visible(op, k, sample, at),
                                               at, carried[0])};
                        })[0];
    Value none = less(k, token, k.index(0));
    Value row = max(k, token, k.index(0));
    return forColumns(
        k, widthOf(op.getInput()), lanes, tile,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          Value x = k.load(op.getInput(), {sample, row, column}, lanes, valid);
          if (op.getMask())
            x = select(k, none, k.splat(0.0, lanes), x);
          return Values{k.store(x, carried[0], {k.index(0), column}, valid)};
        })[0];
  }

  Value reduce(PoolOp op, KernelBuilder &k, Value sample, Value length,
               Value tile) const {
    bool mean = op.getKind() == PoolKind::Mean;
    Value count = length;
    if (op.getMask())
      count = k.forLoop(k.index(0), length, 1, k.index(0),
                        [&](KernelBuilder &k, Value at, ValueRange carried) {
                          return Values{select(k, visible(op, k, sample, at),
                                               k.add(carried[0], k.index(1)),
                                               carried[0])};
                        })[0];
    Value none = less(k, count, k.index(1));
    Value divisor = arith::SIToFPOp::create(
        k.b, k.loc, k.b.getF32Type(), toInteger(k, max(k, count, k.index(1))));
    Value divisors = k.splat(divisor, lanes);
    double start = mean ? 0.0 : -std::numeric_limits<double>::infinity();
    return forColumns(
        k, widthOf(op.getInput()), lanes, tile,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          Value total = k.forLoop(
              k.index(0), length, 1, k.splat(start, lanes),
              [&](KernelBuilder &k, Value token, ValueRange sofar) {
                Value x = k.load(op.getInput(), {sample, token, column}, lanes,
                                 valid);
                Value next =
                    mean ? arith::AddFOp::create(k.b, k.loc, sofar[0], x)
                               .getResult()
                         : arith::MaximumFOp::create(k.b, k.loc, sofar[0], x)
                               .getResult();
                if (op.getMask())
                  next =
                      select(k, visible(op, k, sample, token), next, sofar[0]);
                return Values{next};
              })[0];
          if (mean)
            total = arith::DivFOp::create(k.b, k.loc, total, divisors);
          else
            total = select(k, none, k.splat(0.0, lanes), total);
          return Values{
              k.store(total, carried[0], {k.index(0), column}, valid)};
        })[0];
  }
  int64_t lanes;
};

struct LowerBatchNorm final : OpRewritePattern<BatchNormOp> {
  LowerBatchNorm(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(BatchNormOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getRank() < 2 || type.getRank() > 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    KernelBuilder k(rewriter, op.getLoc());
    int64_t width = widthOf(op.getInput()), lanes = lowering.lanes;
    Value input = asRows(k, op.getInput());
    Value dest = emptyRows(k, op.getInput(), width, type.getElementType());
    Value rows = forallVectors(
        k, dest, lowering,
        [&](KernelBuilder &k, Value row, Value column, Value valid, Value tile,
            ValueRange at) {
          auto channel = [&](Value vector) {
            return k.load(vector, {column}, lanes, valid);
          };
          // The padding of the last vector has a variance of one.
          Value variance =
              k.load(op.getVariance(), {column}, lanes, valid, 1.0);
          Value scale = math::RsqrtOp::create(
              k.b, k.loc,
              arith::AddFOp::create(
                  k.b, k.loc, variance,
                  k.splat(op.getEps().convertToDouble(), lanes))
                  .getResult());
          scale =
              arith::MulFOp::create(k.b, k.loc, channel(op.getGamma()), scale);
          Value x = k.load(input, {row, column}, lanes, valid);
          x = arith::SubFOp::create(k.b, k.loc, x, channel(op.getMean()));
          return k.store(k.fma(x, scale, channel(op.getBeta())), tile, at,
                         valid);
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }
  VectorLowering lowering;
};

} // namespace

void populateTokenPatterns(RewritePatternSet &patterns,
                           const VectorLowering &lowering) {
  patterns.add<LowerPatches, LowerPrependTokens, LowerTokenPositions,
               LowerFindToken, LowerPool, LowerBatchNorm>(patterns.getContext(),
                                                          lowering);
}

} // namespace attune
