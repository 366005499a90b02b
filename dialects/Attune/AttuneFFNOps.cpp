//===- AttuneFFNOps.cpp - Verifiers of linear and feed-forward layers -----*-
// C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttuneBytecode.h"

#include "Attune/AttuneChecks.h"
#include "Attune/AttunePanels.h"
#include "Attune/AttuneShapes.h"

#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneFFNOps.cpp.inc"

void AttuneDialect::registerFFNOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneFFNOps.cpp.inc"
      >();
}

LogicalResult LinearOp::readProperties(DialectBytecodeReader &reader,
                                       OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(succeeded(reader.readOptionalAttribute(own.activation)) &&
                 succeeded(reader.readOptionalAttribute(own.gated)) &&
                 succeeded(reader.readOptionalAttribute(own.scale)) &&
                 succeeded(reader.readSparseArray(
                     MutableArrayRef<int32_t>(own.operandSegmentSizes))) &&
                 succeeded(readSince(2, reader, own.rms_eps)));
}

void LinearOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeOptionalAttribute(own.activation);
  writer.writeOptionalAttribute(own.gated);
  writer.writeOptionalAttribute(own.scale);
  writer.writeSparseArray(ArrayRef<int32_t>(own.operandSegmentSizes));
  writer.writeOptionalAttribute(own.rms_eps);
}

LogicalResult LinearOp::verify() {
  auto input = cast<RankedTensorType>(getInput().getType());
  bool pairs = holdsPairs(cast<RankedTensorType>(getWeight().getType()),
                          input.getShape().back());
  // L1
  if (!pairs && failed(sameSize(*this, lastSize(getInput(), "input"),
                                {getWeight(), 1, "weight", "depth"})))
    return failure();
  // L6
  if (pairs && !input.getElementType().isBF16() &&
      !input.getElementType().isF32())
    return emitOpError("has a weight in pairs, which multiplies bf16 or f32, "
                       "but an input of ")
           << input.getElementType();
  // L2
  NamedSize width = lastSize(getResult(), "result");
  int64_t rows =
      width.known() ? width.get() * (getGated() ? 2 : 1) : ShapedType::kDynamic;
  if (failed(hasRows(*this, getWeight(), "weight", rows, getGated(),
                     getGated() ? "a gated result takes rows"
                                : "the result takes rows",
                     pairs ? 2 : 1)))
    return failure();
  NamedSize weightRows{getWeight(), 0, "weight", "rows"};
  bool plain = rankOf(getWeight()) == 2;
  if (plain && getGated() && weightRows.known() && weightRows.get() % 2 != 0)
    return emitOpError("is gated, but its weight has ")
           << weightRows.get() << " rows, which are no two halves";
  // L3
  if (ShapedType::isDynamic(rows) && plain)
    rows = weightRows.get();
  if (failed(hasEntries(*this, getBias(), "bias", rows)))
    return failure();
  // L4
  if (failed(typeOfResult(*this, getResidual(), "residual")))
    return failure();
  // L7
  if (getRmsEps() && getRmsEps()->isNegative())
    return emitOpError("has a negative rms_eps, ")
           << getRmsEps()->convertToDouble();
  // L5
  return sameTokens(*this, getResult(), "result", getInput(), "input");
}

/// F1 to F3 of both feed-forward ops; `first` has `parts` times as many rows as
/// the hidden layer is wide.
static LogicalResult verifyFFN(Operation *op, Value input, Value first,
                               StringRef firstName, Value firstBias,
                               StringRef firstBiasName, int64_t parts,
                               Value down, Value downBias, Value residual) {
  // F1
  Value result = op->getResult(0);
  NamedSize hidden{down, 1, "down", "depth"}, out = lastSize(result, "result");
  int64_t rows = hidden.known() ? hidden.get() * parts : ShapedType::kDynamic;
  if (failed(sameSize(op, lastSize(input, "input"),
                      {first, 1, firstName, "depth"})) ||
      failed(hasRows(op, first, firstName, rows, parts == 2,
                     parts == 2 ? "twice the depth of down is"
                                : "the depth of down is")) ||
      failed(hasRows(op, down, "down", out.get(), false,
                     "the result takes rows")) ||
      failed(sameTokens(op, result, "result", input, "input")))
    return failure();
  // F2
  if (failed(hasEntries(op, firstBias, firstBiasName, rows)) ||
      failed(hasEntries(op, downBias, "down_bias", out.get())))
    return failure();
  // F3
  return typeOfResult(op, residual, "residual");
}

LogicalResult FFNOp::verify() {
  return verifyFFN(*this, getInput(), getUp(), "up", getUpBias(), "up_bias",
                   /*parts=*/1, getDown(), getDownBias(), getResidual());
}

LogicalResult GatedFFNOp::verify() {
  return verifyFFN(*this, getInput(), getGateUp(), "gate_up", getGateUpBias(),
                   "gate_up_bias", /*parts=*/2, getDown(), getDownBias(),
                   getResidual());
}

/// Multiplying by 1 changes no bit.
LogicalResult LinearOp::canonicalize(LinearOp op, PatternRewriter &rewriter) {
  if (!op.getScale() || !op.getScale()->isExactlyValue(1.0))
    return failure();
  rewriter.modifyOpInPlace(op, [&] { op.removeScaleAttr(); });
  return success();
}

/// Leading sizes as the input's, the last one `width`.
static LogicalResult reifyProjection(OpBuilder &builder, Value input,
                                     Value result, SizeSource width,
                                     ReifiedRankedShapedTypeDims &shapes) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<SizeSource> sources;
  for (int64_t dim = 0; dim + 1 < type.getRank(); ++dim)
    sources.push_back({input, dim});
  sources.push_back(width);
  return reifySizes(builder, result.getLoc(), result, sources, shapes);
}

/// The number of rows of a matrix; panels do not tell where padding begins.
static SizeSource rowsOf(Value matrix) {
  if (cast<RankedTensorType>(matrix.getType()).getRank() == 2)
    return {matrix, 0};
  return {};
}

LogicalResult LinearOp::reifyResultShapes(OpBuilder &builder,
                                          ReifiedRankedShapedTypeDims &shapes) {
  SizeSource width = rowsOf(getWeight());
  if (getResidual())
    width = {getResidual(), getType().getRank() - 1};
  else if (getGated())
    width = {};
  return reifyProjection(builder, getInput(), getResult(), width, shapes);
}

LogicalResult FFNOp::reifyResultShapes(OpBuilder &builder,
                                       ReifiedRankedShapedTypeDims &shapes) {
  return reifyProjection(builder, getInput(), getResult(), rowsOf(getDown()),
                         shapes);
}

LogicalResult
GatedFFNOp::reifyResultShapes(OpBuilder &builder,
                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyProjection(builder, getInput(), getResult(), rowsOf(getDown()),
                         shapes);
}

/// The identity is its input.
OpFoldResult ActivationOp::fold(FoldAdaptor) {
  return getFunction() == Activation::Identity ? getInput() : Value();
}

LogicalResult
ActivationOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}
