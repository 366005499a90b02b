//===- Run.h - One function on one input ------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_RUN_H
#define ATTUNE_LIB_VALIDATION_RUN_H

#include "Inputs.h"
#include "Interpreter/Ranks.h"

namespace attune::validation {

/// One result, or what a buffer holds at the end.
struct Output {
  std::string name;
  mlir::Type element;
  Datum value;    ///< a scalar or an array
  int batch = -1; ///< its dimension, if there is one
  /// What other ranks have of it: all of it, or other copies of its parts.
  std::vector<Datum> copies = {};

  size_t numValues() const { return 1 + copies.size(); }
  const Datum &get(size_t i) const { return i ? copies[i - 1] : value; }
};
using Outputs = std::vector<Output>;

/// The arguments and results of a function when it was first seen. Passes move
/// results to arguments, drop them and put weights in front; this tells what is
/// what.
struct Signature {
  explicit Signature(mlir::FunctionOpInterface func);
  void findRoles(mlir::FunctionOpInterface func) const;
  size_t numArguments;
  std::vector<std::string> results;
  std::vector<mlir::Type> resultTypes;
  std::vector<int> batches;
  /// Arguments that are buffers from the start: written to.
  std::vector<std::pair<unsigned, std::string>> written;
  /// The arguments when they last had types that tell; LLVM's functions take
  /// bare numbers.
  struct Role {
    mlir::Type type;
    std::string name;
    /// If ranks share several things that lie side by side in the last
    /// dimension, the sizes of all.
    llvm::SmallVector<int64_t> sideBySide = {};
    /// Ranks that share the positions of a cache.
    int64_t sharers = 1;
  };
  mutable std::vector<Role> roles;
  mutable unsigned first = 0; ///< the first role behind the weights
};

/// Calls `func`, as it is now, on arguments as they were made. `like` has the
/// results of an earlier run, whose sizes results in arguments have. Where
/// ranks share the model, each gets its part of an argument that is cut by now,
/// and their parts of a result are put together. Nothing, if a machine failed
/// or the signature has become one that is not known; that machine says why.
std::optional<Outputs> run(Ranks &ranks, mlir::FunctionOpInterface func,
                           const Signature &signature,
                           llvm::ArrayRef<Argument> args, const Outputs *like);

/// How two runs differ most, beyond what is allowed.
struct Mismatch {
  std::string name;
  Shape index;
  double before, after, allowed;
  mlir::Type element;
  bool copy = false; ///< of another rank than the first

  std::string text() const;
};
struct Tolerance {
  double atol, rtol;
};
/// `moved`, if given, is a run on arguments that are a little off.
std::optional<Mismatch> compare(const Outputs &before, const Outputs &after,
                                const Case &check, Tolerance tolerance,
                                const Outputs *moved);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_RUN_H
