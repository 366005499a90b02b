//===- IRGuard.h - Guards before MLIR's parser ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_IMPORT_IRGUARD_H
#define ATTUNE_IMPORT_IRGUARD_H

#include "mlir/IR/DialectRegistry.h"
#include "llvm/ADT/StringRef.h"

#include <optional>
#include <string>

namespace attune {

/// Why a file must not be handed to MLIR's parser.
struct IRProblem {
  unsigned line = 0, column = 0; ///< from 1; 0 for bytecode, which has none
  std::string message;

  /// "FILE:LINE:COLUMN: error: MESSAGE"
  std::string in(llvm::StringRef file) const;
};

/// Looks at IR of unknown origin. Text that is nested too deep would overflow
/// the parser's stack. Bytecode is not checked by its reader as text is: a copy
/// of this process reads it first, and may die of it.
std::optional<IRProblem> findIRProblem(llvm::StringRef text,
                                       const mlir::DialectRegistry &registry);

} // namespace attune

#endif // ATTUNE_IMPORT_IRGUARD_H
