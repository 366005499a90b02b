//===- Passes.h - From parallel loops to kernels ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_PTX_PASSES_H
#define ATTUNE_TARGET_PTX_PASSES_H

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attune {

#define GEN_PASS_DECL
#include "attune/Target/PTX/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "attune/Target/PTX/Passes.h.inc"

/// The kernels of a decoder's step: for one sequence, and for two to kFewRows.
constexpr char kPersistentName[] = "decode_persistent";
constexpr char kPersistentBatchName[] = "decode_batch_persistent";
/// Attributes of a launch that may be an instruction of one of them or of both:
/// their symbols, and for each the threads of its blocks and their bytes of
/// shared memory that a launch says, the number of the launched kernel there
/// (and in bits above 16 what threads copy ahead for it), and the most of its
/// tasks that a block has at once.
constexpr char kPersistentKernels[] = "attune.persistent_kernels";
constexpr char kInstructions[] = "attune.instructions";

/// A kernel that goes through a list of instructions.
bool isPersistent(mlir::gpu::GPUFuncOp kernel);

/// Registers the translations that turn kernels into PTX.
void registerPTXTranslations(mlir::DialectRegistry &registry);

} // namespace attune

#endif // ATTUNE_TARGET_PTX_PASSES_H
