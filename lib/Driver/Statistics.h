//===- Statistics.h - What inspect and products say of a model --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_STATISTICS_H
#define ATTUNE_LIB_DRIVER_STATISTICS_H

#include "attune/Analysis/ModelStatistics.h"

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace attune::driver {

/// Bytes of the weights that a token goes through, in full width.
double activeWeightBytes(const ModelStatistics &statistics);

/// Adds the sizes of compressed weights, as optimize() lays them out;
/// \p inactiveBytes of them belong to experts that a token does not go through.
/// False if they have no layout, which has been reported.
bool countCompressed(mlir::ModuleOp weights, double inactiveBytes,
                     ModelStatistics &statistics);

/// The JSON object that a compiled product answers `inspect` with.
std::string describeStatistics(const ModelStatistics &statistics);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_STATISTICS_H
