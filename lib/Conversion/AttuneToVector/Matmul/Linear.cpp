//===- Linear.cpp - Linear layers as packed matrix products -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A linear layer streams its weight panels [K, R] against rows of activations.
// Threads divide the panels, so each weight is read by one thread only and the
// same code serves many rows (prefill) and one (decode). Where there are more
// threads than panels keep busy, they divide the rows, too. The sum over K is
// never split, so results do not depend on the number of threads.

#include "../Warps/NormsOfFew.h"
#include "HeadRows.h"
#include "ProductGrid.h"

#include "Attune/AttunePanels.h"
#include "attune/Conversion/MatrixTiles.h"

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

/// Rows [sequences * tokens, K] in memory of this function: all of them, or at
/// most the last `most` of each sequence.
Value copyRows(KernelBuilder &k, Value rows, Value sequences, Value tokens,
               std::optional<int64_t> most, const VectorLowering &lowering) {
  auto type = cast<RankedTensorType>(rows.getType());
  int64_t width = type.getDimSize(1), lanes = lowering.lanes;
  Value copied = most ? k.min(tokens, k.index(*most)) : tokens;
  Value room = k.mul(sequences, most ? k.index(*most) : tokens);
  Value dest = tensor::EmptyOp::create(
      k.b, k.loc, {getAsOpFoldResult(room), k.b.getIndexAttr(width)},
      type.getElementType());
  return k.forallTiles(
      {getAsOpFoldResult(sequences), getAsOpFoldResult(copied)}, dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        return KernelBuilder::Tile{
            {k.add(k.mul(ivs[0], copied), ivs[1]), k.index(0)},
            {k.b.getIndexAttr(1), k.b.getIndexAttr(width)}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        Value token = k.add(k.sub(tokens, copied), ivs[1]);
        Value row = k.add(k.mul(ivs[0], tokens), token);
        return forColumns(k, width, lanes, tile,
                          [&](KernelBuilder &k, Value column, Value valid,
                              ValueRange carried) {
                            Value x = k.load(rows, {row, column}, lanes, valid);
                            return KernelBuilder::Values{k.store(
                                x, carried[0], {k.index(0), column}, valid)};
                          })[0];
      });
}

/// In how many parts of the depth panels meet the rows: one, unless they take
/// more than their share of the cache. Where the next cache is far, rows of
/// such depth should not have to come from there for each panel either.
int64_t passesOf(const PanelProduct &product, const VectorLowering &lowering) {
  int64_t share = lowering.panelBytes;
  if (lowering.farLevel3)
    share = share / 4 * 3;
  return product.unit() * product.panelBytes() > share
             ? product.countPasses(lowering.panelBytes / 4)
             : 1;
}

