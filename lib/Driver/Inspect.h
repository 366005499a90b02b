//===- Inspect.h - Statistics for products ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_INSPECT_H
#define ATTUNE_LIB_DRIVER_INSPECT_H

#include "attune/Spec/Spec.h"

namespace attune::driver {

/// The JSON object that a compiled product answers `inspect` with.
std::string describeStatistics(const spec::Model &model);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_INSPECT_H
