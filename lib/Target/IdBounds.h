//===- IdBounds.h - Ids stay within their tables ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_IDBOUNDS_H
#define ATTUNE_LIB_TARGET_IDBOUNDS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace attune {

/// Diagnoses arguments whose `attune.max` lets ids through that a table has no
/// row for. An argument without it gets the bound that its tables have.
mlir::LogicalResult boundIds(mlir::func::FuncOp entry);

} // namespace attune

#endif // ATTUNE_LIB_TARGET_IDBOUNDS_H
