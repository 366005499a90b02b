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

#include "PanelProduct.h"

#include "Attune/AttunePairs.h"
#include "attune/Conversion/PairProduct.h"
#include "attune/Conversion/Schedule.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerLinear final : OpRewritePattern<LinearOp> {
  LowerLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(LinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto resultType = cast<RankedTensorType>(op.getType());
    if (resultType.getRank() > 3 || resultType.getRank() < 2)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");

    PanelProduct product;
    product.weight = op.getWeight();
    if (cast<RankedTensorType>(product.weight.getType()).getRank() == 2)
      product.weight =
          packMatrix(k, product.weight, lowering.lanes, op.getGated());
    product.width = resultType.getShape().back();
    product.gated = op.getGated();
    product.activation = op.getActivation();
    product.bias = op.getBias();
    if (op.getScale())
      product.scale = op.getScale()->convertToDouble();
    product.residual = bool(op.getResidual());
    Value input = asRows(k, op.getInput());
    if (sharesSets(op.getInput()))
      input = copyRows(k, input);
    product.pairs =
        holdsPairs(cast<RankedTensorType>(product.weight.getType()),
                   cast<RankedTensorType>(input.getType()).getDimSize(1));
    int64_t lanes = pairLanes(product.lanes());
    product.rowsInMemory = input;
    product.input = [input, lanes, pairs = product.pairs](KernelBuilder &,
                                                          Value row) {
      return [=](KernelBuilder &k, Value step) {
        return pairs ? splatPair(k, input, {row, k.mul(step, 2)}, lanes)
                     : k.loadScalar(input, {row, step});
      };
    };
    // A residual is updated in place: it is the destination to begin with.
    Value dest = op.getResidual() ? asRows(k, op.getResidual())
                                  : emptyRows(k, op.getInput(), product.width,
                                              resultType.getElementType());

    Value numRows = countRows(k, op.getInput());
    // The host chooses the tile of a block by the number of rows.
    if (lowering.cooperative) {
      Value rows = LinearIntoOp::create(k.b, k.loc, dest.getType(), input,
                                        product.weight, product.bias, dest,
                                        product.activation, product.gated,
                                        product.residual, op.getScaleAttr())
                       .getResult();
      rewriter.replaceOp(op, fromRows(k, rows, resultType, op.getInput()));
      return success();
    }
    LowerLinear own = *this;
    own.lowering.rows = scheduled(op, "attune.tile_rows", lowering.rows);
    own.lowering.panelBytes =
        scheduled(op, "attune.panel_bytes", lowering.panelBytes);
    remark::analysis(op.getLoc(), tilingRemark(op, "linear"))
        << remark::add("tiles of {0} rows by {1} columns over sums of {2}",
                       own.lowering.rows, product.lanes(), product.depth())
        << remark::metric("Rows", own.lowering.rows)
        << remark::metric("Columns", product.lanes())
        << remark::metric("Depth", product.depth());
    Value rows = own.byPanels(k, product, numRows, dest);
    rewriter.replaceOp(op, fromRows(k, rows, resultType, op.getInput()));
    return success();
  }

  /// Whether rows come from outside of the function and one column of them
  /// belongs to one set of the cache.
  bool sharesSets(Value input) const {
    while (Operation *view = input.getDefiningOp()) {
      if (!isa<FlattenTokensOp, UnflattenTokensOp>(view))
        break;
      input = view->getOperand(0);
    }
    auto type = cast<RankedTensorType>(input.getType());
    int64_t bytes = type.getShape().back() * type.getElementTypeBitWidth() / 8;
    return lowering.wayBytes > 0 && bytes % lowering.wayBytes == 0 &&
           (isa<BlockArgument>(input) || input.getDefiningOp<func::CallOp>());
  }

  /// Rows in memory of this function.
  Value copyRows(KernelBuilder &k, Value input) const {
    auto type = cast<RankedTensorType>(input.getType());
    int64_t width = type.getDimSize(1), lanes = lowering.lanes;
    Value dest = emptyRows(k, input, width, type.getElementType());
    return forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
      return forColumns(
          k, width, lanes, tile,
          [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
            Value x = k.load(input, {row, column}, lanes, valid);
            return KernelBuilder::Values{
                k.store(x, carried[0], {k.index(0), column}, valid)};
          })[0];
    });
  }

  /// Each step takes all rows against panels that stay in its cache.
  Value byPanels(KernelBuilder &k, const PanelProduct &product, Value numRows,
                 Value dest) const {
    // What comes next is fetched to the cache meanwhile, if it has room. Of
    // panels that take more of it, parts meet all rows in turn.
    PanelProduct own = product;
    bool inF32 =
        cast<RankedTensorType>(dest.getType()).getElementType().isF32();
    if (inF32 && product.panelBytes() > lowering.panelBytes)
      own.passes = product.countPasses(lowering.panelBytes / 4);
    bool ahead = own.panelBytes() / own.passes <= lowering.panelBytes;
    VectorLowering half = lowering;
    half.panelBytes = half.panelBytes / 2 * own.passes;
    int64_t group = product.panelsPerStep(half);
    return k.forallTiles(
        {k.b.getIndexAttr(product.numTapered(group))}, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          PanelProduct::Step step = product.taperedStep(k, ivs[0], group);
          return KernelBuilder::Tile{
              {k.index(0), step.firstColumn},
              {getAsOpFoldResult(numRows), step.columns}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          PanelProduct::Step step = product.taperedStep(k, ivs[0], group);
          PanelProduct here = own;
          if (ahead) {
            Value next = SuccessorOp::create(k.b, k.loc, ivs[0]);
            here.ahead = {Value(),
                          product.taperedStep(k, next, group).firstPanel};
          }
          return here.allRows(k, lowering, numRows, step.firstPanel, step.count,
                              k.index(0), tile);
        });
  }

  VectorLowering lowering;
};

} // namespace

void populateLinearPatterns(RewritePatternSet &patterns,
                            const VectorLowering &lowering) {
  patterns.add<LowerLinear>(patterns.getContext(), lowering);
}

} // namespace attune
