//===- Activations.h - Activation functions on vectors ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CONVERSION_ACTIVATIONS_H
#define ATTUNE_CONVERSION_ACTIVATIONS_H

#include "Attune/AttuneDialect.h"
#include "attune/Conversion/KernelBuilder.h"

namespace attune {

/// `activation(x)` on a vector of f32.
mlir::Value emitActivation(KernelBuilder &k, Activation activation,
                           mlir::Value x);

} // namespace attune

#endif // ATTUNE_CONVERSION_ACTIVATIONS_H
