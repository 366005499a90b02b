//===- SplitKernels.h - Kernels as modules of their own ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_CPU_SPLITKERNELS_H
#define ATTUNE_LIB_TARGET_CPU_SPLITKERNELS_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/SmallVector.h"

namespace attune {

/// Copies of what `module`, in the llvm dialect, holds besides weights: first
/// all that is no kernel, then each kernel with what it calls and reads. Other
/// parts declare it, so that each can be compiled beside the others. Kernels
/// that share something writable stay in the first part; without `apart`, all
/// do.
llvm::SmallVector<mlir::OwningOpRef<mlir::ModuleOp>>
splitKernels(mlir::ModuleOp module, bool apart);

} // namespace attune

#endif // ATTUNE_LIB_TARGET_CPU_SPLITKERNELS_H
