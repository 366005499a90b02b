//===- TensorCores.h - Copies, fragments and products of warps --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOGPU_TENSORCORES_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOGPU_TENSORCORES_H

#include "BlockBuilder.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

namespace attune {

mlir::Type elementOf(mlir::Value buffer);
int64_t bytesOf(mlir::Value buffer); ///< of an element

//===----------------------------------------------------------------------===//
// Copies into shared memory
//===----------------------------------------------------------------------===//

/// Starts the copy of `elements`. The first `valid` of them are there; the rest
/// become zeros.
void copyAsync(BlockBuilder &b, mlir::Value to, mlir::Value toAt,
               mlir::Value from, mlir::ValueRange at, int64_t elements,
               mlir::Value valid);
void commitCopies(BlockBuilder &b);
/// Waits until only the last `groups` of copies may be under way, and for all
/// threads.
void awaitCopies(BlockBuilder &b, int64_t groups);
/// How many of `count` elements from `at` on exist, out of `size` in all.
mlir::Value validOf(BlockBuilder &b, mlir::Value at, int64_t count,
                    int64_t size);

//===----------------------------------------------------------------------===//
// Fragments
//===----------------------------------------------------------------------===//

/// A lane's registers of a fragment: words, or pairs of f16.
using Registers = mlir::SmallVector<mlir::Value, 4>;

mlir::Value toRegister(BlockBuilder &b, mlir::Value value);
Registers toRegisters(BlockBuilder &b, mlir::ArrayRef<mlir::Value> values);

mlir::Value element(BlockBuilder &b, mlir::Value vector, int64_t i);
mlir::Value bitCast(BlockBuilder &b, mlir::Value value, mlir::Type type);

/// The register of an f32 rounded to the nearest number of tf32, of two the
/// larger one.
mlir::Value roundToTF32(BlockBuilder &b, mlir::Value number);

/// Pairs of 16 bits of `count` matrices.
mlir::SmallVector<mlir::Value> loadMatrices(BlockBuilder &b, mlir::Value from,
                                            mlir::Value at, int64_t count,
                                            bool transpose);

/// sum + a b; the sum of a lane is vector<2x2xf32>. Not nvgpu.mma.sync, which
/// has no bf16.
mlir::Value multiplyAdd(BlockBuilder &b, mlir::ArrayRef<mlir::Value> a,
                        mlir::ArrayRef<mlir::Value> panel, mlir::Value sum,
                        mlir::NVVM::MMATypes type);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOGPU_TENSORCORES_H
