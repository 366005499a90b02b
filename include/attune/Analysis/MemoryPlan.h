//===- MemoryPlan.h - Memory of a call of a model ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ANALYSIS_MEMORYPLAN_H
#define ATTUNE_ANALYSIS_MEMORYPLAN_H

#include "mlir/IR/BuiltinOps.h"

#include <map>
#include <optional>
#include <string>

namespace attune {

/// Bytes of memory that one call of an entry takes beside the weights.
struct MemoryPlan {
  int64_t intermediate = 0; ///< frames of temporary buffers, at their deepest
  int64_t tensors = 0;      ///< inputs, outputs and caches
};

/// The plan of `entry` for sizes by name. `module` is one whose frames are
/// planned (attune-plan-frames left `attune.slots` on its functions). Nothing
/// if a size depends on more than `dims`, or overflows.
std::optional<MemoryPlan>
planMemory(mlir::ModuleOp module, llvm::StringRef entry,
           const std::map<std::string, int64_t> &dims);

/// The value of a size as lib/Codegen describes it: whole numbers and names
/// with + - * / (rounding down), signs, parentheses, ceil(a / b), min(a, b) and
/// max(a, b). Nothing for anything else, and on overflow.
std::optional<int64_t> evaluateSize(llvm::StringRef text,
                                    const std::map<std::string, int64_t> &dims);

} // namespace attune

#endif // ATTUNE_ANALYSIS_MEMORYPLAN_H
