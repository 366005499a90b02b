//===- CandidateShards.h - The likeliest tokens of all ranks ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TRANSFORMS_CANDIDATESHARDS_H
#define ATTUNE_LIB_TRANSFORMS_CANDIDATESHARDS_H

#include "Attune/AttuneDialect.h"

namespace attune {

/// A rank's logits, [batch, each + 1]: those of its own tokens and one that is
/// none, in a vocabulary of `total`.
struct RankLogits {
  mlir::Value logits;
  int64_t each = 0, total = 0, ranks = 1;
};

/// Replaces a choice among all logits: each rank chooses among its own, ranks
/// exchange what they chose, and all choose among that, by the same order.
mlir::LogicalResult cutCandidates(TopKOp choice, const RankLogits &own);

} // namespace attune

#endif // ATTUNE_LIB_TRANSFORMS_CANDIDATESHARDS_H
