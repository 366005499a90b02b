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

#include "HeadRows.h"
#include "PanelProduct.h"

#include "Attune/AttunePanels.h"
#include "attune/Conversion/PairProduct.h"
#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace attune {
namespace {

/// Whether rows come from outside of the function and one column of them
/// belongs to one set of the cache.
bool sharesSets(Value input, const VectorLowering &lowering) {
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
Value copyRows(KernelBuilder &k, Value input, const VectorLowering &lowering) {
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

/// In how many parts of the depth panels meet the rows: one, unless they take
/// more than their share of the cache.
int64_t passesOf(const PanelProduct &product, const VectorLowering &lowering) {
  return product.panelBytes() > lowering.panelBytes
             ? product.countPasses(lowering.panelBytes / 4)
             : 1;
}

/// The product of step `number` fetches the panels of the next to the cache
/// meanwhile, if it has room for both.
PanelProduct withNext(KernelBuilder &k, PanelProduct product, Value number,
                      int64_t group, const VectorLowering &lowering,
                      int64_t unit = 1) {
  if (product.panelBytes() / product.passes > lowering.panelBytes)
    return product;
  Value next = SuccessorOp::create(k.b, k.loc, number);
  product.ahead = {Value(),
                   product.taperedStep(k, next, group, unit).firstPanel};
  return product;
}

/// Each step takes all rows against panels that stay in its cache.
Value byPanels(KernelBuilder &k, const PanelProduct &product, Value numRows,
               Value dest, const VectorLowering &lowering) {
  // Sums of parts wait in the result.
  PanelProduct own = product;
  if (cast<RankedTensorType>(dest.getType()).getElementType().isF32())
    own.passes = passesOf(product, lowering);
  VectorLowering half = lowering;
  half.panelBytes = half.panelBytes / 2 * own.passes;
  int64_t group = product.panelsPerStep(half);
  return k.forallTiles(
      {k.b.getIndexAttr(product.numTapered(group))}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        PanelProduct::Step step = product.taperedStep(k, ivs[0], group);
        return KernelBuilder::Tile{{k.index(0), step.firstColumn},
                                   {getAsOpFoldResult(numRows), step.columns}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        PanelProduct::Step step = product.taperedStep(k, ivs[0], group);
        return withNext(k, own, ivs[0], group, lowering)
            .allRows(k, lowering, numRows, step.firstPanel, step.count,
                     k.index(0), tile);
      });
}

/// What both kinds of linear layers have.
template <typename Op>
PanelProduct describe(Op op, const VectorLowering &lowering) {
  PanelProduct product(lowering);
  product.weight = op.getWeight();
  product.width = cast<RankedTensorType>(op.getType()).getShape().back();
  product.gated = op.getGated();
  product.activation = op.getActivation();
  product.bias = op.getBias();
  if (op.getScale())
    product.scale = op.getScale()->convertToDouble();
  product.residual = bool(op.getResidual());
  return product;
}

/// A residual is updated in place: it is the destination to begin with.
template <typename Op> Value destOf(KernelBuilder &k, Op op) {
  if (op.getResidual())
    return asRows(k, op.getResidual());
  auto type = cast<RankedTensorType>(op.getType());
  return emptyRows(k, op.getInput(), type.getShape().back(),
                   type.getElementType());
}

/// Panels that a step cannot be cut in: their columns are whole heads.
int64_t panelsOfHeads(const PanelProduct &product, int64_t width) {
  return std::lcm(width, product.lanes()) / product.lanes();
}

/// What becomes of the result if all of it is heads, and rows of a tile can be
/// handed over at once: with all of their sums, by vectors, and in as many
/// steps as make work for a quarter of the threads: idle ones cost more than
/// another pass over the heads.
template <typename Op>
std::optional<HeadEpilogue> epilogueOf(Op op, const PanelProduct &product,
                                       const VectorLowering &lowering) {
  bool inPasses = passesOf(product, lowering) > 1;
  bool inTiles = product.pairs && lowering.matrixRows != 0;
  if (op.getResidual() || inPasses || inTiles ||
      cast<RankedTensorType>(op.getType()).getRank() != 3)
    return std::nullopt;
  auto epilogue = HeadEpilogue::match(op, op.getResult());
  if (!epilogue)
    return std::nullopt;
  int64_t steps = llvm::divideCeil(
      product.panels(), panelsOfHeads(product, epilogue->getWidth()));
  if (steps < std::min(product.panels(), lowering.threads / 4))
    return std::nullopt;
  return epilogue;
}

/// As byPanels. A step takes whole heads: while the rows of a tile are in the
/// first-level cache, their heads go where they belong.
KernelBuilder::Values byHeads(KernelBuilder &k, const PanelProduct &product,
                              const HeadEpilogue &epilogue, Value input,
                              Type element, const VectorLowering &lowering) {
  int64_t lanes = product.lanes();
  int64_t unit = panelsOfHeads(product, epilogue.getWidth());
  VectorLowering half = lowering;
  half.panelBytes = half.panelBytes / 2;
  int64_t most = lowering.tileBytes / (lowering.rows * lanes * 4);
  int64_t group = std::min(product.panelsPerStep(half), most);
  group = std::max(unit, group / unit * unit);
  Value batch = k.dim(input, 0), tokens = k.dim(input, 1);
  Value numRows = k.mul(batch, tokens);
  auto columnsOf = [](KernelBuilder &k, const PanelProduct::Step &step) {
    return getValueOrCreateConstantIndexOp(k.b, k.loc, step.columns);
  };
  return k.forallTiles(
      {k.b.getIndexAttr(product.numTapered(group, unit))},
      epilogue.destinations(k, batch, tokens),
      [&](KernelBuilder &k, ValueRange ivs) {
        PanelProduct::Step step = product.taperedStep(k, ivs[0], group, unit);
        return epilogue.place(k, step.firstColumn, columnsOf(k, step), batch,
                              tokens);
      },
      [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
        PanelProduct::Step step = product.taperedStep(k, ivs[0], group, unit);
        Value columns = columnsOf(k, step);
        PanelProduct here = withNext(k, product, ivs[0], group, lowering, unit);
        here.consumer = {group * lanes, element,
                         [&](KernelBuilder &k, Value firstRow, Value rows,
                             Value scratch, ValueRange tiles) {
                           return epilogue.take(k, firstRow, rows,
                                                step.firstColumn, columns,
                                                tokens, lanes, scratch, tiles);
                         }};
        return here.handOver(k, lowering.rows, numRows, step.firstPanel,
                             step.count, tiles);
      });
}

/// Replaces the layer by its product, as what was scheduled for it says.
template <typename Op>
void lower(Op op, KernelBuilder &k, const PanelProduct &product,
           VectorLowering lowering, PatternRewriter &rewriter) {
  lowering = lowering.scheduledFor(op);
  product.remarkTiles(op, "linear", lowering);
  if (auto epilogue = epilogueOf(op, product, lowering)) {
    epilogue->prepare(rewriter, op);
    Type element = cast<RankedTensorType>(op.getType()).getElementType();
    epilogue->replace(rewriter, byHeads(k, product, *epilogue, op.getInput(),
                                        element, lowering));
    rewriter.eraseOp(op);
    return;
  }
  Value rows = byPanels(k, product, countRows(k, op.getInput()), destOf(k, op),
                        lowering);
  rewriter.replaceOp(op, fromRows(k, rows, op.getType(), op.getInput()));
}

bool hasRank2Or3(Type type) {
  int64_t rank = cast<RankedTensorType>(type).getRank();
  return rank == 2 || rank == 3;
}

struct LowerLinear final : OpRewritePattern<LinearOp> {
  LowerLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(LinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    if (!hasRank2Or3(op.getType()))
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    PanelProduct product = describe(op, lowering);
    if (cast<RankedTensorType>(product.weight.getType()).getRank() == 2)
      product.weight =
          packMatrix(k, product.weight, lowering.lanes, op.getGated());
    Value input = asRows(k, op.getInput());
    if (sharesSets(op.getInput(), lowering))
      input = copyRows(k, input, lowering);
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
    // The host chooses the tile of a block by the number of rows.
    if (lowering.cooperative) {
      Value dest = destOf(k, op);
      auto into = LinearIntoOp::create(k.b, k.loc, dest.getType(), input,
                                       product.weight, product.bias, dest,
                                       product.activation, product.gated,
                                       product.residual, op.getScaleAttr());
      keepSchedule(op, into);
      rewriter.replaceOp(
          op, fromRows(k, into.getResult(), op.getType(), op.getInput()));
      return success();
    }
    lower(op, k, product, lowering, rewriter);
    return success();
  }

  VectorLowering lowering;
};

/// The same of bytes. GPUs have no kernel for these.
struct LowerQuantizedLinear final : OpRewritePattern<QuantizedLinearOp> {
  LowerQuantizedLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(QuantizedLinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    PanelProduct product = describe(op, lowering);
    if (!hasRank2Or3(op.getType()) || lowering.cooperative ||
        cast<RankedTensorType>(product.weight.getType()).getRank() != 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 and panels only");
    Value input = asRows(k, op.getInput());
    product.bytes = {
        asRows(k, op.getInputScales()), asRows(k, op.getInputSums()),
        op.getWeightScales(),           op.getGroup(),
        lowering.byteProducts,          lowering.integerLanes};
    int64_t lanes = std::min(product.lanes(), lowering.integerLanes);
    product.rowsInMemory = input;
    product.input = [input, lanes](KernelBuilder &, Value row) {
      return [=](KernelBuilder &k, Value step) {
        return splatQuad(k, input, {row, k.mul(step, 4)}, lanes);
      };
    };
    lower(op, k, product, lowering, rewriter);
    return success();
  }

  VectorLowering lowering;
};

} // namespace

void populateLinearPatterns(RewritePatternSet &patterns,
                            const VectorLowering &lowering) {
  patterns.add<LowerLinear, LowerQuantizedLinear>(patterns.getContext(),
                                                  lowering);
}

} // namespace attune
