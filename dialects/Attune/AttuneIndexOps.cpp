//===- AttuneIndexOps.cpp - Keys that an index chooses ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneIndexOps.h"

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneIndexOps.cpp.inc"

LogicalResult IndexScoresOp::verify() {
  NamedSize batch = {getQuery(), 0, "query", "batch size"};
  NamedSize queries = {getQuery(), 2, "query", "queries"};
  // I1
  if (failed(sameSize(*this, {getKey(), 0, "key", "batch size"}, batch)) ||
      failed(sameSize(*this, {getShares(), 0, "shares", "batch size"}, batch)))
    return failure();
  // I2
  if (failed(sameWidth(*this, {getKey(), 3, "key", "width"},
                       {getQuery(), 3, "query", "width"})) ||
      failed(sizeIs(*this, {getKey(), 1, "key", "heads"}, 1,
                    "all heads of an index have the same keys")))
    return failure();
  // I3
  if (failed(sameSize(*this, {getShares(), 1, "shares", "queries"}, queries)) ||
      failed(sameSize(*this, {getShares(), 2, "shares", "heads"},
                      {getQuery(), 1, "query", "heads"})))
    return failure();
  // I4
  if (failed(
          sameSize(*this, {getResult(), 0, "result", "batch size"}, batch)) ||
      failed(sameSize(*this, {getResult(), 1, "result", "queries"}, queries)))
    return failure();
  return sameSize(*this, {getResult(), 2, "result", "keys"},
                  {getKey(), 2, "key", "length"});
}

LogicalResult
IndexScoresOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(builder, getLoc(), getResult(),
                    {{getQuery(), 0}, {getQuery(), 2}, {getKey(), 2}}, shapes);
}

LogicalResult ChooseKeysOp::verify() {
  NamedSize batch = {getScores(), 0, "scores", "batch size"};
  NamedSize queries = {getScores(), 1, "scores", "queries"};
  // K1
  int64_t top = getTop();
  if (top <= 0)
    return emitOpError("chooses ") << top << " keys";
  // K2
  if (Value mask = getMask()) {
    if (failed(sizeIs(*this, {mask, 1, "mask", "heads"}, 1,
                      "a query has the same keys in all heads")))
      return failure();
    std::pair<int64_t, NamedSize> sizes[] = {{0, batch}, {2, queries}};
    for (auto &[dim, size] : sizes) {
      NamedSize own = {mask, dim, "mask", size.what};
      if (own.get() != 1 && failed(sameSize(*this, own, size)))
        return failure();
    }
    if (failed(sameSize(*this, {mask, 3, "mask", "keys"},
                        {getScores(), 2, "scores", "keys"})))
      return failure();
  }
  if (getLengths() &&
      failed(sameSize(*this, {getLengths(), 0, "lengths", "entries"}, batch)))
    return failure();
  // K3
  std::pair<Value, StringRef> results[] = {{getPlaces(), "places"},
                                           {getCounts(), "counts"}};
  for (auto [result, name] : results)
    if (failed(sameSize(*this, {result, 0, name, "batch size"}, batch)) ||
        failed(sameSize(*this, {result, 1, name, "queries"}, queries)))
      return failure();
  int64_t columns = cast<RankedTensorType>(getPlaces().getType()).getDimSize(2);
  if (columns == top)
    return success();
  InFlightDiagnostic diag = emitOpError("chooses ") << top << " keys, but has ";
  if (ShapedType::isDynamic(columns))
    return diag << "an unknown number of places";
  return diag << columns << " places";
}

LogicalResult
ChooseKeysOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  SizeSource sources[] = {{getScores(), 0}, {getScores(), 1}, SizeSource()};
  return success(
      succeeded(reifySizes(builder, getLoc(), getPlaces(), sources, shapes)) &&
      succeeded(reifySizes(builder, getLoc(), getCounts(),
                           ArrayRef(sources).drop_back(), shapes)));
}
