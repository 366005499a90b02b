//===- AttentionWeights.cpp - Weights from the log-sum-exp ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// attune.attention_weights becomes a parallel loop over batches, heads asked
// for and blocks of queries. Each iteration makes the scores of its rows once
// more, by the kernel that attention makes them with, block by block of keys,
// and writes exp(E - lse) where the caller wants it.

#include "../Patterns.h"
#include "StepKernel.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

struct LowerWeights final : OpRewritePattern<AttentionWeightsOp> {
  LowerWeights(MLIRContext *context, const VectorAttentionTile &tile)
      : OpRewritePattern(context), tile(tile) {}

  LogicalResult matchAndRewrite(AttentionWeightsOp op,
                                PatternRewriter &rewriter) const override {
    auto query = tensorType(op.getQuery()), key = tensorType(op.getKey());
    if (query.isDynamicDim(1) || query.isDynamicDim(3) || key.isDynamicDim(1))
      return rewriter.notifyMatchFailure(op, "heads and widths are dynamic");
    KernelBuilder k(rewriter, op.getLoc());
    int64_t group = query.getDimSize(1) / key.getDimSize(1);
    // Packing a block of keys pays from eight register tiles of queries on.
    int64_t queryBlock = 8 * tile.rows, keyBlock = 8 * tile.lanes;
    Value dest = op.getDest();
    Value numQueries = k.dim(op.getQuery(), 2), numKeys = k.dim(op.getKey(), 2);
    Value batches = k.dim(dest, 0);
    if (op.getWhen()) // nobody asked: nothing to do
      batches = arith::SelectOp::create(k.b, k.loc, op.getWhen(), batches,
                                        k.index(0));
    SmallVector<OpFoldResult> counts = {
        getAsOpFoldResult(batches), getAsOpFoldResult(k.dim(dest, 1)),
        getAsOpFoldResult(k.ceilDiv(numQueries, queryBlock))};
    OpFoldResult one = k.b.getIndexAttr(1), zero = k.b.getIndexAttr(0);
    auto place = [&](KernelBuilder &k, ValueRange ivs) {
      Value first = k.mul(ivs[2], queryBlock);
      Value rows = k.min(k.index(queryBlock), k.sub(numQueries, first));
      return KernelBuilder::Tile{
          {ivs[0], ivs[1], first, k.index(0)},
          {one, one, getAsOpFoldResult(rows), getAsOpFoldResult(numKeys)}};
    };
    auto compute = [&](KernelBuilder &k, ValueRange ivs, Value out) -> Value {
      Value head = k.add(ivs[1], k.index(op.getFromHead()));
      Value kvHead =
          group == 1 ? head
                     : arith::DivUIOp::create(k.b, k.loc, head, k.index(group));
      Value first = k.mul(ivs[2], queryBlock);
      OpFoldResult rows = getAsOpFoldResult(
          k.min(k.index(queryBlock), k.sub(numQueries, first)));
      auto cut = [&](Value from, ArrayRef<OpFoldResult> at,
                     ArrayRef<OpFoldResult> sizes) -> Value {
        SmallVector<OpFoldResult> strides(at.size(), one);
        return tensor::ExtractSliceOp::create(k.b, k.loc, from, at, sizes,
                                              strides);
      };
      Value q = cut(op.getQuery(), {ivs[0], head, first, zero},
                    {one, one, rows, k.b.getIndexAttr(query.getDimSize(3))});
      Value lse = cut(op.getLse(), {ivs[0], head, first}, {one, one, rows});
      Value slopes = op.getSlopes();
      if (slopes)
        slopes = cut(slopes, {head}, {one});
      Value diagonals = op.getDiagonals();
      if (diagonals)
        diagonals = cut(diagonals, {head, zero},
                        {one, getAsOpFoldResult(k.dim(diagonals, 1))});
      auto state = [&](ArrayRef<int64_t> shape) -> Value {
        return tensor::EmptyOp::create(k.b, k.loc, shape, k.b.getF32Type());
      };
      Block *home = k.b.getInsertionBlock();
      return k.forLoop(
          k.index(0), numKeys, keyBlock, out,
          [&](KernelBuilder &k, Value from, ValueRange c) {
            OpFoldResult keys = getAsOpFoldResult(
                k.min(k.index(keyBlock), k.sub(numKeys, from)));
            Value kBlock =
                cut(op.getKey(), {ivs[0], kvHead, from, zero},
                    {one, one, keys, k.b.getIndexAttr(query.getDimSize(3))});
            SmallVector<OpFoldResult> at = {ivs[0], head, first, from};
            SmallVector<OpFoldResult> sizes = {one, one, rows, keys};
            // The scores, stated by the op that folds them.
            int64_t width = query.getDimSize(3);
            Value acc = state({1, 1, 1, width}), row = state({1, 1, 1});
            auto step = OnlineAttentionOp::create(
                k.b, k.loc,
                TypeRange{acc.getType(), row.getType(), row.getType()}, q,
                kBlock, kBlock, cutScores(k, op.getMask(), at, sizes),
                cutScores(k, op.getBias(), at, sizes), diagonals, slopes, first,
                from, numQueries, numKeys, /*next_key=*/Value(),
                /*next_value=*/Value(), acc, row, row, op.getScaleAttr(),
                op.getCausalAttr(), op.getWindowAttr(), op.getSoftcapAttr(),
                /*tile=*/DenseI64ArrayAttr());
            Value next = StepKernel(step, tile, queryBlock, keyBlock)
                             .emitWeights(k, lse, from, c[0], home);
            rewriter.eraseOp(step);
            return Values{next};
          })[0];
    };
    rewriter.replaceOp(op, k.forallTiles(counts, dest, place, compute));
    return success();
  }
  VectorAttentionTile tile;
};

} // namespace

