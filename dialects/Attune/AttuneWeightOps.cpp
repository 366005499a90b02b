//===- AttuneWeightOps.cpp - Named weights ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneWeightOps.cpp.inc"

void AttuneDialect::registerWeightOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneWeightOps.cpp.inc"
      >();
}

LogicalResult WeightOp::verify() { return success(); }

RankedTensorType WeightOp::getLayerType() {
  RankedTensorType type = getTensorType();
  return getStacked() ? RankedTensorType::get(type.getShape().drop_front(),
                                              type.getElementType())
                      : type;
}

LogicalResult WeightGetOp::verifySymbolUses(SymbolTableCollection &symbols) {
  auto weight =
      symbols.lookupNearestSymbolFrom<WeightOp>(*this, getWeightAttr());
  // G1
  if (!weight)
    return emitOpError("names ")
           << getWeightAttr() << ", which is no attune.weight";
  // G2
  if (weight.getLayerType() != getType()) {
    InFlightDiagnostic diag = emitOpError("has type ")
                              << getType() << ", but one layer of "
                              << getWeightAttr() << " is "
                              << weight.getLayerType();
    diag.attachNote(weight.getLoc()) << "the weight is declared here";
    return diag;
  }
  // G3
  if (weight.getStacked() != static_cast<bool>(getLayer()))
    return emitOpError(weight.getStacked()
                           ? "needs a layer number, the weight is stacked"
                           : "has a layer number, but the weight is not "
                             "stacked");
  return success();
}
