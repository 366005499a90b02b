//===- AttuneFFNOps.cpp - Verifiers of linear and feed-forward layers -----*-
// C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneShapes.h"

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

LogicalResult LinearOp::verify() { return success(); }
LogicalResult FFNOp::verify() { return success(); }
LogicalResult GatedFFNOp::verify() { return success(); }

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
