//===- ProductToVector.cpp - Tiles of matrix products as vectors ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PanelProduct.h"

#include "attune/Conversion/MatrixTiles.h"
#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <numeric>

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEPRODUCTTOVECTOR
#include "attune/Conversion/Passes.h.inc"

PanelProduct::PanelProduct(KernelBuilder &k, PackedProductOp op,
                           const VectorLowering &lowering)
    : PanelProduct(lowering) {
  weight = op.getWeight();
  pairs = op.hasPairs();
  widened = pairs && (!lowering.pairProducts ||
                      !getElementTypeOrSelf(op.getInput().getType()).isBF16());
  registerLanes = std::gcd(op.getPanelWidth(), lowering.integerLanes);
  if (op.getWeightScales())
    bytes = {op.getInputScales(), op.getInputSums(), op.getWeightScales(),
             op.getZeros(),       op.getGroup(),     lowering.byteProducts,
             registerLanes,       op.getBits()};
  width = op.getWidth();
  gated = op.getGated();
  activation = op.getActivation();
  limits = GateLimits::of(op);
  bias = op.getBias();
  if (op.getScale())
    scale = op.getScale()->convertToDouble();
  residual = op.getResidual();
  wide = op.getTile()[1] == 2;
  // The next expert's rows may be few, whatever these are.
  if (Value next = op.getNextPanel())
    ahead = {op.getNextMatrix(), next, /*few=*/bool(op.getMatrix())};
  if (Value parts = op.getNumParts()) {
    // Any number but one, if it is chosen at run time.
    passes = getConstantIntValue(parts).value_or(2);
    passesHere = getConstantIntValue(parts) ? Value() : parts;
  }
  part = op.getMatrix();
  order = op.getOrder();
  // Rows in an order are not one piece of memory.
  if (order)
    input = reading(op.getInput());
  else
    readFrom(op.getInput());
  if (op.getRest())
    lastRows = {op.getRest(), 0, op.getFirstRest(), reading(op.getRest())};
  firstRow = op.getFirstRow();
  if (isa<MemRefType>(op.getDest().getType()))
    stack =
        &op->getParentOfType<FunctionOpInterface>().getFunctionBody().front();
  if (!op.getRmsEps())
    return;
  rmsEps = op.getRmsEps()->convertToDouble();
  int64_t tileRows = op.getTile()[0] * op.getTile()[1];
  bool many = op.getWhole() && wholeTilesAreMany(tileRows);
  scaleRows(k, op.getRowScales(), tileRows, many);
}

Value PanelProduct::asTileOp(KernelBuilder &k, Value input, const TilePlace &at,
                             Value dest) const {
  Value inputScales, inputSums, weightScales, rest, firstRest;
  if (bytes) {
    inputScales = bytes->inputScales;
    inputSums = bytes->inputSums;
    weightScales = bytes->weightScales;
  }
  if (lastRows) {
    rest = lastRows->rows;
    firstRest = lastRows->first;
  }
  Value nextPanel, nextMatrix;
  if (part && ahead) {
    nextPanel = ahead->firstPanel;
    nextMatrix = ahead->part;
  }
  auto number = [&](std::optional<double> value) {
    return value ? k.b.getF32FloatAttr(*value) : FloatAttr();
  };
  return PackedProductOp::create(
             k.b, k.loc, dest.getType(), input, at.firstRow, weight,
             at.firstPanel, at.count, part, order, at.part, at.numParts,
             inputScales, inputSums, weightScales, bias, at.rowScales, rest,
             firstRest, at.tileRow, at.numRows, nextPanel, nextMatrix, dest,
             width, number(rmsEps), activation, gated, number(limits.limit),
             APFloat(float(limits.upOffset)), number(scale), residual, at.whole,
             bytes && bytes->zeros,
             ArrayRef<int64_t>{at.tileRows / unit(), unit()})
      .getResult(0);
}

Value inColumns(KernelBuilder &k, int64_t lanes, Value first, Value count,
                Value tile,
                function_ref<Value(KernelBuilder &, Value columns)> fill) {
  if (getConstantIntValue(first) == 0)
    return fill(k, tile);
  Value begin = k.mul(first, lanes), rows = k.dim(tile, 0);
  Value width = k.min(k.mul(count, lanes), k.sub(k.dim(tile, 1), begin));
  SmallVector<OpFoldResult> offsets = {k.b.getIndexAttr(0), begin},
                            sizes = {getAsOpFoldResult(rows), width},
                            strides(2, k.b.getIndexAttr(1));
  Value columns =
      tensor::ExtractSliceOp::create(k.b, k.loc, tile, offsets, sizes, strides);
  return tensor::InsertSliceOp::create(k.b, k.loc, fill(k, columns), tile,
                                       offsets, sizes, strides);
}

