//===- Passes.h - attune to attune ------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_PASSES_H
#define ATTUNE_TRANSFORMS_PASSES_H

#include "mlir/Pass/Pass.h"

namespace attune {

#define GEN_PASS_DECL
#include "attune/Transforms/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "attune/Transforms/Passes.h.inc"

} // namespace attune

#endif // ATTUNE_TRANSFORMS_PASSES_H
