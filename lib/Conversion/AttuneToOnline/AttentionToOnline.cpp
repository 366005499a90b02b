//===- AttentionToOnline.cpp - Attention as loops over blocks ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// attune.attention becomes a parallel loop over batches, key/value heads and
// blocks of queries. Each iteration owns a tile of the result: the queries of
// all heads of one group, so that keys and values are read once per group. It
// walks the keys that the tile can see at all, block by block, and folds them
// into running states that live in scratch of static size.

#include "Attune/AttuneDialect.h"
#include "attune/Conversion/KernelBuilder.h"
#include "attune/Conversion/Passes.h"
#include "attune/Conversion/Schedule.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEATTENTIONTOONLINE
#include "attune/Conversion/Passes.h.inc"

namespace {

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value maximum(KernelBuilder &k, Value lhs, Value rhs) {
  return k.b.createOrFold<arith::MaxSIOp>(k.loc, lhs, rhs);
}

/// The part of a mask or bias that a block of scores needs; dimensions of size
/// one serve every batch, head or query.
Value cutBlock(KernelBuilder &k, Value whole, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes) {
  if (!whole)
    return {};
  SmallVector<OpFoldResult> at(offsets), count(sizes);
  for (int64_t dim = 0; dim < 3; ++dim)
    if (tensorType(whole).getDimSize(dim) == 1) {
      at[dim] = k.b.getIndexAttr(0);
      count[dim] = k.b.getIndexAttr(1);
    }
  SmallVector<OpFoldResult> strides(at.size(), k.b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(k.b, k.loc, whole, at, count, strides);
}

Value cut(KernelBuilder &k, Value whole, ArrayRef<OpFoldResult> offsets,
          ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), k.b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(k.b, k.loc, whole, offsets, sizes,
                                        strides);
}

/// A state of `sizes` filled with `value`, at the front of scratch that has
/// `capacity` instead of the number of queries. alloc_tensor and not
/// tensor.empty: CSE would merge the scratch of two states.
Value startState(KernelBuilder &k, ArrayRef<OpFoldResult> sizes,
                 int64_t capacity, double value) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(capacity));
  Value scratch = bufferization::AllocTensorOp::create(
      k.b, k.loc, RankedTensorType::get(shape, k.b.getF32Type()), ValueRange{});
  if (!llvm::all_of(sizes, [](OpFoldResult size) {
        return getConstantIntValue(size).has_value();
      })) {
    SmallVector<OpFoldResult> zeros(sizes.size(), k.b.getIndexAttr(0));
    scratch = cut(k, scratch, zeros, sizes);
  }
  return linalg::FillOp::create(k.b, k.loc, k.f32(value), scratch).getResult(0);
}

/// Lowers one attention op; the members are what its parts share.
class Tiling {
public:
  Tiling(AttentionOp op, PatternRewriter &rewriter, int64_t queryBlock,
         int64_t keyBlock)
      : op(op), k(rewriter, op.getLoc()),
        keyBlock(scheduled(op, "attune.key_block", keyBlock)),
        query(op.getQuery()), key(op.getKey()), value(op.getValue()) {
    int64_t kvHeads = tensorType(key).getDimSize(1);
    sharing = group = tensorType(query).getDimSize(1) / kvHeads;
    // Heads that see different blocks cannot walk the keys together.
    if (op.getBlocks() && tensorType(op.getBlocks()).getDimSize(1) != 1)
      group = 1;
    queryBlock = scheduled(op, "attune.query_block", queryBlock);
    tileQueries = std::max<int64_t>(1, queryBlock / group);
    if (int64_t known = tensorType(query).getDimSize(2);
        !ShapedType::isDynamic(known) && known > 0)
      tileQueries = std::min(tileQueries, known);
    if (int64_t known = tensorType(key).getDimSize(2);
        !ShapedType::isDynamic(known) && known > 0)
      this->keyBlock = std::min(this->keyBlock, known);
    // A tile lies in one block of the mask.
    if (auto sizes = op.getBlockSizes()) {
      tileQueries = largestDivisor((*sizes)[0], tileQueries);
      this->keyBlock = largestDivisor((*sizes)[1], this->keyBlock);
    }
    remark::analysis(op.getLoc(), tilingRemark(op, "attention"))
        << remark::add("tiles of {0} queries of {1} heads, {2} keys at a time",
                       tileQueries, group, this->keyBlock)
        << remark::metric("Queries", tileQueries)
        << remark::metric("Heads", group)
        << remark::metric("Keys", this->keyBlock);
  }

