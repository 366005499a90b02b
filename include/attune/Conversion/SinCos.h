//===- SinCos.h - Sines and cosines of vectors ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_SINCOS_H
#define ATTUNE_CONVERSION_SINCOS_H

#include "attune/Conversion/KernelBuilder.h"

#include <utility>

namespace attune {

/// Sine and cosine of a vector of f32 in radians. Cody-Waite reduction by pi/2
/// in three steps, minimax polynomials on [-pi/4, pi/4]: absolute error below
/// 2.5e-7 for |x| <= 1e5.
std::pair<mlir::Value, mlir::Value> emitSinCos(KernelBuilder &k, mlir::Value x);

} // namespace attune

#endif // ATTUNE_CONVERSION_SINCOS_H
