//===- Linear.cpp - Linear layers as packed matrix products -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A linear layer streams its weight panels [K, R] against rows of activations.
// Threads divide the panels, so each weight is read by one thread only and the
// same code serves many rows (prefill) and one (decode); the sum over K is
// never split, so results do not depend on the number of threads.

#include "Patterns.h"

using namespace mlir;

namespace attune {
namespace {

/// A plain [N, K] matrix in panels, made at run time: for matrices that are no
/// attune.weight (those are packed in the file).
Value packMatrix(KernelBuilder &k, Value matrix, int64_t lanes, bool gated) {
  auto type = cast<RankedTensorType>(matrix.getType());
  int64_t rows = type.getDimSize(0), depth = type.getDimSize(1);
  int64_t half = gated ? rows / 2 : rows;
  int64_t panels = (half + lanes - 1) / lanes * (gated ? 2 : 1);
  auto packed =
      RankedTensorType::get({panels, depth, lanes}, type.getElementType());
  return tensor::GenerateOp::create(
      k.b, k.loc, packed, ValueRange{},
      [&](OpBuilder &b, Location loc, ValueRange at) {
        KernelBuilder in(b, loc);
        Value panel = at[0], first = in.index(0);
        if (gated) {
          Value two = in.index(2);
          first = in.mul(arith::RemSIOp::create(b, loc, panel, two), half);
          panel = arith::DivSIOp::create(b, loc, panel, two);
        }
        Value row = in.add(in.mul(panel, lanes), at[2]);
        Value inside = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt,
                                             row, in.index(half));
        Value source = in.add(first, in.min(row, in.index(half - 1)));
        Value value = tensor::ExtractOp::create(b, loc, matrix,
                                                ValueRange{source, at[1]});
        Value zero = arith::ConstantOp::create(
            b, loc, b.getZeroAttr(type.getElementType()));
        tensor::YieldOp::create(
            b, loc,
            arith::SelectOp::create(b, loc, inside, value, zero).getResult());
      });
}

struct LowerLinear final : OpRewritePattern<LinearOp> {
  LowerLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(LinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto resultType = cast<RankedTensorType>(op.getType());
    if (resultType.getRank() > 3 || resultType.getRank() < 2)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");

    Value weight = op.getWeight();
    if (cast<RankedTensorType>(weight.getType()).getRank() == 2)
      weight = packMatrix(k, weight, lowering.lanes, op.getGated());
    auto weightType = cast<RankedTensorType>(weight.getType());
    int64_t depth = weightType.getDimSize(1), lanes = weightType.getDimSize(2);
    int64_t width = resultType.getShape().back();
    int64_t panels = (width + lanes - 1) / lanes;

    Kernel kernel{op,    asRows(k, op.getInput()), weight, depth, lanes, width,
                  panels};
    // A residual is updated in place: it is the destination to begin with.
    Value dest = op.getResidual() ? asRows(k, op.getResidual())
                                  : emptyRows(k, op.getInput(), width,
                                              resultType.getElementType());

    // Panels per parallel step: as many as stay in the cache while rows pass
    // by, but enough steps to share among threads.
    int64_t panelBytes = depth * lanes * 4 * (op.getGated() ? 2 : 1);
    int64_t group = std::max<int64_t>(
        1, std::min(lowering.panelBytes / panelBytes, panels / 8));
    Value numRows = countRows(k, op.getInput());
    int64_t columns = group * lanes;
    Value rows = k.forallTiles(
        {k.b.getIndexAttr((panels + group - 1) / group)}, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          Value first = k.mul(ivs[0], columns);
          OpFoldResult size = k.b.getIndexAttr(columns);
          if (width % columns != 0)
            size = k.min(k.index(columns), k.sub(k.index(width), first));
          return KernelBuilder::Tile{{k.index(0), first},
                                     {getAsOpFoldResult(numRows), size}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value firstPanel = k.mul(ivs[0], group);
          Value count = k.index(group);
          if (panels % group != 0)
            count = k.min(count, k.sub(k.index(panels), firstPanel));
          return kernel.allRows(k, lowering.rows, numRows, firstPanel, count,
                                tile);
        });
    rewriter.replaceOp(op, fromRows(k, rows, resultType, op.getInput()));
    return success();
  }

  struct Kernel {
    LinearOp op;
    Value input, weight;
    int64_t depth, lanes, width, panels;

