//===- Inputs.h - Random and adversarial arguments --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INPUTS_H
#define ATTUNE_LIB_VALIDATION_INPUTS_H

#include "Interpreter/Datum.h"

#include "attune/Validation/Validation.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace attune::validation {

/// How open sizes of a function without names for them are chosen.
enum class Sizes {
  Same,    ///< all the same
  Batch,   ///< the first of a tensor is the batch, the others are the same
  Crossed, ///< as many queries as `length`, another number of keys
};

/// The kind of input numbers.
enum class Numbers {
  Plain, ///< from -1 to 1
  Large, ///< so large that a softmax is all or nothing
  Zero,
  Subnormal,
  Hidden,    ///< masks that hide whole rows
  NotANumber ///< NaN and infinities in the last sequence of the batch
};

struct Case {
  std::string name;
  int64_t length = 1, batch = 1, past = 0;
  Sizes sizes = Sizes::Same;
  Numbers numbers = Numbers::Plain;
  uint64_t seed = 0;
};

/// The cases worth trying for a function; many of them fit no function, which
/// shows when it is run.
std::vector<Case> makeCases(mlir::FunctionOpInterface func,
                            const ValidationOptions &options);

/// The dimension of a batch, of an argument or a result with these attributes;
/// -1 if there is none.
int findBatch(mlir::DictionaryAttr attributes, mlir::Type type);

/// An argument as it was made: a scalar, or an array that is bound as a tensor
/// or as a buffer, whatever the function takes by then.
struct Argument {
  Datum value;
  mlir::Type type; ///< when it was made
};

/// Arguments for a function, or nothing if it takes what cannot be made.
std::optional<std::vector<Argument>>
makeArguments(mlir::FunctionOpInterface func, const Case &check);

/// The arguments with every float moved a little: how far an answer moves then
/// is how far rounding may move it. `step` is relative; what is too small for
/// products of it becomes zero.
std::vector<Argument> disturb(llvm::ArrayRef<Argument> args, double step);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INPUTS_H
