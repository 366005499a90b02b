//===- Norms.h - Norms of rows ----------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_NORMS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_NORMS_H

#include "../Patterns.h"

namespace attune {

/// A norm over the last axis: LayerNorm if `centred`, else RMSNorm.
struct Norm {
  mlir::Value gamma, beta; ///< [width], or [heads, width] for queries and keys
  bool centred;            ///< subtracts the mean
  double eps, offset;

  /// The norm that an op is, if it is one.
  static std::optional<Norm> of(mlir::Operation *op);
};

/// Writes the norm of rows [M, D] to `dest`, in a parallel loop.
mlir::Value normaliseRows(KernelBuilder &k, mlir::Value rows, mlir::Value dest,
                          const Norm &norm, const VectorLowering &lowering);

/// Writes the norm of a row of head `head` to `to` of the tile. `load` reads
/// the row, which is somewhere else.
mlir::Value normaliseHead(KernelBuilder &k, const Norm &norm, LoadColumns load,
                          mlir::Value head, int64_t width, int64_t lanes,
                          mlir::Value tile, llvm::ArrayRef<mlir::Value> to);

/// One by the root mean square of the row that `load` reads, as RMSNorm has it.
mlir::Value inverseRms(KernelBuilder &k, LoadColumns load, double eps,
                       int64_t width, int64_t lanes);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_NORMS_H
