//===- TileOperands.h - What a matrix unit multiplies -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_TILEOPERANDS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_TILEOPERANDS_H

#include "attune/Conversion/KernelBuilder.h"

namespace attune {

/// A part of a buffer that begins at `begins`. With fewer sizes than the buffer
/// has dimensions, it has one place of each of the first.
mlir::Value viewOf(KernelBuilder &k, mlir::Value buffer,
                   mlir::ValueRange begins, llvm::ArrayRef<int64_t> sizes);

/// The attune.linear_into that convert-attune-to-amx makes tiles of: products
/// of `rows` [M, K] and a `panel` of weights go to `sums` [M, R], or are added
/// to what is there.
void multiplyInTiles(KernelBuilder &k, mlir::Value rows, mlir::Value panel,
                     mlir::Value sums, bool adds);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_MATMUL_TILEOPERANDS_H
