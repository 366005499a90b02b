//===- NormsOfFew.h - Norms that products make themselves -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_WARPS_NORMSOFFEW_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_WARPS_NORMSOFFEW_H

#include "../Matmul/PanelProduct.h"

#include "Attune/AttuneGroupOps.h"

namespace attune {

/// Before layers are lowered: marks norms that products can make of up to `few`
/// rows, because nothing else reads them.
void markNormsOfFew(mlir::Operation *root, int64_t few);

/// The product of a layer whose input is a marked norm, into `dest`; null: it
/// is none. `scales` and `zeros` are those of weights in few bits.
NormedLinearIntoOp multiplyNorm(KernelBuilder &k, mlir::Operation *layer,
                                const PanelProduct &product, mlir::Value input,
                                mlir::Value scales, bool zeros,
                                mlir::Value dest, mlir::FloatAttr scale);

/// Afterwards: these norms become loops that run where rows are more.
void lowerNormsOfFew(mlir::Operation *root, const VectorLowering &lowering);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_WARPS_NORMSOFFEW_H