  ValueRange run() {
    numQueries = k.dim(query, 2);
    numKeys = k.dim(key, 2);
    OpFoldResult batch = getAsOpFoldResult(k.dim(query, 0));
    SmallVector<Value> outs = {emptyLike(op.getResult())};
    if (op.getLse())
      outs.push_back(emptyLike(op.getLse()));
    auto loop = scf::ForallOp::create(
        k.b, k.loc,
        ArrayRef<OpFoldResult>{
            batch, k.b.getIndexAttr(tensorType(query).getDimSize(1) / group),
            getAsOpFoldResult(k.ceilDiv(numQueries, tileQueries))},
        outs, std::nullopt);

    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> ivs = loop.getInductionVars();
    firstQuery = k.mul(ivs[2], tileQueries);
    queries = k.min(k.index(tileQueries), k.sub(numQueries, firstQuery));
    Value head = k.mul(ivs[1], group);
    OpFoldResult one = k.b.getIndexAttr(1), zero = k.b.getIndexAttr(0);
    rowAt = {ivs[0], head, firstQuery};
    rowSizes = {one, k.b.getIndexAttr(group), getAsOpFoldResult(queries)};

    Value kvHead = ivs[1];
    if (group != sharing)
      kvHead =
          arith::DivUIOp::create(k.b, k.loc, kvHead, k.index(sharing / group));
    Value y = computeTile(ivs[0], kvHead);
    auto finish = y.getDefiningOp<OnlineFinishOp>();
    k.b.setInsertionPointToStart(loop.getTerminator().getBody());
    auto insert = [&](Value tile, Value dest, ArrayRef<OpFoldResult> at,
                      ArrayRef<OpFoldResult> sizes) {
      SmallVector<OpFoldResult> strides(at.size(), one);
      tensor::ParallelInsertSliceOp::create(k.b, k.loc, tile, dest, at, sizes,
                                            strides);
    };
    insert(finish.getResult(), loop.getRegionIterArgs()[0], with(rowAt, zero),
           with(rowSizes, width(op.getResult())));
    if (op.getLse())
      insert(finish.getLse(), loop.getRegionIterArgs()[1], rowAt, rowSizes);
    return loop.getResults();
  }

private:
  static SmallVector<OpFoldResult> with(ArrayRef<OpFoldResult> head,
                                        OpFoldResult last) {
    SmallVector<OpFoldResult> all(head);
    all.push_back(last);
    return all;
  }
  OpFoldResult width(Value heads) {
    return k.b.getIndexAttr(tensorType(heads).getDimSize(3));
  }

