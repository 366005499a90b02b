//===- AttentionInto.h - Attention that stays one op ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOONLINE_ATTENTIONINTO_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOONLINE_ATTENTIONINTO_H

#include "Attune/AttuneDialect.h"
#include "attune/Conversion/KernelBuilder.h"

#include "mlir/IR/PatternMatch.h"

namespace attune {

/// Somewhere for a result of attention to go.
mlir::Value emptyResult(KernelBuilder &k, AttentionOp op, mlir::Value result);

/// Whether keys come from a cache, and are many more than queries.
bool readsCache(AttentionOp op);

/// Reports schedules of attention that no kernel can have; `warpgroups`: the
/// chip has these.
mlir::LogicalResult checkAttentionTiles(mlir::Operation *root, bool warpgroups);

/// Attention that tensor cores can take becomes attune.attention_into, and
/// other attention the ladder, whose scores are in memory.
void populateAttentionIntoPatterns(mlir::RewritePatternSet &patterns,
                                   bool warpgroups, bool explain);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOONLINE_ATTENTIONINTO_H