Value StepKernel::emitWeights(KernelBuilder &k, Value lse, Value first,
                              Value dest, Block *home) {
  {
    // Scratch lives as long as the parallel iteration.
    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(home);
    queryScratch =
        scratch(k, {rowBlocks, rows, int64_t(llvm::alignTo(width, lanes))});
    keyScratch = scratch(k, {keyPanels, width, lanes});
    if (sharesMask)
      maskScratch = scratch(k, {keyPanels * lanes});
  }
  keys = k.dim(op.getKey(), 2);
  batch = kvHead = k.index(0);
  packedQueries = packQueries(k, queryScratch);
  packedKeys = packKeys(k, keyScratch);
  if (sharesMask)
    packedMask = packMask(k, maskScratch);
  return k.forLoop(
      k.index(0), countRowBlocks(k), 1, dest,
      [&](KernelBuilder &k, Value block, ValueRange c) {
        SmallVector<Row> at = rowsOf(k, block);
        Range range = visible(k, at);
        Values subtract;
        for (const Row &row : at)
          subtract.push_back(k.splat(
              emitSafeMax(k, k.loadScalar(lse, place(k, lse, row))), lanes));
        return k.forLoop(
            k.index(0), k.ceilDiv(keys, lanes), 1, c,
            [&](KernelBuilder &k, Value panel, ValueRange c) {
              Value start = k.mul(panel, lanes);
              Values scores = packedProducts(k, block, panel);
              adjust(k, at, start, scores);
              scores = hide(k, range, start, scores);
              Value valid = k.min(k.index(lanes), k.sub(keys, start));
              Value column = k.add(first, start), next = c[0];
              for (auto [i, row] : llvm::enumerate(at)) {
                Value p = emitExp(k, arith::SubFOp::create(
                                         k.b, k.loc, scores[i], subtract[i]));
                next = k.store(p, next, place(k, next, row, column), valid);
              }
              return Values{next};
            });
      })[0];
}

void populateAttentionWeightsPatterns(RewritePatternSet &patterns,
                                      const VectorLowering &lowering) {
  patterns.add<LowerWeights>(
      patterns.getContext(),
      VectorAttentionTile{lowering.lanes, lowering.rows});
}

} // namespace attune