    /// All rows against panels [firstPanel, firstPanel + count).
    Value allRows(KernelBuilder &k, int64_t tileRows, Value numRows,
                  Value firstPanel, Value count, Value tile) {
      auto block = [&](KernelBuilder &k, int64_t rows, Value row, Value tile) {
        return k.forLoop(k.index(0), count, 1, tile,
                         [&](KernelBuilder &k, Value i, ValueRange carried) {
                           return KernelBuilder::Values{
                               onePanel(k, rows, row, k.add(firstPanel, i),
                                        k.mul(i, lanes), carried[0])};
                         })[0];
      };
      auto known = getConstantIntValue(numRows);
      if (known && *known <= tileRows)
        return block(k, *known, k.index(0), tile);
      Value rest =
          arith::RemSIOp::create(k.b, k.loc, numRows, k.index(tileRows));
      Value whole = k.sub(numRows, rest);
      tile = k.forLoop(k.index(0), whole, tileRows, tile,
                       [&](KernelBuilder &k, Value row, ValueRange carried) {
                         return KernelBuilder::Values{
                             block(k, tileRows, row, carried[0])};
                       })[0];
      if (tileRows == 1)
        return tile;
      // The last rows get a register tile of just their number.
      SmallVector<int64_t> cases;
      for (int64_t rows = 1; rows < tileRows; ++rows)
        cases.push_back(rows);
      auto tail = scf::IndexSwitchOp::create(k.b, k.loc, tile.getType(), rest,
                                             cases, cases.size());
      auto fill = [&](Region &region, int64_t rows) {
        OpBuilder::InsertionGuard guard(k.b);
        k.b.createBlock(&region);
        KernelBuilder in(k.b, k.loc);
        Value done = rows == 0 ? tile : block(in, rows, whole, tile);
        scf::YieldOp::create(k.b, k.loc, done);
      };
      fill(tail.getDefaultRegion(), 0);
      for (auto [rows, region] : llvm::zip(cases, tail.getCaseRegions()))
        fill(region, rows);
      return tail.getResult(0);
    }

    /// `rows` rows from `row` against one panel; writes columns [column,
    /// +lanes) of the tile.
    Value onePanel(KernelBuilder &k, int64_t rows, Value row, Value panel,
                   Value column, Value tile) {
      KernelBuilder::Values sums;
      Value valid;
      Value n = k.mul(panel, lanes); // the panel's first output channel
      if (width % lanes != 0)
        valid = k.min(k.index(lanes), k.sub(k.index(width), n));
      auto product = [&](Value storedPanel) {
        KernelBuilder::Values zero(rows, k.splat(0.0, lanes));
        return emitMicrokernel(
            k, rows, k.index(depth), zero,
            [&](KernelBuilder &k, int64_t i, Value step) {
              return k.loadScalar(input, {k.add(row, k.index(i)), step});
            },
            [&](KernelBuilder &k, Value step) {
              return k.load(weight, {storedPanel, step, k.index(0)}, lanes);
            });
      };
      auto bias = [&](KernelBuilder::Values &values, Value first) {
        if (!op.getBias())
          return;
        Value b = k.load(op.getBias(), {first}, lanes, valid);
        for (Value &value : values)
          value = arith::AddFOp::create(k.b, k.loc, value, b);
      };
      if (op.getGated()) {
        Value pair = k.mul(panel, 2);
        KernelBuilder::Values gate = product(pair);
        bias(gate, n);
        sums = product(k.add(pair, k.index(1)));
        bias(sums, k.add(n, k.index(width)));
        for (auto [sum, g] : llvm::zip(sums, gate))
          sum = arith::MulFOp::create(k.b, k.loc, sum,
                                      emitActivation(k, op.getActivation(), g));
      } else {
        sums = product(panel);
        bias(sums, n);
        for (Value &sum : sums)
          sum = emitActivation(k, op.getActivation(), sum);
      }
      for (int64_t i = 0; i < rows; ++i) {
        Value value = sums[i];
        Value at = k.add(row, k.index(i));
        if (op.getScale())
          value = arith::MulFOp::create(
              k.b, k.loc, value,
              k.splat(op.getScale()->convertToDouble(), lanes));
        if (op.getResidual())
          value = arith::AddFOp::create(
              k.b, k.loc, value, k.load(tile, {at, column}, lanes, valid));
        tile = k.store(value, tile, {at, column}, valid);
      }
      return tile;
    }
  };

  VectorLowering lowering;
};

} // namespace

void populateLinearPatterns(RewritePatternSet &patterns,
                            const VectorLowering &lowering) {
  patterns.add<LowerLinear>(patterns.getContext(), lowering);
}

} // namespace attune
