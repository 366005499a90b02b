//===- AttuneLossOps.cpp - Verifier of the loss -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneChecks.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneLossOps.cpp.inc"

void AttuneDialect::registerLossOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneLossOps.cpp.inc"
      >();
}

LogicalResult CrossEntropyOp::verify() {
  // E1
  auto logits = cast<RankedTensorType>(getLogits().getType());
  auto targets = cast<RankedTensorType>(getTargets().getType());
  if (targets.getRank() != logits.getRank() - 1)
    return emitOpError("has targets of ")
           << targets.getRank() << " dimensions, but logits of "
           << logits.getRank() << ", where there must be one more";
  for (int64_t i = 0; i < targets.getRank(); ++i)
    if (failed(sameSize(*this, {getTargets(), i, "targets", "size"},
                        {getLogits(), i, "logits", "size"})))
      return failure();
  return success();
}
