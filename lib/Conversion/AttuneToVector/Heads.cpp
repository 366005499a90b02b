//===- Heads.cpp - Heads, rotary embedding and caches -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What lies between projections and attention: all of it moves whole head rows,
// parallel over batch and heads.

#include "Patterns.h"

using namespace mlir;

namespace attune {
namespace {

/// A parallel loop over [batch, heads] of `dest` [B, H, T, D]: `row` gets
/// batch, head, token and the [1, 1, T, D] tile, and returns the tile with that
/// token's row written.
Value forallHeadRows(KernelBuilder &k, Value dest, Value tokens,
                     function_ref<Value(KernelBuilder &, ValueRange ivs,
                                        Value token, Value tile)>
                         row) {
  auto type = cast<RankedTensorType>(dest.getType());
  auto size = [&](int64_t i) { return getAsOpFoldResult(k.dim(dest, i)); };
  OpFoldResult one = k.b.getIndexAttr(1);
  OpFoldResult width = k.b.getIndexAttr(type.getDimSize(3));
  return k.forallTiles(
      {size(0), size(1)}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{
            {ivs[0], ivs[1], k.index(0), k.index(0)},
            {one, one, getAsOpFoldResult(tokens), width}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        return k.forLoop(k.index(0), tokens, 1, tile,
                         [&](KernelBuilder &k, Value t, ValueRange carried) {
                           return KernelBuilder::Values{
                               row(k, ivs, t, carried[0])};
                         })[0];
      });
}

struct LowerSplitHeads final : OpRewritePattern<SplitHeadsOp> {
  LowerSplitHeads(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(SplitHeadsOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    int64_t width = type.getDimSize(3);
    Value input = op.getInput();
    Value tokens = k.dim(input, 1);
    SmallVector<OpFoldResult> sizes = {getAsOpFoldResult(k.dim(input, 0)),
                                       k.b.getIndexAttr(type.getDimSize(1)),
                                       getAsOpFoldResult(tokens),
                                       k.b.getIndexAttr(width)};
    Value dest =
        tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
    Value result = forallHeadRows(
        k, dest, tokens,
        [&](KernelBuilder &k, ValueRange ivs, Value t, Value tile) {
          Value first = k.add(k.mul(ivs[1], width), k.index(op.getOffset()));
          Value zero = k.index(0);
          return forColumns(
              k, width, lanes, tile,
              [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                Value x = k.load(input, {ivs[0], t, k.add(first, column)},
                                 lanes, valid);
                return KernelBuilder::Values{
                    k.store(x, c[0], {zero, zero, t, column}, valid)};
              })[0];
        });
    // A static number of tokens in the op's type may not be visible here.
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
  int64_t lanes;
};

struct LowerMergeHeads final : OpRewritePattern<MergeHeadsOp> {
  LowerMergeHeads(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(MergeHeadsOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value input = op.getInput();
    auto type = cast<RankedTensorType>(op.getType());
    auto inputType = cast<RankedTensorType>(input.getType());
    int64_t width = inputType.getDimSize(3);
    Value batch = k.dim(input, 0), tokens = k.dim(input, 2);
    OpFoldResult one = k.b.getIndexAttr(1);
    OpFoldResult channels = k.b.getIndexAttr(type.getDimSize(2));
    Value dest = tensor::EmptyOp::create(
        k.b, k.loc,
        {getAsOpFoldResult(batch), getAsOpFoldResult(tokens), channels},
        type.getElementType());
    Value result = k.forallTiles(
        {getAsOpFoldResult(batch), getAsOpFoldResult(tokens)}, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{{ivs[0], ivs[1], k.index(0)},
                                     {one, one, channels}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value zero = k.index(0);
          auto head = [&](KernelBuilder &k, Value h, ValueRange carried) {
            Value first = k.mul(h, width);
            return forColumns(
                k, width, lanes, carried,
                [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                  Value x =
                      k.load(input, {ivs[0], h, ivs[1], column}, lanes, valid);
                  return KernelBuilder::Values{k.store(
                      x, c[0], {zero, zero, k.add(first, column)}, valid)};
                });
          };
          return k.forLoop(zero, k.index(inputType.getDimSize(1)), 1, tile,
                           head)[0];
        });
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }
  int64_t lanes;
};

struct LowerRotary final : OpRewritePattern<RotaryOp> {
  LowerRotary(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

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
    // Turned in place: each pair is read before it is written.
    Value result = forallHeadRows(
        k, input, tokens,
        [&](KernelBuilder &k, ValueRange ivs, Value t, Value tile) {
          auto turn = [&](KernelBuilder &k, Value pair, ValueRange carried) {
            Value cos = k.load(op.getCos(), {ivs[0], t, pair}, width);
            Value sin = k.load(op.getSin(), {ivs[0], t, pair}, width);
            return KernelBuilder::Values{
                op.getPairing() == RotaryPairing::Half
                    ? turnHalves(k, carried[0], t, pair, pairs, width, cos, sin)
                    : turnNeighbours(k, carried[0], t, pair, width, cos, sin)};
          };
          return k.forLoop(k.index(0), k.index(pairs), width, tile, turn)[0];
        });
    rewriter.replaceOp(op, result);
    return success();
  }

  static std::pair<Value, Value> turned(KernelBuilder &k, Value a, Value b,
                                        Value cos, Value sin) {
    Value ac = arith::MulFOp::create(k.b, k.loc, a, cos);
    Value bs = arith::MulFOp::create(k.b, k.loc, b, sin);
    Value bc = arith::MulFOp::create(k.b, k.loc, b, cos);
    return {arith::SubFOp::create(k.b, k.loc, ac, bs), k.fma(a, sin, bc)};
  }

  static Value turnHalves(KernelBuilder &k, Value tile, Value t, Value pair,
                          int64_t pairs, int64_t width, Value cos, Value sin) {
    Value zero = k.index(0), partner = k.add(pair, k.index(pairs));
    Value a = k.load(tile, {zero, zero, t, pair}, width);
    Value b = k.load(tile, {zero, zero, t, partner}, width);
    auto [first, second] = turned(k, a, b, cos, sin);
    tile = k.store(first, tile, {zero, zero, t, pair});
    return k.store(second, tile, {zero, zero, t, partner});
  }

  static Value turnNeighbours(KernelBuilder &k, Value tile, Value t, Value pair,
                              int64_t width, Value cos, Value sin) {
    Value zero = k.index(0), channel = k.mul(pair, 2);
    Value both = k.load(tile, {zero, zero, t, channel}, 2 * width);
    auto split = vector::DeinterleaveOp::create(k.b, k.loc, both);
    auto [first, second] =
        turned(k, split.getResult(0), split.getResult(1), cos, sin);
    Value merged = vector::InterleaveOp::create(k.b, k.loc, first, second);
    return k.store(merged, tile, {zero, zero, t, channel});
  }
  int64_t lanes;
};

struct LowerCacheAppend final : OpRewritePattern<CacheAppendOp> {
  LowerCacheAppend(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(CacheAppendOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value rows = op.getNewRows();
    int64_t width = cast<RankedTensorType>(rows.getType()).getDimSize(3);
    Value tokens = k.dim(rows, 2);
    OpFoldResult one = k.b.getIndexAttr(1);
    Value result = k.forallTiles(
        {getAsOpFoldResult(k.dim(rows, 0)), getAsOpFoldResult(k.dim(rows, 1))},
        op.getCache(),
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{
              {op.getLayer(), ivs[0], ivs[1], op.getPast(), k.index(0)},
              {one, one, one, getAsOpFoldResult(tokens),
               k.b.getIndexAttr(width)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value zero = k.index(0);
          auto token = [&](KernelBuilder &k, Value t, ValueRange carried) {
            return forColumns(
                k, width, lanes, carried,
                [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                  Value x =
                      k.load(rows, {ivs[0], ivs[1], t, column}, lanes, valid);
                  return KernelBuilder::Values{
                      k.store(x, c[0], {zero, zero, zero, t, column}, valid)};
                });
          };
          return k.forLoop(zero, tokens, 1, tile, token)[0];
        });
    rewriter.replaceOp(op, result);
    return success();
  }
  int64_t lanes;
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
