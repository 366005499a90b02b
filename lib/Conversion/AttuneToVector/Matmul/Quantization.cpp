//===- Quantization.cpp - Rows of activations as bytes ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Rows/CachedRows.h"

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;

/// A row is read twice for each group, which the first-level cache holds.
struct LowerQuantizeRows final : OpRewritePattern<QuantizeRowsOp> {
  LowerQuantizeRows(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(QuantizeRowsOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getInput().getType());
    int64_t width = type.getShape().back();
    if (type.getRank() < 2 || type.getRank() > 3 ||
        ShapedType::isDynamic(width))
      return rewriter.notifyMatchFailure(op, "rank 2 or 3, static width only");
    KernelBuilder k(rewriter, op.getLoc());
    Value input = asRows(k, op.getInput());
    int64_t groups = width / static_cast<int64_t>(op.getGroup());
    Values dests = {emptyRows(k, op.getInput(), width, k.b.getI8Type()),
                    emptyRows(k, op.getInput(), groups, k.b.getF32Type()),
                    emptyRows(k, op.getInput(), groups, k.b.getI32Type())};
    Values rows = k.forallTiles(
        {getAsOpFoldResult(k.dim(dests[0], 0))}, dests,
        [&](KernelBuilder &k, ValueRange ivs) {
          SmallVector<KernelBuilder::Tile> tiles;
          for (int64_t columns : {width, groups, groups})
            tiles.push_back({{ivs[0], k.index(0)},
                             {k.b.getIndexAttr(1), k.b.getIndexAttr(columns)}});
          return tiles;
        },
        [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
          return k.forLoop(
              k.index(0), k.index(groups), 1, tiles,
              [&](KernelBuilder &k, Value group, ValueRange carried) {
                return quantize(k, input, ivs[0], group, op.getGroup(),
                                carried);
              });
        });
    Values results;
    for (auto [made, result] : llvm::zip(rows, op.getResults()))
      results.push_back(fromRows(k, made, result.getType(), op.getInput()));
    rewriter.replaceOp(op, results);
    return success();
  }

  /// Group `group` of a row, into the row's values, scales and sums.
  Values quantize(KernelBuilder &k, Value input, Value row, Value group,
                  int64_t size, ValueRange tiles) const {
    Value first = k.mul(group, size), zero = k.index(0);
    auto load = [&](KernelBuilder &k, Value column, int64_t lanes,
                    Value valid) {
      return k.load(input, {row, k.add(first, column)}, lanes, valid);
    };
    auto integers = VectorType::get({lanes}, k.b.getI32Type());
    RowScale scales(k, largestMagnitude(k, size, lanes, load), 127);
    Value none =
        arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(integers));
    Value by = k.splat(scales.inverse, lanes);
    Values done = forColumns(
        k, size, lanes, {tiles[0], none},
        [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
          Value q = roundToBytes(
              k, arith::MulFOp::create(k.b, k.loc,
                                       load(k, column, lanes, valid), by));
          Value narrow = arith::TruncIOp::create(
              k.b, k.loc, VectorType::get({lanes}, k.b.getI8Type()), q);
          return Values{
              k.store(narrow, carried[0], {zero, k.add(first, column)}, valid),
              arith::AddIOp::create(k.b, k.loc, carried[1], q)};
        });
    Value sum = vector::ReductionOp::create(
        k.b, k.loc, vector::CombiningKind::ADD, done[1]);
    auto insert = [&](Value value, Value tile) -> Value {
      return tensor::InsertOp::create(k.b, k.loc, value, tile,
                                      ValueRange{zero, group});
    };
    return {done[0], insert(scales.scale, tiles[1]), insert(sum, tiles[2])};
  }

  int64_t lanes;
};

} // namespace

void populateQuantizationPatterns(RewritePatternSet &patterns,
                                  const VectorLowering &lowering) {
  patterns.add<LowerQuantizeRows>(patterns.getContext(), lowering);
}

} // namespace attune
