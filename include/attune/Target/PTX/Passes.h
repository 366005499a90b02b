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

/// The kernel of a decoder's step.
constexpr char kPersistentName[] = "decode_persistent";
/// Attributes of a launch that may be an instruction of it: its symbol, and the
/// threads of its blocks, the number of the launched kernel there, and the most
/// tasks of that which a block has at once.
constexpr char kPersistentKernel[] = "attune.persistent_kernel";
constexpr char kInstruction[] = "attune.instruction";

/// Registers the translations that gpu-module-to-binary needs to turn kernels
/// into PTX.
void registerPTXTranslations(mlir::DialectRegistry &registry);

} // namespace attune

#endif // ATTUNE_TARGET_PTX_PASSES_H
