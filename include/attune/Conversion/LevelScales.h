//===- LevelScales.h - Scales in two levels ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_LEVELSCALES_H
#define ATTUNE_CONVERSION_LEVELSCALES_H

#include "attune/Conversion/KernelBuilder.h"

namespace attune {

/// `lanes` bytes from a tensor or buffer.
mlir::Value loadBytes(KernelBuilder &k, mlir::Value rows,
                      mlir::ValueRange indices, int64_t lanes);

/// Numbers of f16 whose lower and upper bytes are these vectors, as f32.
mlir::Value halvesOfBytes(KernelBuilder &k, mlir::Value lower,
                          mlir::Value upper);

/// The same of one number.
mlir::Value halfOfBytes(KernelBuilder &k, mlir::Value lower, mlir::Value upper);

} // namespace attune

#endif // ATTUNE_CONVERSION_LEVELSCALES_H
