//===- AttuneSamplingOps.cpp - The choice of the next token -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"
#include "Attune/AttuneShapes.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneSamplingOps.cpp.inc"

void AttuneDialect::registerSamplingOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneSamplingOps.cpp.inc"
      >();
}

LogicalResult TopKOp::verify() {
  std::optional<int64_t> count = getConstantIntValue(getCount());
  std::pair<Value, StringRef> results[] = {{getIds(), "ids"},
                                           {getValues(), "values"}};
  for (auto [result, name] : results) {
    // T1
    if (failed(sameSize(*this, {result, 0, name, "rows"},
                        {getLogits(), 0, "logits", "rows"})))
      return failure();
    // T2
    NamedSize columns = {result, 1, name, "columns"};
    if (!columns.known() || columns.get() == count)
      continue;
    InFlightDiagnostic diag = emitOpError("has ")
                              << columns.get() << " columns of " << name
                              << ", but counts ";
    if (count)
      return diag << *count;
    return diag << "what is not known";
  }
  // T3
  int64_t width = cast<RankedTensorType>(getLogits().getType()).getDimSize(1);
  if (count && *count < 0)
    return emitOpError("counts ") << *count;
  if (count && !ShapedType::isDynamic(width) && *count > width)
    return emitOpError("counts ") << *count << " of a row of " << width;
  return success();
}

LogicalResult TopKOp::reifyResultShapes(OpBuilder &builder,
                                        ReifiedRankedShapedTypeDims &shapes) {
  for (Value result : getResults())
    if (failed(reifySizes(builder, getLoc(), result,
                          {{getLogits(), 0}, OpFoldResult(getCount())},
                          shapes)))
      return failure();
  return success();
}
