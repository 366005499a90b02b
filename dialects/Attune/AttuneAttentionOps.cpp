//===- AttuneAttentionOps.cpp - Verifiers of the attention ladder -*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

using namespace mlir;
using namespace attune;

LogicalResult SimilarityOp::verify() { return success(); }
LogicalResult MaskScoresOp::verify() { return success(); }
LogicalResult SoftmaxOp::verify() { return success(); }
LogicalResult WeightedSumOp::verify() { return success(); }
LogicalResult AttentionOp::verify() { return success(); }
LogicalResult OnlineAttentionOp::verify() { return success(); }
LogicalResult SplitHeadsOp::verify() { return success(); }
LogicalResult MergeHeadsOp::verify() { return success(); }

MutableOperandRange OnlineAttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 3);
}
