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

/// Registers the translations that gpu-module-to-binary needs to turn kernels
/// into PTX.
void registerPTXTranslations(mlir::DialectRegistry &registry);

} // namespace attune

#endif // ATTUNE_TARGET_PTX_PASSES_H
