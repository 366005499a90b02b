//===- AttuneLinearAttentionOps.cpp - Attention by sums ---------*- C++ -*-===//
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
#include "Attune/AttuneLinearAttentionOps.cpp.inc"

void AttuneDialect::registerLinearAttentionOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneLinearAttentionOps.cpp.inc"
      >();
}

/// A state holds sums of the keys' features times the values' channels.
static LogicalResult stateOf(LinearAttentionOp op, Value state,
                             StringRef owner) {
  if (!state)
    return success();
  Value k = op.getKey(), v = op.getValue();
  if (failed(sameSize(op, {state, 0, owner, "batch size"},
                      {k, 0, "key", "batch size"})) ||
      failed(
          sameSize(op, {state, 1, owner, "heads"}, {k, 1, "key", "heads"})) ||
      failed(
          sameSize(op, {state, 2, owner, "features"}, {k, 3, "key", "width"})))
    return failure();
  NamedSize width{v, 3, "value", "width"};
  if (!width.known())
    return success();
  return sizeIs(op, {state, 3, owner, "columns"}, width.get() + 1,
                "values of width " + Twine(width.get()) + " need");
}

LogicalResult LinearAttentionOp::verify() {
  Value q = getQuery(), k = getKey(), v = getValue(), y = getResult();
  // L1
  for (auto [value, owner] : {std::pair(k, "key"), std::pair(v, "value")})
    if (failed(sameSize(*this, {q, 0, "query", "batch size"},
                        {value, 0, owner, "batch size"})))
      return failure();
  // L2
  if (failed(headsShare(*this, q, k, "key")) ||
      failed(sameSize(*this, {k, 1, "key", "heads"}, {v, 1, "value", "heads"})))
    return failure();
  // L3
  if (failed(sameSize(*this, {k, 2, "key", "length"},
                      {v, 2, "value", "length"})) ||
      failed(sameSize(*this, {q, 3, "query", "width"}, {k, 3, "key", "width"})))
    return failure();
  // L4
  if (getCausal() && failed(sameSize(*this, {q, 2, "query", "length"},
                                     {k, 2, "key", "length"})))
    return failure();
  // L5
  if (Value mask = getMask()) {
    auto type = cast<RankedTensorType>(mask.getType());
    if (type.getDimSize(1) != 1 || type.getDimSize(2) != 1)
      return emitOpError("has a mask of type ")
             << type << ", but it can only hide keys: [batch|1, 1, 1, keys]";
    if ((type.getDimSize(0) != 1 &&
         failed(sameSize(*this, {mask, 0, "mask", "batch size"},
                         {q, 0, "query", "batch size"}))) ||
        failed(sameSize(*this, {mask, 3, "mask", "length"},
                        {k, 2, "key", "length"})))
      return failure();
  }
  // L6
  if (auto eps = getEps(); eps && !(eps->isFinite() && !eps->isNegative()))
    return emitOpError("adds ")
           << eps->convertToDouble()
           << " to its denominators, which has to be 0 or more";
  // L7
  StringRef what[] = {"batch size", "heads", "length"};
  for (int64_t dim = 0; dim < 3; ++dim)
    if (failed(sameSize(*this, {y, dim, "result", what[dim]},
                        {q, dim, "query", what[dim]})))
      return failure();
  if (failed(
          sameSize(*this, {y, 3, "result", "width"}, {v, 3, "value", "width"})))
    return failure();
  // L8
  if (failed(stateOf(*this, getState(), "state")))
    return failure();
  return stateOf(*this, getNewState(), "new state");
}

LogicalResult
LinearAttentionOp::reifyResultShapes(OpBuilder &builder,
                                     ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reifySizes(
          builder, getLoc(), getResult(),
          {{getQuery(), 0}, {getQuery(), 1}, {getQuery(), 2}, {getValue(), 3}},
          shapes)))
    return failure();
  if (!getNewState())
    return success();
  return reifySizes(builder, getLoc(), getNewState(),
                    {{getKey(), 0}, {getKey(), 1}, {getKey(), 3}, {}}, shapes);
}
