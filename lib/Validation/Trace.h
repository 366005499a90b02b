//===- Trace.h - Where two runs part ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_TRACE_H
#define ATTUNE_LIB_VALIDATION_TRACE_H

#include "Run.h"

namespace attune::validation {

/// The first op whose value another module computes otherwise.
struct Place {
  mlir::Location location;
  std::string op;
  std::string text;
};

/// Runs a function of two modules and compares what they compute at the same
/// source locations, in the order of the first.
std::optional<Place> findPlace(mlir::ModuleOp before, mlir::ModuleOp after,
                               llvm::StringRef name, const Signature &signature,
                               llvm::ArrayRef<Argument> args,
                               const Outputs &like, double tolerance,
                               int64_t budget);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_TRACE_H
