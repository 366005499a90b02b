//===- Heads.cpp - Heads, rotary embedding and caches -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The ops between projections and attention. All of them move whole head rows,
// parallel over batch and heads; on a GPU, whose threads are many, over tokens
// and vectors as well: neighbours in memory are neighbours in a warp.
//
// Rows pass once, even if the projection does not hand them over by itself (see
// HeadRows.h). RoPE and cache appends take a row from the columns that
// split_heads would copy, and RoPE is applied to a key on its way to the cache.

#include "../Matmul/HeadRows.h"

using namespace mlir;

namespace attune {

/// Columns of a copied row that a thread takes: all, or one vector if threads
/// are many.
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

namespace {

/// Where an op reads rows of heads: in a tensor of heads or in the columns that
/// they are cut from.
class HeadSource {
public:
  explicit HeadSource(SplitHeadsOp split)
      : tensor(split.getInput()), offset(split.getOffset()),
        width(cast<RankedTensorType>(split.getType()).getDimSize(3)) {}
  HeadSource(Value heads, Operation *reader) : tensor(heads) {
    if (auto split = heads.getDefiningOp<SplitHeadsOp>();
        split && readsColumns(reader, split))
      *this = HeadSource(split);
  }

  bool isWhole() const { return width == 0; }
  Value batch(KernelBuilder &k) const { return k.dim(tensor, 0); }
  Value tokens(KernelBuilder &k) const {
    return k.dim(tensor, isWhole() ? 2 : 1);
  }
  /// For as many rows as there are.
  Value empty(KernelBuilder &k, RankedTensorType type) const {
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(batch(k)), k.b.getIndexAttr(type.getDimSize(1)),
        getAsOpFoldResult(tokens(k)), k.b.getIndexAttr(type.getDimSize(3))};
    return tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
  }

  /// Reads columns of a row, from the first of this thread on.
  auto columns(const HeadRow &row) const {
    return [this, row](KernelBuilder &k, Value column, int64_t lanes,
                       Value valid) {
      column = k.add(row.first, column);
      if (isWhole())
        return k.load(tensor, {row.batch, row.head, row.token, column}, lanes,
                      valid);
      Value first = k.add(k.mul(row.head, width), k.index(offset));
      return k.load(tensor, {row.batch, row.token, k.add(first, column)}, lanes,
                    valid);
    };
  }

private:
  Value tensor;
  int64_t offset = 0, width = 0;
};

struct LowerSplitHeads final : OpRewritePattern<SplitHeadsOp> {
  LowerSplitHeads(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(SplitHeadsOp op,
                                PatternRewriter &rewriter) const override {
    if (!op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
          return readsColumns(user, op);
        }))
      return rewriter.notifyMatchFailure(op, "all users read its columns");
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    int64_t width = type.getDimSize(3), lanes = lowering.lanes;
    int64_t each = columnsOfThread(lowering, width);
    HeadSource source(op);
    Value result = forallHeadRows(
        k, source.empty(k, type), source.tokens(k), lowering.cooperative, each,
        [&](KernelBuilder &k, const HeadRow &row, Value tile) {
          Value zero = k.index(0);
          return copyRow(k, each, lanes, source.columns(row), tile,
                         {zero, zero, row.line});
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
    if (cast<RankedTensorType>(op.getCos().getType()).isDynamicDim(2))
      return rewriter.notifyMatchFailure(op, "needs a static number of pairs");
    if (turnsIntoCache(op))
      return rewriter.notifyMatchFailure(op, "turned on the way to a cache");
    KernelBuilder k(rewriter, op.getLoc());
    HeadSource source(op.getInput(), op);
    auto type = cast<RankedTensorType>(op.getType());
    bool inPlace = source.isWhole() && op.getInput().getType() == type;
    Value tokens = source.tokens(k);
    Value dest = inPlace ? op.getInput() : source.empty(k, type);
    Turning turning(op, lanes, /*ahead=*/everyToken);
    Value result = forallHeadRows(
        k, dest, tokens, everyToken, type.getDimSize(3),
        [&](KernelBuilder &k, const HeadRow &row, Value tile) {
          Value zero = k.index(0);
          SmallVector<Value> to = {zero, zero, row.line};
          if (inPlace)
            return turning.emitInPlace(k, row.batch, row.token, tile, to);
          return turning.emit(k, source.columns(row), row.batch, row.token,
                              tile, to);
        });
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
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
    auto rotary = op.getNewRows().getDefiningOp<RotaryOp>();
    if (rotary && !turnsIntoCache(rotary))
      rotary = {};
    HeadSource source(rotary ? rotary.getInput() : op.getNewRows(),
                      rotary ? rotary : op.getOperation());
    auto type = cast<RankedTensorType>(op.getNewRows().getType());
    int64_t width = type.getDimSize(3), lanes = lowering.lanes;
    // The scale of bytes depends on the whole row.
    bool whole = rotary || isInBytes(op.getCache());
    int64_t each = whole ? width : columnsOfThread(lowering, width);
    Type stored = getElementTypeOrSelf(op.getCache().getType());
    bool everyToken = lowering.cooperative;
    Value tokens = source.tokens(k);
    OpFoldResult one = k.b.getIndexAttr(1);
    SmallVector<OpFoldResult> counts = {getAsOpFoldResult(source.batch(k)),
                                        k.b.getIndexAttr(type.getDimSize(1))};
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
          Value first = pastOf(k, op, ivs[0]);
          if (everyToken)
            first = k.add(first, ivs[2]);
          KernelBuilder::Tile tile = {
              {op.getLayer(), ivs[0], ivs[1], first, columnOf(k, ivs)},
              {one, one, one, everyToken ? one : getAsOpFoldResult(tokens),
               k.b.getIndexAttr(elementsOfRow(stored, each))}};
          if (op.getSequenceMajor())
            std::swap(tile.offsets[0], tile.offsets[1]);
          return tile;
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value zero = k.index(0);
          auto write = [&](KernelBuilder &k, Value t, Value line, Value tile) {
            HeadRow row = {ivs[0], ivs[1], t, line, columnOf(k, ivs)};
            SmallVector<Value> to = {zero, zero, zero, line};
            auto turned = [&](KernelBuilder &k, Value tile,
                              ArrayRef<Value> to) {
              return Turning(rotary, lanes, /*ahead=*/everyToken)
                  .emit(k, source.columns(row), row.batch, row.token, tile, to);
            };
            if (rotary)
              return throughRow(k, width, lanes, tile, to, turned);
            return copyRow(k, each, lanes, source.columns(row), tile, to);
          };
          if (everyToken)
            return write(k, ivs[2], zero, tile);
          return k.forLoop(zero, tokens, 1, tile,
                           [&](KernelBuilder &k, Value t, ValueRange carried) {
                             return KernelBuilder::Values{
                                 write(k, t, t, carried[0])};
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
    SmallVector<OpFoldResult> offsets(5, zero), strides(5, one);
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(k.dim(op.getCache(), op.getSequenceMajor() ? 0 : 1)),
        getAsOpFoldResult(k.dim(op.getCache(), 2)),
        getAsOpFoldResult(op.getLength()),
        k.b.getIndexAttr(type.getDimSize(3))};
    SmallVector<int64_t> shape;
    for (OpFoldResult size : sizes)
      shape.push_back(getConstantIntValue(size).value_or(ShapedType::kDynamic));
    unsigned layerDim = op.getSequenceMajor() ? 1 : 0;
    offsets[layerDim] = op.getLayer();
    sizes.insert(sizes.begin() + layerDim, one);
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