Value PanelProduct::tileOf(KernelBuilder &k, PackedProductOp op) const {
  int64_t tileRows = op.getTile()[0] * op.getTile()[1];
  Value dest = op.getDest(), rows = k.dim(dest, 0);
  if (!op.getTileRow()) {
    auto inVectors = [&](Value number) {
      return onePass(k, tileRows, number, op.getFirstPanel(), op.getNumPanels(),
                     op.getPart(), dest);
    };
    // Its rows are one piece of memory.
    if (!fillsMatrixTiles() || !rowsInMemory || !stack)
      return inVectors(rows);
    auto inTiles = [&](Value number) {
      rowsInMatrixTiles(k, number, op.getFirstPanel(), op.getNumPanels(), dest);
      return dest;
    };
    int64_t least = fewestMatrixRows();
    if (auto known = getConstantIntValue(rows))
      return *known < least ? inVectors(rows) : inTiles(rows);
    // All rows go one way, and the loops of the other have no turns.
    Value few = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt,
                                      rows, k.index(least));
    Value ofVectors =
        arith::SelectOp::create(k.b, k.loc, few, rows, k.index(0));
    inTiles(k.sub(rows, ofVectors));
    return inVectors(ofVectors);
  }
  return oneTile(k, rows, op.getWhole(),
                 {/*rows=*/0, op.getWhole(), tileRows, op.getTileRow(),
                  op.getNumRows(), op.getFirstPanel(), /*i=*/Value(),
                  op.getNumPanels(), /*column=*/k.index(0), /*pass=*/Value(),
                  /*origin=*/op.getTileRow()},
                 dest);
}

void PanelProduct::scaleRows(KernelBuilder &k, Value table, int64_t tileRows,
                             bool many) {
  Value rows = k.dim(rowsInMemory, 0);
  auto known = getConstantIntValue(rows);
  if (table && (many || (known && *known > tileRows))) {
    inputScale = [table](KernelBuilder &k, Value row) {
      return k.loadScalar(table, {row});
    };
    return;
  }
  // Few rows are soon read, and threads need not wait for each other.
  Value few = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ule, rows,
                                    k.index(tileRows));
  Value found = rows;
  if (table && !known)
    found = arith::SelectOp::create(k.b, k.loc, few, rows, k.index(0));
  Value scratch = scratchOf(k, {tileRows});
  scratch = k.forLoop(k.index(0), found, 1, scratch,
                      [&](KernelBuilder &k, Value row, ValueRange carried) {
                        return KernelBuilder::Values{
                            storeRowScale(k, row, carried[0], row)};
                      })[0];
  bool always = !table || known;
  inputScale = [=](KernelBuilder &k, Value row) -> Value {
    if (always)
      return k.loadScalar(scratch, {row});
    auto from = [&](Value scales) {
      return [=](OpBuilder &builder, Location loc) {
        KernelBuilder inner(builder, loc);
        scf::YieldOp::create(builder, loc, inner.loadScalar(scales, {row}));
      };
    };
    return scf::IfOp::create(k.b, k.loc, few, from(scratch), from(table))
        .getResult(0);
  };
}

namespace {
struct LowerProduct final : OpRewritePattern<PackedProductOp> {
  LowerProduct(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(PackedProductOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    PanelProduct product(k, op, lowering);
    Value done = product.tileOf(k, op);
    // An op on buffers has no results to replace.
    if (op->getNumResults() == 0)
      rewriter.eraseOp(op);
    else
      rewriter.replaceOp(op, done);
    return success();
  }

  VectorLowering lowering;
};

struct ConvertAttuneProductToVector final
    : impl::ConvertAttuneProductToVectorBase<ConvertAttuneProductToVector> {
  using Base::Base;

  void runOnOperation() override {
    if (fetchSteps < 1 || integerLanes < 1 || streamBytes < 0 ||
        narrowStreamBytes < 0) {
      getOperation().emitError(
          "fetch-steps and integer-lanes must be positive, stream-bytes and "
          "narrow-stream-bytes 0 or positive");
      return signalPassFailure();
    }
    if (matrixRows < 0 || matrixDepth < kMatrixDepth || matrixBytes < 0) {
      getOperation().emitError("matrix-rows and matrix-bytes must be 0 or "
                               "positive, matrix-depth at least ")
          << kMatrixDepth << ", the inputs of a register";
      return signalPassFailure();
    }
    VectorLowering lowering{};
    lowering.fetchSteps = fetchSteps;
    lowering.streamBytes = streamBytes;
    lowering.narrowStreamBytes = narrowStreamBytes;
    lowering.integerLanes = integerLanes;
    lowering.pairProducts = pairProducts;
    lowering.byteProducts = byteProducts;
    lowering.matrixRows = matrixRows;
    lowering.matrixDepth = matrixDepth;
    lowering.matrixBytes = matrixBytes;
    lowering.matrixQuads = matrixQuads;
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerProduct>(&getContext(), lowering);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
  }
};
} // namespace
} // namespace attune