  Value emptyLike(Value result) {
    auto type = tensorType(result);
    SmallVector<OpFoldResult> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!type.isDynamicDim(dim))
        sizes.push_back(k.b.getIndexAttr(type.getDimSize(dim)));
      else // Only batch and queries may be dynamic.
        sizes.push_back(
            getAsOpFoldResult(dim == 0 ? k.dim(query, 0) : numQueries));
    }
    return tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
  }

  static int64_t largestDivisor(int64_t number, int64_t most) {
    int64_t divisor = std::min(number, most);
    while (number % divisor != 0)
      --divisor;
    return divisor;
  }

  /// The keys that some query of the tile sees: [begin, end).
  std::pair<Value, Value> visibleKeys(Value batch) {
    Value begin = k.index(0), end = numKeys;
    if (op.getLengths()) {
      Value length =
          arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(),
                                     k.loadScalar(op.getLengths(), {batch}));
      end = k.min(end, length);
    }
    bool causal = op.getCausal() != CausalAlign::None;
    if (!causal && !op.getWindow())
      return {begin, end};
    // The key position of the tile's first query.
    Value position = firstQuery;
    if (op.getCausal() != CausalAlign::TopLeft)
      position = k.add(firstQuery, k.sub(numKeys, numQueries));
    if (causal)
      end = maximum(k, begin, k.min(end, k.add(position, queries)));
    if (op.getWindow())
      begin = maximum(k, begin, k.sub(position, k.index(*op.getWindow() - 1)));
    // Steps begin where a block of the mask may.
    if (op.getBlocks() && op.getWindow())
      begin = k.sub(
          begin, arith::RemUIOp::create(k.b, k.loc, begin, k.index(keyBlock)));
    return {begin, end};
  }

  /// Whether the mask of blocks has the tile's keys from `first` on.
  Value hasBlock(KernelBuilder &k, Value batch, Value first) {
    Value blocks = op.getBlocks();
    ArrayRef<int64_t> sizes = *op.getBlockSizes();
    auto blockOf = [&](Value position, int64_t size) -> Value {
      return arith::DivUIOp::create(k.b, k.loc, position, k.index(size));
    };
    Value head = getValueOrCreateConstantIndexOp(k.b, k.loc, rowAt[1]);
    SmallVector<Value> at = {batch, head, blockOf(firstQuery, sizes[0]),
                             blockOf(first, sizes[1])};
    for (int64_t dim = 0; dim < 2; ++dim)
      if (tensorType(blocks).getDimSize(dim) == 1)
        at[dim] = k.index(0);
    return k.loadScalar(blocks, at);
  }

  Value computeTile(Value batch, Value kvHead) {
    OpFoldResult zero = k.b.getIndexAttr(0), one = k.b.getIndexAttr(1);
    Value q = cut(k, query, with(rowAt, zero), with(rowSizes, width(query)));
    Value slopes = perHead(op.getSlopes()), sinks = perHead(op.getSinks());
    Value diagonals = op.getDiagonals();
    if (diagonals)
      diagonals = cut(k, diagonals, {rowAt[1], zero},
                      {rowSizes[1], getAsOpFoldResult(k.dim(diagonals, 1))});
    KernelBuilder::Values states = {
        startState(k, with(rowSizes, width(value)), tileQueries, 0.0),
        startState(k, rowSizes, tileQueries, -INFINITY),
        startState(k, rowSizes, tileQueries, 0.0)};
    auto [begin, end] = visibleKeys(batch);
    auto fold = [&, end = end](KernelBuilder &k, Value first,
                               ValueRange carried) {
      OpFoldResult keys =
          getAsOpFoldResult(k.min(k.index(keyBlock), k.sub(end, first)));
      SmallVector<OpFoldResult> at = {batch, kvHead, first, zero};
      Value kBlock = cut(k, key, at, {one, one, keys, width(key)});
      Value vBlock = cut(k, value, at, {one, one, keys, width(value)});
      Value mask =
          cutBlock(k, op.getMask(), with(rowAt, first), with(rowSizes, keys));
      Value bias =
          cutBlock(k, op.getBias(), with(rowAt, first), with(rowSizes, keys));
      auto step = OnlineAttentionOp::create(
          k.b, k.loc, carried[0].getType(), carried[1].getType(),
          carried[2].getType(), q, kBlock, vBlock, mask, bias, diagonals,
          slopes, firstQuery, first, numQueries, numKeys, carried[0],
          carried[1], carried[2], op.getScaleAttr(), op.getCausalAttr(),
          op.getWindowAttr(), op.getSoftcapAttr());
      if (Attribute rows = op->getDiscardableAttr("attune.tile_rows"))
        step->setAttr("attune.tile_rows", rows);
      return KernelBuilder::Values(step.getResults());
    };
    auto foldPresent = [&](KernelBuilder &k, Value first, ValueRange carried) {
      auto choice = scf::IfOp::create(
          k.b, k.loc, hasBlock(k, batch, first),
          [&](OpBuilder &builder, Location loc) {
            KernelBuilder inner(builder, loc);
            scf::YieldOp::create(builder, loc, fold(inner, first, carried));
          },
          [&](OpBuilder &builder, Location loc) {
            scf::YieldOp::create(builder, loc, carried);
          });
      return KernelBuilder::Values(choice.getResults());
    };
    if (op.getBlocks())
      states = k.forLoop(begin, end, keyBlock, states, foldPresent);
    else
      states = k.forLoop(begin, end, keyBlock, states, fold);
    auto rowType = tensorType(states[1]);
    SmallVector<int64_t> shape(rowType.getShape());
    shape.push_back(tensorType(value).getDimSize(3));
    auto type = RankedTensorType::get(
        shape, tensorType(op.getResult()).getElementType());
    return OnlineFinishOp::create(k.b, k.loc, type,
                                  op.getLse() ? Type(rowType) : Type(),
                                  states[0], states[1], states[2], sinks)
        .getResult();
  }

  Value perHead(Value whole) {
    if (!whole)
      return {};
    return cut(k, whole, {rowAt[1]}, {rowSizes[1]});
  }

  AttentionOp op;
  KernelBuilder k;
  int64_t keyBlock;
  Value query, key, value;
  /// Query heads that share keys, and those of them that a tile has.
  int64_t sharing, group;
  int64_t tileQueries;
  Value numQueries, numKeys;
  // Of the current tile: where its rows start in [B, Hq, M], and how many.
  Value firstQuery, queries;
  SmallVector<OpFoldResult> rowAt, rowSizes;
};

struct TileAttention final : OpRewritePattern<AttentionOp> {
  TileAttention(MLIRContext *context, int64_t queryBlock, int64_t keyBlock)
      : OpRewritePattern(context), queryBlock(queryBlock), keyBlock(keyBlock) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto fixed = [](Value heads) {
      auto type = tensorType(heads);
      return !type.isDynamicDim(1) && !type.isDynamicDim(3);
    };
    if (!fixed(op.getQuery()) || !fixed(op.getKey()) || !fixed(op.getValue()) ||
        !fixed(op.getResult()))
      return rewriter.notifyMatchFailure(op, "heads and widths must be static");
    rewriter.replaceOp(op, Tiling(op, rewriter, queryBlock, keyBlock).run());
    return success();
  }
  int64_t queryBlock, keyBlock;
};

struct ConvertAttuneAttentionToOnline final
    : impl::ConvertAttuneAttentionToOnlineBase<ConvertAttuneAttentionToOnline> {
  using Base::Base;

  void runOnOperation() override {
    if (queryBlock < 1 || keyBlock < 1) {
      getOperation().emitError("query-block and key-block must be positive");
      return signalPassFailure();
    }
    if (failed(checkSchedule(getOperation())))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    patterns.add<TileAttention>(&getContext(), queryBlock, keyBlock);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](AttentionOp op) {
      op.emitOpError("needs static head counts and widths to become loops");
      signalPassFailure();
    });
  }
};

} // namespace
} // namespace attune
