//===- PowerScales.h - Scales that are powers of two ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_POWERSCALES_H
#define ATTUNE_CONVERSION_POWERSCALES_H

#include "attune/Conversion/KernelBuilder.h"

namespace attune {

/// `lanes` bytes of f8E8M0FNU from a tensor.
mlir::Value loadPowers(KernelBuilder &k, mlir::Value tensor,
                       mlir::ValueRange indices, int64_t lanes);

/// Half of each power of two, in f32: what multiplies the doubles of e2m1.
/// `powers` is one number, or a vector.
mlir::Value halvesOfPowers(KernelBuilder &k, mlir::Value powers);

} // namespace attune

#endif // ATTUNE_CONVERSION_POWERSCALES_H
