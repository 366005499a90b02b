//===- Entries.h - What functions say to their callers ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The runtime allocates and checks by the attributes of an entry's arguments
// and results (dialects/Attune/README.md lists them), and the code computes by
// their types. IR that others wrote may say one thing in the attributes and
// another in the types. Nothing behind this room looks for that.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_ENTRIES_H
#define ATTUNE_TARGET_ENTRIES_H

#include "mlir/IR/BuiltinOps.h"

namespace attune {

/// The runtime's name for a type of elements; null: it has none.
const char *nameOfElement(mlir::Type type);

/// Diagnoses entries whose attributes do not fit their types or one another,
/// and constant indices that are out of bounds. What is not said is not asked
/// for, except where it follows: ids that index a table get its rows as their
/// bound. Entries on memory are not looked at.
mlir::LogicalResult verifyEntries(mlir::ModuleOp module);

/// Diagnoses a module, handwritten perhaps, without entries, or whose entries
/// do not say what their callers have to know.
mlir::LogicalResult checkEntries(mlir::ModuleOp module);

} // namespace attune

#endif // ATTUNE_TARGET_ENTRIES_H
