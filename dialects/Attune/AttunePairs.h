//===- AttunePairs.h - Matrices of pairs of bf16 ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_PAIRS_H
#define ATTUNE_PAIRS_H

#include "mlir/IR/BuiltinTypes.h"

#include <optional>

namespace attune {

/// Whether `matrix` holds panels of pairs, [panels, K / 2, 2 R]: for each of R
/// outputs the weights of two neighbouring inputs side by side. It says so by
/// being half as deep as the K inputs that it multiplies.
inline bool holdsPairs(mlir::ShapedType matrix, int64_t inputs) {
  return matrix.getRank() == 3 && matrix.getElementType().isBF16() &&
         !mlir::ShapedType::isDynamic(inputs) && inputs > 0 &&
         2 * matrix.getDimSize(1) == inputs;
}

/// Whether a weight of `type`, in panels of `panelWidth` outputs, is stored in
/// pairs.
inline bool storesPairs(mlir::RankedTensorType type,
                        std::optional<int64_t> panelWidth) {
  return panelWidth && type.getRank() > 2 && type.getElementType().isBF16() &&
         type.getShape().back() == 2 * *panelWidth;
}

} // namespace attune

#endif // ATTUNE_PAIRS_H
