//===- AttuneFactors.h - Weights that are factors of others -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DIALECTS_ATTUNE_ATTUNEFACTORS_H
#define ATTUNE_DIALECTS_ATTUNE_ATTUNEFACTORS_H

#include "Attune/AttuneDialect.h"

namespace attune {

/// A weight that `attune-low-rank` made: its sources are those of a matrix
/// [rows, columns], and it is one of the two factors, left [rows, rank] or
/// right [rank, columns].
struct Factor {
  bool left = false;
  int64_t rows = 0, columns = 0;
};

/// The attributes `attune.factor` ("left" or "right") and `attune.product`
/// (rows and columns) of a weight; nothing if it has none.
inline std::optional<Factor> factorOf(WeightOp weight) {
  auto side = weight->getAttrOfType<mlir::StringAttr>("attune.factor");
  auto sizes = weight->getAttrOfType<mlir::DenseI64ArrayAttr>("attune.product");
  if (!side || !sizes || sizes.size() != 2)
    return std::nullopt;
  return Factor{side.getValue() == "left", sizes[0], sizes[1]};
}

} // namespace attune

#endif // ATTUNE_DIALECTS_ATTUNE_ATTUNEFACTORS_H
