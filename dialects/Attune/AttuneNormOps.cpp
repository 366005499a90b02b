//===- AttuneNormOps.cpp - Verifiers of the norms ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneBytecode.h"
#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"
#include "Attune/AttuneSyntax.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneNormOps.cpp.inc"

void AttuneDialect::registerNormOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneNormOps.cpp.inc"
      >();
}

LogicalResult LayerNormOp::readProperties(DialectBytecodeReader &reader,
                                          OperationState &state) {
  auto &own = state.getOrAddProperties<Properties>();
  return success(succeeded(reader.readAttribute(own.eps)) &&
                 succeeded(reader.readSparseArray(
                     MutableArrayRef<int32_t>(own.operandSegmentSizes))) &&
                 succeeded(readSince(4, reader, own.offset)));
}

void LayerNormOp::writeProperties(DialectBytecodeWriter &writer) {
  auto &own = getProperties();
  writer.writeAttribute(own.eps);
  writer.writeSparseArray(ArrayRef<int32_t>(own.operandSegmentSizes));
  writer.writeOptionalAttribute(own.offset);
}

/// N1 to N3 of both norms.
static LogicalResult verifyNorm(Operation *op, Value input, Value gamma,
                                Value beta, APFloat eps) {
  int64_t last = cast<RankedTensorType>(input.getType()).getRank() - 1;
  for (auto [value, owner] :
       {std::pair(gamma, "gamma"), std::pair(beta, "beta")}) {
    if (!value)
      continue;
    int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
    if (rank == 2 && last != 3)
      return op->emitOpError("has a ")
             << owner << " per head, but its input has no heads";
    if (failed(sameSize(op, {input, last, "input", "width"},
                        {value, rank - 1, owner, "width"})))
      return failure();
    if (rank == 2 && failed(sameSize(op, {input, 1, "input", "number of heads"},
                                     {value, 0, owner, "number of heads"})))
      return failure();
  }
  if (!eps.isFinite() || (eps.isNegative() && !eps.isZero()))
    return op->emitOpError("has eps ")
           << eps.convertToDouble() << ", which is not a number from 0 on";
  return shapeOfResult(op, input, "input");
}

LogicalResult LayerNormOp::verify() {
  return verifyNorm(*this, getInput(), getGamma(), getBeta(), getEps());
}

LogicalResult RMSNormOp::verify() {
  return verifyNorm(*this, getInput(), getGamma(), Value(), getEps());
}

LogicalResult
LayerNormOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}

LogicalResult
RMSNormOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}

LogicalResult ModulateOp::verify() {
  // D1
  if (failed(sameSize(*this, {getInput(), 0, "input", "batch size"},
                      {getCondition(), 0, "condition", "rows"})))
    return failure();
  // D2
  NamedSize width{getInput(), 2, "input", "width"};
  NamedSize columns{getCondition(), 1, "condition", "columns"};
  for (auto [first, owner] : {std::pair(std::optional(getScale()), "scale"),
                              std::pair(getShift(), "shift")}) {
    auto begin = static_cast<int64_t>(first.value_or(0));
    if (begin < 0 || (width.known() && columns.known() &&
                      begin + width.get() > columns.get()))
      return emitOpError("takes its ")
             << owner << " from column " << begin << " of " << columns.get()
             << ", which are too few for a width of " << width.get();
  }
  // D3
  return typeOfResult(*this, getResidual(), "residual");
}

LogicalResult
ModulateOp::reifyResultShapes(OpBuilder &builder,
                              ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getInput(), shapes);
}
