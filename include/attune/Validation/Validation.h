//===- Validation.h - Did a pass keep the function? -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_VALIDATION_VALIDATION_H
#define ATTUNE_VALIDATION_VALIDATION_H

#include "mlir/Pass/PassManager.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

/// Numeric translation validation: every function is run on random and
/// adversarial inputs before and after each pass, by an interpreter of attune
/// ops and of what they become, down to loops on memory. The first pass that
/// changes an answer is named.
namespace attune {

struct ValidationOptions {
  /// Allowed: `atol` of the result's largest value plus `rtol` of the value;
  /// without them, what the rounding of the narrowest type in use explains.
  std::optional<double> atol, rtol;
  uint64_t seed = 1;
  /// Work for one function on one input; what takes more is left out.
  int64_t budget = 20000000;
  /// Work for everything, about four minutes. Each function has a share for
  /// each pass, and as many inputs as fit into that.
  int64_t total = 2000000000;
  /// Lengths of open sizes.
  std::vector<int64_t> lengths{1, 7, 19};
  /// Warns of functions and passes that are left out.
  bool warn = false;
  /// Says on stderr what was run and what could not be.
  bool verbose = false;
  /// Told before each run: "@forward after 'cse'".
  std::function<void(const std::string &)> progress;
};

/// Reads `key=value,...`; an error message, or nothing.
std::optional<std::string> parseValidationOptions(llvm::StringRef text,
                                                  ValidationOptions &options);

/// Findings, shared with whoever reads them after the validation.
struct ValidationResult {
  unsigned mismatches = 0; ///< functions that a pass changed
};

/// Follows the functions of one module through any number of pass managers,
/// which keep what they need of it.
class Validation {
public:
  Validation(const ValidationOptions &options,
             std::shared_ptr<ValidationResult> result);

  /// Makes `passes` report the first pass that changes an answer, as an error.
  /// Turns the context's threads off: a function is run while nobody rewrites
  /// another.
  void attach(mlir::PassManager &passes);

private:
  class Watch;
  std::shared_ptr<Watch> watch;
};

} // namespace attune

#endif // ATTUNE_VALIDATION_VALIDATION_H
