//===- Passes.h - Conversions out of the attune dialect ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_PASSES_H
#define ATTUNE_CONVERSION_PASSES_H

#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace attune {

#define GEN_PASS_DECL
#include "attune/Conversion/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "attune/Conversion/Passes.h.inc"

} // namespace attune

#endif // ATTUNE_CONVERSION_PASSES_H