/// What sums of normalised rows are multiplied by, [rows]: one by the root mean
/// square of each. For many rows it is found once, before the product. For few
/// rows each step finds it again: such a row is soon read, and then threads
/// need not wait for each other. The numbers are the same. Null if rows are
/// never many.
Value findRowScales(KernelBuilder &k, const PanelProduct &product,
                    const ProductGrid &grid, Value numRows) {
  if (!product.rmsEps || grid.hasFewRows() == true)
    return Value();
  // One of its own: empty tensors of a size would become one, which the
  // branches of several products do not share without a copy.
  Value table = bufferization::AllocTensorOp::create(
      k.b, k.loc,
      RankedTensorType::get({ShapedType::kDynamic}, k.b.getF32Type()), numRows);
  auto fill = [&](KernelBuilder &k) {
    return k.forallTiles(
        {getAsOpFoldResult(numRows)}, table,
        [&](KernelBuilder &k, ValueRange ivs) {
          return KernelBuilder::Tile{{ivs[0]}, {k.b.getIndexAttr(1)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          return product.storeRowScale(k, ivs[0], tile, k.index(0));
        });
  };
  if (grid.hasFewRows() == false)
    return fill(k);
  return scf::IfOp::create(
             k.b, k.loc, grid.hasFew(),
             [&](OpBuilder &builder, Location loc) {
               scf::YieldOp::create(builder, loc, table);
             },
             [&](OpBuilder &builder, Location loc) {
               KernelBuilder inner(builder, loc);
               scf::YieldOp::create(builder, loc, fill(inner));
             })
      .getResult(0);
}

/// Some panels of a step, from `first` on, against all of its rows.
using SomePanels =
    function_ref<Value(KernelBuilder &, Value first, Value count, Value tile)>;

/// All panels of a step against its rows.
Value panelsOfStep(KernelBuilder &k, const PanelProduct &product,
                   const ProductGrid &grid, const ProductGrid::Iteration &at,
                   Value tile, SomePanels some) {
  Value all = at.panels.count, zero = k.index(0);
  if (product.passes == 1 || grid.hasFewRows() == false)
    return some(k, zero, all, tile);
  // Few rows pass one panel after the other, part by part, as they are stored.
  Value times = grid.choose(k, all, k.index(1));
  Value count = grid.choose(k, k.index(1), all);
  return k.forLoop(zero, times, 1, tile,
                   [&](KernelBuilder &k, Value first, ValueRange carried) {
                     return KernelBuilder::Values{
                         some(k, first, count, carried[0])};
                   })[0];
}

/// All rows of a step against some panels as tile ops, which become vectors
/// when there are buffers: one, or one for each part of the depth.
Value packedProduct(KernelBuilder &k, const PanelProduct &product,
                    const ProductGrid::Iteration &at, Value firstPanel,
                    Value count, Value rowScales, int64_t tileRows,
                    Value tile) {
  auto one = [&](KernelBuilder &k, Value part, Value parts, Value tile) {
    return product.asTileOp(
        k, product.rowsInMemory,
        {at.firstRow, firstPanel, count, part, parts, rowScales, tileRows},
        tile);
  };
  if (product.passes == 1)
    return one(k, Value(), Value(), tile);
  Value parts = product.numPasses(k);
  return k.forLoop(k.index(0), parts, 1, tile,
                   [&](KernelBuilder &k, Value part, ValueRange carried) {
                     return KernelBuilder::Values{
                         one(k, part, parts, carried[0])};
                   })[0];
}

/// Each step meets its rows with panels that stay in its cache.
Value byPanels(KernelBuilder &k, const PanelProduct &product, Value numRows,
               Value dest, const VectorLowering &lowering) {
  // Sums of parts wait in the result.
  PanelProduct own = product;
  bool inBlocks = product.fillsMatrixTiles();
  if (!inBlocks &&
      cast<RankedTensorType>(dest.getType()).getElementType().isF32())
    own.passes = passesOf(product, lowering);
  // A wide tile's panels take more parts than few rows have use for.
  PanelProduct narrow = product;
  narrow.wide = false;
  int64_t passesOfFew = own.passes == 1 ? 1 : passesOf(narrow, lowering);
  // A step's panels take half of the cache, and what comes next the other half.
  // Parts of a pair take a quarter, so that there is room for another pair.
  VectorLowering share = lowering;
  share.panelBytes = share.panelBytes / 4 *
                     (product.wide && own.passes > 1 ? 3 : 2) * own.passes;
  int64_t unit = product.unit();
  int64_t group = std::max(unit, product.panelsPerStep(share) / unit * unit);
  if (inBlocks)
    group = product.panelsPerMatrixStep();
  ProductGrid grid(k, product, group, /*most=*/product.panels(), /*unit=*/1,
                   /*batch=*/k.index(1), numRows,
                   inBlocks ? kMatrixBlock * kMatrixRows : lowering.rows);
  if (passesOfFew != own.passes)
    own.passesHere = grid.choose(k, k.index(passesOfFew), k.index(own.passes));
  Value rowScales = findRowScales(k, product, grid, numRows);
  return k.forallTiles(
      grid.sizes(), dest,
      [&](KernelBuilder &k, ValueRange ivs) {
        ProductGrid::Iteration at = grid.at(k, ivs);
        return KernelBuilder::Tile{
            {at.firstRow, at.panels.firstColumn},
            {getAsOpFoldResult(at.rows), at.panels.columns}};
      },
      [&](KernelBuilder &k, ValueRange ivs, Value tile) {
        ProductGrid::Iteration at = grid.at(k, ivs);
        PanelProduct here = grid.productAt(k, own, at, lowering);
        return panelsOfStep(
            k, own, grid, at, tile,
            [&](KernelBuilder &k, Value first, Value count, Value tile) {
              Value panel = k.add(at.panels.firstPanel, first);
              return inColumns(k, own.lanes(), first, count, tile,
                               [&](KernelBuilder &k, Value columns) {
                                 return packedProduct(k, here, at, panel, count,
                                                      rowScales, lowering.rows,
                                                      columns);
                               });
            });
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
  if (op.getResidual() || inPasses || product.fillsMatrixTiles() ||
      cast<RankedTensorType>(op.getType()).getRank() != 3)
    return std::nullopt;
  auto epilogue = HeadEpilogue::match(op, op.getResult());
  if (!epilogue)
    return std::nullopt;
  int64_t unit = panelsOfHeads(product, epilogue->getWidth());
  int64_t steps =
      llvm::divideCeil(product.panels(), std::lcm(unit, product.unit()));
  if (steps < std::min(product.panels(), lowering.threads / 4))
    return std::nullopt;
  return epilogue;
}

/// Whether tiles may have two panels: if the cache has room for both, or sums
/// for parts of them, and if steps of two hand over heads as steps of one do.
/// Blocks of a matrix unit have their own tiles, and other rows are few.
template <typename Op>
bool takesWideTiles(Op op, const PanelProduct &product,
                    const VectorLowering &lowering) {
  if (!lowering.wideTiles || lowering.rows < 4 || lowering.rows % 2 != 0 ||
      product.fillsMatrixTiles())
    return false;
  PanelProduct wide = product;
  wide.wide = true;
  bool fits = 2 * product.panelBytes() <= lowering.panelBytes;
  bool inParts =
      cast<RankedTensorType>(op.getType()).getElementType().isF32() &&
      passesOf(wide, lowering) > 1;
  return (fits || inParts) &&
         (epilogueOf(op, wide, lowering) || !epilogueOf(op, product, lowering));
}

/// The first rows and columns of `scratch`, which `fill` writes.
Value inRows(KernelBuilder &k, Value rows, Value columns, Value scratch,
             function_ref<Value(Value dest)> fill) {
  SmallVector<OpFoldResult> offsets(2, k.b.getIndexAttr(0)),
      strides(2, k.b.getIndexAttr(1)),
      sizes = {getAsOpFoldResult(rows), getAsOpFoldResult(columns)};
  Value dest = tensor::ExtractSliceOp::create(k.b, k.loc, scratch, offsets,
                                              sizes, strides);
  return tensor::InsertSliceOp::create(k.b, k.loc, fill(dest), scratch, offsets,
                                       sizes, strides);
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
  int64_t unitOfMany = std::lcm(unit, product.unit());
  group = std::max(unitOfMany, group / unitOfMany * unitOfMany);
  Value batch = k.dim(input, 0), tokens = k.dim(input, 1);
  auto columnsOf = [](KernelBuilder &k, const PanelProduct::Step &step) {
    return getValueOrCreateConstantIndexOp(k.b, k.loc, step.columns);
  };
  auto rowsOf = [&](const ProductGrid::Iteration &at) {
    return HeadEpilogue::Rows{at.firstSequence, at.sequences, at.firstToken,
                              at.tokens};
  };
  ProductGrid grid(k, product, group, most, unit, batch, tokens, lowering.rows);
  Value rowScales = findRowScales(k, product, grid, k.mul(batch, tokens));
  return k.forallTiles(
      grid.sizes(), epilogue.destinations(k, batch, tokens),
      [&](KernelBuilder &k, ValueRange ivs) {
        ProductGrid::Iteration at = grid.at(k, ivs);
        return epilogue.place(k, at.panels.firstColumn, columnsOf(k, at.panels),
                              rowsOf(at));
      },
      [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
        ProductGrid::Iteration at = grid.at(k, ivs);
        Value columns = columnsOf(k, at.panels);
        PanelProduct here = grid.productAt(k, product, at, lowering);
        return forRowTiles(
            k, lowering.rows, product.wide, at.rows, tiles,
            [&](KernelBuilder &k, Value row, Value rows, bool whole,
                ValueRange tiles) {
              Value scratch = bufferization::AllocTensorOp::create(
                  k.b, k.loc,
                  RankedTensorType::get(
                      {getConstantIntValue(rows).value_or(lowering.rows),
                       grid.mostPanels() * lanes},
                      element),
                  ValueRange{});
              PanelProduct::TilePlace place;
              place.firstRow = at.firstRow;
              place.firstPanel = at.panels.firstPanel;
              place.count = at.panels.count;
              place.rowScales = rowScales;
              place.tileRows = lowering.rows;
              place.tileRow = row;
              place.numRows = at.rows;
              auto known = getConstantIntValue(at.rows);
              place.whole = whole && !(known && *known <= lowering.rows);
              scratch = inRows(k, rows, columns, scratch, [&](Value dest) {
                return here.asTileOp(k, product.rowsInMemory, place, dest);
              });
              return epilogue.take(k, row, rows, at.panels.firstColumn, columns,
                                   rowsOf(at), lanes, scratch, tiles);
            });
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

/// Replaces the layer by the rows that one kernel gives.
template <typename Op, typename IntoOp>
void placeRows(Op op, KernelBuilder &k, IntoOp into,
               const VectorLowering &lowering, PatternRewriter &rewriter) {
  keepSchedule(op, into);
  // One user has a loop with more threads.
  auto epilogue = HeadEpilogue::match(op, op.getResult());
  int64_t width = cast<RankedTensorType>(op.getType()).getShape().back();
  if (epilogue && !op.getResidual() && epilogue->countParts() > 1 &&
      width % epilogue->getWidth() == 0) {
    epilogue->prepare(rewriter, op);
    epilogue->replace(
        rewriter,
        epilogue->takeAll(k, op.getInput(), into.getResult(), lowering.lanes));
    rewriter.eraseOp(op);
    return;
  }
  rewriter.replaceOp(
      op, fromRows(k, into.getResult(), op.getType(), op.getInput()));
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
    product.pairs =
        holdsPairs(cast<RankedTensorType>(product.weight.getType()),
                   cast<RankedTensorType>(input.getType()).getDimSize(1));
    product.widened =
        product.pairs && !getElementTypeOrSelf(input.getType()).isBF16();
    if (op.getRmsEps() && (lowering.cooperative || product.fillsMatrixTiles()))
      return rewriter.notifyMatchFailure(op, "rms_eps is for a CPU's vectors");
    if (op.getRmsEps())
      product.rmsEps = op.getRmsEps()->convertToDouble();
    product.wide = takesWideTiles(op, product, lowering.scheduledFor(op));
    bool shares = sharesSets(op.getInput(), lowering);
    if (shares && product.wide) {
      // Only heads that are handed over keep sequences apart.
      VectorLowering own = lowering.scheduledFor(op);
      bool apart = epilogueOf(op, product, own).has_value();
      Value sequences = apart ? k.dim(op.getInput(), 0) : k.index(1);
      Value tokens = apart ? k.dim(op.getInput(), 1) : k.dim(input, 0);
      int64_t most = PanelProduct::kFewTiles * own.rows;
      Value copy = copyRows(k, input, sequences, tokens, most, lowering);
      product.lastRows = {copy, most, Value(), product.reading(copy)};
    } else if (shares) {
      input = copyRows(k, input, k.index(1), k.dim(input, 0), std::nullopt,
                       lowering);
    }
    product.readFrom(input);
    // The host chooses the tile of a block by the number of rows.
    if (lowering.cooperative) {
      Value dest = destOf(k, op);
      if (auto normed = multiplyNorm(k, op, product, input, /*scales=*/Value(),
                                     /*zeros=*/false, dest, op.getScaleAttr()))
        placeRows(op, k, normed, lowering, rewriter);
      else
        placeRows(op, k,
                  LinearIntoOp::create(k.b, k.loc, dest.getType(), input,
                                       product.weight, product.bias, dest,
                                       product.activation, product.gated,
                                       product.residual, op.getScaleAttr()),
                  lowering, rewriter);
      return success();
    }
    lower(op, k, product, lowering, rewriter);
    return success();
  }

  VectorLowering lowering;
};

/// The same of numbers in few bits. A GPU multiplies floats by these, and has
/// no kernel for bytes by bytes.
struct LowerQuantizedLinear final : OpRewritePattern<QuantizedLinearOp> {
  LowerQuantizedLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(QuantizedLinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    PanelProduct product = describe(op, lowering);
    if (!hasRank2Or3(op.getType()) ||
        (lowering.cooperative &&
         (op.getInputScales() ||
          areScalesInLevels(op.getWeightScales().getType()))) ||
        cast<RankedTensorType>(product.weight.getType()).getRank() != 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 and panels only");
    Value input = asRows(k, op.getInput());
    if (lowering.cooperative) {
      Value dest = destOf(k, op);
      if (auto normed =
              multiplyNorm(k, op, product, input, op.getWeightScales(),
                           op.getZeros(), dest, op.getScaleAttr()))
        placeRows(op, k, normed, lowering, rewriter);
      else
        placeRows(op, k,
                  QuantizedLinearIntoOp::create(
                      k.b, k.loc, dest.getType(), input, product.weight,
                      op.getWeightScales(), product.bias, dest,
                      product.activation, product.gated, product.residual,
                      op.getScaleAttr(), op.getZeros()),
                  lowering, rewriter);
      return success();
    }
    auto rowsOf = [&](Value value) {
      return value ? asRows(k, value) : Value();
    };
    product.bytes = {
        rowsOf(op.getInputScales()),
        rowsOf(op.getInputSums()),
        op.getWeightScales(),
        op.getZeros(),
        op.getGroup(),
        lowering.byteProducts,
        lowering.integerLanes,
        quantizedBits(op.getWeight().getType(),
                      cast<RankedTensorType>(input.getType()).getDimSize(1))};
    product.readFrom(input);
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
