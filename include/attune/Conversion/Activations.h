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

#include <optional>

namespace attune {

/// `activation(x)` on a vector of f32.
mlir::Value emitActivation(KernelBuilder &k, Activation activation,
                           mlir::Value x);

/// The limit and the offset of a gated layer: see attune.moe.
struct GateLimits {
  std::optional<double> limit;
  double upOffset = 0;

  template <typename Op> static GateLimits of(Op op) {
    GateLimits limits;
    if (auto limit = op.getLimit())
      limits.limit = limit->convertToDouble();
    limits.upOffset = op.getUpOffset().convertToDouble();
    return limits;
  }
};

/// `up * activation(gate)` on vectors of f32, within `limits`.
mlir::Value emitGated(KernelBuilder &k, Activation activation,
                      const GateLimits &limits, mlir::Value gate,
                      mlir::Value up);

} // namespace attune

#endif // ATTUNE_CONVERSION_ACTIVATIONS_H
