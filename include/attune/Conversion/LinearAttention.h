//===- LinearAttention.h - Formulas of attention by sums --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_LINEARATTENTION_H
#define ATTUNE_CONVERSION_LINEARATTENTION_H

#include "Attune/AttuneDialect.h"
#include "attune/Conversion/KernelBuilder.h"

namespace attune {

/// Features of a vector of f32.
mlir::Value emitFeature(KernelBuilder &k, FeatureMap map, mlir::Value x);

/// The factor 1 / (total + eps) for a row whose weights add up to `total`, an
/// f32 number; 0 if that sum is 0.
mlir::Value emitNormaliser(KernelBuilder &k, mlir::Value total, double eps);

} // namespace attune

#endif // ATTUNE_CONVERSION_LINEARATTENTION_H
