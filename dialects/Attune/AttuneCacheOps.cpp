//===- AttuneCacheOps.cpp - Verifiers of the cache ops ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

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

LogicalResult CacheAppendOp::verify() { return success(); }
LogicalResult CacheReadOp::verify() { return success(); }

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
