//===- AttuneCacheOps.cpp - Verifiers of the cache ops ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneCacheOps.cpp.inc"

void AttuneDialect::registerCacheOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneCacheOps.cpp.inc"
      >();
}

/// C1, of both ops: [B, H, T, D] rows fit a [L, B, H, C, D] cache.
static LogicalResult fits(Operation *op, Value rows, StringRef owner,
                          Value cache, bool mayRound) {
  StringRef what[] = {"batch size", "heads", "", "width"};
  for (int64_t dim : {0, 1, 3})
    if (failed(sameSize(op, {rows, dim, owner, what[dim]},
                        {cache, dim + 1, "cache", what[dim]})))
      return failure();
  Type row = cast<RankedTensorType>(rows.getType()).getElementType();
  Type stored = cast<RankedTensorType>(cache.getType()).getElementType();
  if (row == stored || (mayRound && row.isF32()))
    return success();
  InFlightDiagnostic diag = op->emitOpError("has ")
                            << owner << " of " << row << ", but a cache of "
                            << stored;
  diag.attachNote(cache.getLoc()) << "cache comes from here";
  return diag;
}

LogicalResult CacheAppendOp::verify() {
  if (failed(fits(*this, getNewRows(), "new rows", getCache(),
                  /*mayRound=*/true)))
    return failure();
  // C2
  NamedSize tokens{getNewRows(), 2, "new rows", "length"};
  NamedSize capacity{getCache(), 3, "cache", "capacity"};
  if (tokens.known() && capacity.known() && tokens.get() > capacity.get())
    return emitOpError("writes ")
           << tokens.get() << " rows into a cache of " << capacity.get();
  return success();
}

LogicalResult CacheReadOp::verify() {
  return fits(*this, getResult(), "result", getCache(), /*mayRound=*/false);
}

LogicalResult
CacheAppendOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getCache(), shapes);
}

LogicalResult
CacheReadOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getCache(), 1},
                     {getCache(), 2},
                     OpFoldResult(getLength()),
                     {getCache(), 4}},
                    shapes);
}
