//===- PairProducts.h - Shared by products of bf16 --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_PAIRPRODUCTS_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_PAIRPRODUCTS_H

#include "Machine.h"

#include <cmath>
#include <limits>
#include <optional>

namespace attune::validation {

/// Subnormal numbers count as zero, read or written.
inline float flush(float x) {
  return std::fabs(x) < std::numeric_limits<float>::min() ? std::copysign(0, x)
                                                          : x;
}

/// Runs an intrinsic on AMX tiles; nothing if it is another.
std::optional<bool> runTileIntrinsic(Step &step, llvm::StringRef name);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_PAIRPRODUCTS_H
