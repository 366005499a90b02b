//===- AttuneNormOps.cpp - Verifiers of the norms ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneShapes.h"

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

LogicalResult LayerNormOp::verify() { return success(); }
LogicalResult RMSNormOp::verify() { return success(); }

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
