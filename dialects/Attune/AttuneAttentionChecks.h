//===- AttuneAttentionChecks.h - Shared by verifiers of attention ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ATTENTION_CHECKS_H
#define ATTUNE_ATTENTION_CHECKS_H

#include "Attune/AttuneDialect.h"

namespace attune {

/// Fails unless `value`, if there, has an entry for each head of `queries`.
mlir::LogicalResult perHead(mlir::Operation *op, mlir::Value value,
                            llvm::StringRef owner, mlir::Value queries);

/// Fails unless `value` is [B, H, M] of the four-dimensional `like`.
mlir::LogicalResult rowsOf(mlir::Operation *op, mlir::Value value,
                           llvm::StringRef owner, mlir::Value like,
                           llvm::StringRef likeOwner);

/// The rules of a step that are those of attention: O1 to O5 and O7.
mlir::LogicalResult verifyStep(OnlineAttentionOp op);

} // namespace attune

#endif // ATTUNE_ATTENTION_CHECKS_H
