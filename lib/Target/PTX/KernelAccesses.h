//===- KernelAccesses.h - What the kernels of a step touch ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_PTX_KERNELACCESSES_H
#define ATTUNE_LIB_TARGET_PTX_KERNELACCESSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace attune {

/// The functions of a decoder's step: for one sequence `decode` and what it
/// calls, for several also `decode_batch`.
llvm::SetVector<mlir::Operation *> functionsOfStep(mlir::ModuleOp module,
                                                   bool ofBatch);

/// Calls attune_rt_access before a launch that still uses buffers and views
/// from outside, for each of them that it reads or writes.
void sayAccesses(mlir::gpu::LaunchOp launch);

} // namespace attune

#endif // ATTUNE_LIB_TARGET_PTX_KERNELACCESSES_H
