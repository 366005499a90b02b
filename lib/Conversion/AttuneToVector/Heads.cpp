//===- Heads.cpp - Heads, rotary embedding and caches -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What lies between projections and attention: all of it moves whole head rows,
// parallel over batch and heads; on a GPU, whose threads are many, over tokens
// and vectors as well: neighbours in memory are neighbours in a warp.

#include "Patterns.h"

using namespace mlir;

namespace attune {

/// How many columns of rows that are copied a thread takes: all, or of many
/// threads one vector.
static int64_t columnsOfThread(const VectorLowering &lowering, int64_t width) {
  return lowering.cooperative && width % lowering.lanes == 0 ? lowering.lanes
                                                             : width;
}

Value forallHeadRows(
    KernelBuilder &k, Value dest, Value tokens, bool everyToken, int64_t each,
    function_ref<Value(KernelBuilder &, const HeadRow &, Value)> row) {
  auto type = cast<RankedTensorType>(dest.getType());
  SmallVector<OpFoldResult> counts;
  for (int64_t i = 0; i < 2; ++i)
    counts.push_back(getAsOpFoldResult(k.dim(dest, i)));
  if (everyToken)
    counts.push_back(getAsOpFoldResult(tokens));
  bool stretches = everyToken && each < type.getDimSize(3);
  if (stretches)
    counts.push_back(k.b.getIndexAttr(type.getDimSize(3) / each));
  OpFoldResult one = k.b.getIndexAttr(1), width = k.b.getIndexAttr(each);
  auto firstOf = [&](KernelBuilder &k, ValueRange ivs) {
    return stretches ? k.mul(ivs[3], each) : k.index(0);
  };
  return k.forallTiles(
      counts, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{
            {ivs[0], ivs[1], everyToken ? ivs[2] : k.index(0), firstOf(k, ivs)},
            {one, one, everyToken ? one : getAsOpFoldResult(tokens), width}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        if (everyToken)
          return row(k, {ivs[0], ivs[1], ivs[2], k.index(0), firstOf(k, ivs)},
                     tile);
        Value zero = k.index(0);
        return k.forLoop(k.index(0), tokens, 1, tile,
                         [&](KernelBuilder &k, Value t, ValueRange carried) {
                           return KernelBuilder::Values{row(
                               k, {ivs[0], ivs[1], t, t, zero}, carried[0])};
                         })[0];
      });
}

Value emptyHeads(KernelBuilder &k, Value like, RankedTensorType type) {
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    sizes.push_back(getAsOpFoldResult(k.dim(like, dim)));
  return tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
}

namespace {

struct LowerSplitHeads final : OpRewritePattern<SplitHeadsOp> {
  LowerSplitHeads(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(SplitHeadsOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    int64_t width = type.getDimSize(3), lanes = lowering.lanes;
    int64_t each = columnsOfThread(lowering, width);
    Value input = op.getInput();
    Value tokens = k.dim(input, 1);
    SmallVector<OpFoldResult> sizes = {getAsOpFoldResult(k.dim(input, 0)),
                                       k.b.getIndexAttr(type.getDimSize(1)),
                                       getAsOpFoldResult(tokens),
                                       k.b.getIndexAttr(width)};
    Value dest =
        tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
    Value result = forallHeadRows(
        k, dest, tokens, lowering.cooperative, each,
        [&](KernelBuilder &k, const HeadRow &row, Value tile) {
          Value first = k.add(k.mul(row.head, width), k.index(op.getOffset()));
          first = k.add(first, row.first);
          Value zero = k.index(0);
          return forColumns(
              k, each, lanes, tile,
              [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                Value x =
                    k.load(input, {row.batch, row.token, k.add(first, column)},
                           lanes, valid);
                return KernelBuilder::Values{
                    k.store(x, c[0], {zero, zero, row.line, column}, valid)};
              })[0];
        });
    // A static number of tokens in the op's type may not be visible here.
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
  VectorLowering lowering;
};

struct LowerMergeHeads final : OpRewritePattern<MergeHeadsOp> {
  LowerMergeHeads(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(MergeHeadsOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput();
    auto type = cast<RankedTensorType>(op.getType());
    auto inputType = cast<RankedTensorType>(input.getType());
    int64_t width = inputType.getDimSize(3), lanes = lowering.lanes;
    int64_t each = columnsOfThread(lowering, width);
    bool everyHead = lowering.cooperative;
    Value batch = k.dim(input, 0), tokens = k.dim(input, 2);
    OpFoldResult one = k.b.getIndexAttr(1);
    OpFoldResult channels = k.b.getIndexAttr(type.getDimSize(2));
    Value dest = tensor::EmptyOp::create(
        k.b, k.loc,
        {getAsOpFoldResult(batch), getAsOpFoldResult(tokens), channels},
        type.getElementType());
    SmallVector<OpFoldResult> counts = {getAsOpFoldResult(batch),
                                        getAsOpFoldResult(tokens)};
    if (everyHead)
      counts.push_back(
          k.b.getIndexAttr(inputType.getDimSize(1) * (width / each)));
    Value result = k.forallTiles(
        counts, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          Value first = everyHead ? k.mul(ivs[2], each) : k.index(0);
          return KernelBuilder::Tile{
              {ivs[0], ivs[1], first},
              {one, one, everyHead ? k.b.getIndexAttr(each) : channels}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value zero = k.index(0);
          auto copy = [&](KernelBuilder &k, Value head, Value from, Value first,
                          ValueRange tile) {
            return forColumns(
                k, each, lanes, tile,
                [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                  Value x =
                      k.load(input, {ivs[0], head, ivs[1], k.add(from, column)},
                             lanes, valid);
                  return KernelBuilder::Values{k.store(
                      x, c[0], {zero, zero, k.add(first, column)}, valid)};
                });
          };
          if (everyHead) {
            Value parts = k.index(width / each);
            Value head = arith::DivUIOp::create(k.b, k.loc, ivs[2], parts);
            Value part = arith::RemUIOp::create(k.b, k.loc, ivs[2], parts);
            return copy(k, head, k.mul(part, each), zero, tile)[0];
          }
          return k.forLoop(zero, k.index(inputType.getDimSize(1)), 1, tile,
                           [&](KernelBuilder &k, Value h, ValueRange carried) {
                             return copy(k, h, zero, k.mul(h, width), carried);
                           })[0];
        });
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
  VectorLowering lowering;
};

struct LowerRotary final : OpRewritePattern<RotaryOp> {
  LowerRotary(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes),
        everyToken(lowering.cooperative) {}

  LogicalResult matchAndRewrite(RotaryOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto tableType = cast<RankedTensorType>(op.getCos().getType());
    if (tableType.isDynamicDim(2))
      return rewriter.notifyMatchFailure(op, "needs a static number of pairs");
    int64_t pairs = tableType.getDimSize(2);
    // The widest vector that divides the pairs: no masks.
    int64_t width = lanes;
    while (pairs % width != 0)
      width /= 2;
    Value input = op.getInput();
    Value tokens = k.dim(input, 2);
    // Turned in place, each pair is read before it is written; a result of
    // other elements takes the channels behind the pairs along.
    bool inPlace = input.getType() == op.getType();
    auto type = cast<RankedTensorType>(op.getType());
    Value dest = inPlace ? input : emptyHeads(k, input, type);
    Value result = forallHeadRows(
        k, dest, tokens, everyToken, type.getDimSize(3),
        [&](KernelBuilder &k, const HeadRow &row, Value tile) {
          Value zero = k.index(0);
          SmallVector<Value> to = {zero, zero, row.line};
          SmallVector<Value> from = {row.batch, row.head, row.token};
          auto turn = [&](KernelBuilder &k, Value pair, ValueRange carried) {
            Value cos =
                k.load(op.getCos(), {row.batch, row.token, pair}, width);
            Value sin =
                k.load(op.getSin(), {row.batch, row.token, pair}, width);
            Turn at = {inPlace ? carried[0] : input, inPlace ? to : from,
                       carried[0], to};
            return KernelBuilder::Values{
                op.getPairing() == RotaryPairing::Half
                    ? turnHalves(k, at, pair, pairs, width, cos, sin)
                    : turnNeighbours(k, at, pair, width, cos, sin)};
          };
          tile = k.forLoop(k.index(0), k.index(pairs), width, tile, turn)[0];
          if (inPlace)
            return tile;
          return forColumns(
              k, type.getDimSize(3) - 2 * pairs, lanes, tile,
              [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                column = k.add(column, k.index(2 * pairs));
                Value x = k.load(input, with(from, column), lanes, valid);
                return KernelBuilder::Values{
                    k.store(x, c[0], with(to, column), valid)};
              })[0];
        });
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

  /// Pairs of a row of `from` go to a row of `tile`.
  struct Turn {
    Value from;
    ArrayRef<Value> fromRow;
    Value tile;
    ArrayRef<Value> tileRow;
  };

  static SmallVector<Value> with(ArrayRef<Value> row, Value channel) {
    SmallVector<Value> at(row);
    at.push_back(channel);
    return at;
  }

  static std::pair<Value, Value> turned(KernelBuilder &k, Value a, Value b,
                                        Value cos, Value sin) {
    Value ac = arith::MulFOp::create(k.b, k.loc, a, cos);
    Value bs = arith::MulFOp::create(k.b, k.loc, b, sin);
    Value bc = arith::MulFOp::create(k.b, k.loc, b, cos);
    return {arith::SubFOp::create(k.b, k.loc, ac, bs), k.fma(a, sin, bc)};
  }

  static Value turnHalves(KernelBuilder &k, const Turn &at, Value pair,
                          int64_t pairs, int64_t width, Value cos, Value sin) {
    Value partner = k.add(pair, k.index(pairs));
    Value a = k.load(at.from, with(at.fromRow, pair), width);
    Value b = k.load(at.from, with(at.fromRow, partner), width);
    auto [first, second] = turned(k, a, b, cos, sin);
    Value tile = k.store(first, at.tile, with(at.tileRow, pair));
    return k.store(second, tile, with(at.tileRow, partner));
  }

  static Value turnNeighbours(KernelBuilder &k, const Turn &at, Value pair,
                              int64_t width, Value cos, Value sin) {
    Value channel = k.mul(pair, 2);
    Value both = k.load(at.from, with(at.fromRow, channel), 2 * width);
    auto split = vector::DeinterleaveOp::create(k.b, k.loc, both);
    auto [first, second] =
        turned(k, split.getResult(0), split.getResult(1), cos, sin);
    Value merged = vector::InterleaveOp::create(k.b, k.loc, first, second);
    return k.store(merged, at.tile, with(at.tileRow, channel));
  }
  int64_t lanes;
  bool everyToken;
};

struct LowerCacheAppend final : OpRewritePattern<CacheAppendOp> {
  LowerCacheAppend(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(CacheAppendOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value rows = op.getNewRows();
    int64_t width = cast<RankedTensorType>(rows.getType()).getDimSize(3);
    int64_t each = columnsOfThread(lowering, width), lanes = lowering.lanes;
    bool everyToken = lowering.cooperative;
    Value tokens = k.dim(rows, 2);
    OpFoldResult one = k.b.getIndexAttr(1);
    SmallVector<OpFoldResult> counts = {getAsOpFoldResult(k.dim(rows, 0)),
                                        getAsOpFoldResult(k.dim(rows, 1))};
    if (everyToken) {
      counts.push_back(getAsOpFoldResult(tokens));
      counts.push_back(k.b.getIndexAttr(width / each));
    }
    auto columnOf = [&](KernelBuilder &k, ValueRange ivs) {
      return everyToken ? k.mul(ivs[3], each) : k.index(0);
    };
    Value result = k.forallTiles(
        counts, op.getCache(),
        [&](KernelBuilder &k, ValueRange ivs) {
          Value first = everyToken ? k.add(op.getPast(), ivs[2]) : op.getPast();
          return KernelBuilder::Tile{
              {op.getLayer(), ivs[0], ivs[1], first, columnOf(k, ivs)},
              {one, one, one, everyToken ? one : getAsOpFoldResult(tokens),
               k.b.getIndexAttr(each)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value zero = k.index(0);
          auto copy = [&](KernelBuilder &k, Value t, Value line, Value tile) {
            return forColumns(
                k, each, lanes, tile,
                [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                  Value from = k.add(columnOf(k, ivs), column);
                  Value x =
                      k.load(rows, {ivs[0], ivs[1], t, from}, lanes, valid);
                  return KernelBuilder::Values{k.store(
                      x, c[0], {zero, zero, zero, line, column}, valid)};
                });
          };
          if (everyToken)
            return copy(k, ivs[2], zero, tile)[0];
          return k.forLoop(zero, tokens, 1, tile,
                           [&](KernelBuilder &k, Value t, ValueRange carried) {
                             return copy(k, t, t, carried[0]);
                           })[0];
        });
    rewriter.replaceOp(op, result);
    return success();
  }
  VectorLowering lowering;
};

/// A read is a view: nothing is moved.
struct LowerCacheRead final : OpRewritePattern<CacheReadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(CacheReadOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    OpFoldResult zero = k.b.getIndexAttr(0), one = k.b.getIndexAttr(1);
    SmallVector<OpFoldResult> offsets = {op.getLayer(), zero, zero, zero, zero};
    SmallVector<OpFoldResult> sizes = {
        one, getAsOpFoldResult(k.dim(op.getCache(), 1)),
        getAsOpFoldResult(k.dim(op.getCache(), 2)),
        getAsOpFoldResult(op.getLength()),
        k.b.getIndexAttr(type.getDimSize(3))};
    SmallVector<OpFoldResult> strides(5, one);
    SmallVector<int64_t> shape;
    for (OpFoldResult size : ArrayRef(sizes).drop_front())
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    auto sliceType = RankedTensorType::get(shape, type.getElementType());
    Value slice = tensor::ExtractSliceOp::create(
        k.b, k.loc, sliceType, op.getCache(), offsets, sizes, strides);
    if (sliceType != type)
      slice = tensor::CastOp::create(k.b, k.loc, type, slice);
    rewriter.replaceOp(op, slice);
    return success();
  }
};

} // namespace

void populateHeadPatterns(RewritePatternSet &patterns,
                          const VectorLowering &lowering) {
  MLIRContext *context = patterns.getContext();
  patterns.add<LowerSplitHeads, LowerMergeHeads, LowerRotary, LowerCacheAppend>(
      context, lowering);
  patterns.add<LowerCacheRead>(context);
}

} // namespace attune
