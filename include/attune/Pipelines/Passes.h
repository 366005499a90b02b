//===- Passes.h - Passes about pipelines ------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PIPELINES_PASSES_H
#define ATTUNE_PIPELINES_PASSES_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attune {

#define GEN_PASS_DECL
#include "attune/Pipelines/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "attune/Pipelines/Passes.h.inc"

} // namespace attune

#endif // ATTUNE_PIPELINES_PASSES_H
