//===- PairProduct.h - Products of pairs of bf16 ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_PAIRPRODUCT_H
#define ATTUNE_CONVERSION_PAIRPRODUCT_H

#include "attune/Conversion/KernelBuilder.h"

/// CPUs with bf16 arithmetic have one instruction for it: each f32 lane adds
/// the products of two pairs of neighbours, `acc + a1 b1 + a0 b0`. So operands
/// lie in pairs along the depth of a product (VNNI-2 layout).
namespace attune {

/// Lanes of a product that one instruction computes, of `lanes` in a panel.
int64_t pairLanes(int64_t lanes);

/// `2 * lanes` elements of a bf16 tensor, as they are.
mlir::Value loadPairs(KernelBuilder &k, mlir::Value tensor,
                      mlir::ValueRange indices, int64_t lanes);
/// The two elements of a bf16 tensor at `indices`, in every lane.
mlir::Value splatPair(KernelBuilder &k, mlir::Value tensor,
                      mlir::ValueRange indices, int64_t lanes);

/// `sums` of f32 plus the products of all pairs in `a` and `b`.
mlir::Value addPairProducts(KernelBuilder &k, mlir::Value sums, mlir::Value a,
                            mlir::Value b);

/// emitMicrokernel on pairs: `loadA` gives a pair in every of pairLanes lanes,
/// `loadB` the pairs of pairLanes lanes from `lane` on. `steps` counts pairs.
KernelBuilder::Values emitPairMicrokernel(
    KernelBuilder &k, int64_t rows, mlir::Value steps, mlir::ValueRange inits,
    llvm::function_ref<mlir::Value(KernelBuilder &, int64_t row,
                                   mlir::Value step)>
        loadA,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value step,
                                   int64_t lane)>
        loadB);

/// The same on CPUs that multiply no pairs: these become two vectors of f32,
/// `each` lanes at a time. `loadA` gives element `which` (0 or 1) of a row's
/// pair as f32. Sums are those of emitMicrokernel on weights one by one.
KernelBuilder::Values emitWidenedMicrokernel(
    KernelBuilder &k, int64_t rows, int64_t each, mlir::Value steps,
    mlir::ValueRange inits,
    llvm::function_ref<mlir::Value(KernelBuilder &, int64_t row,
                                   mlir::Value step, int64_t which)>
        loadA,
    llvm::function_ref<mlir::Value(KernelBuilder &, mlir::Value step,
                                   int64_t lane)>
        loadB);

} // namespace attune

#endif // ATTUNE_CONVERSION_PAIRPRODUCT_H
