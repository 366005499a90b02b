//===- CachedRows.h - Rows of a cache in bytes ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_CACHEDROWS_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_CACHEDROWS_H

#include "../Patterns.h"

#include "Attune/AttuneCachedRows.h"

namespace attune {

/// The largest magnitude of `width` columns, an f32: NaN or infinity if one is.
mlir::Value largestMagnitude(KernelBuilder &k, int64_t width, int64_t lanes,
                             LoadColumns load);

/// What a row of this largest magnitude is multiplied by, so that it becomes
/// `most`, and then by, so that it is itself again; both 0 for zeros.
struct RowScale {
  mlir::Value inverse, scale;
  RowScale(KernelBuilder &k, mlir::Value largest, double most);
};

/// A vector of f32 as the nearest integers of 32 bits in [-127, 127].
mlir::Value roundToBytes(KernelBuilder &k, mlir::Value x);

/// The row, whose numbers are f32, at `to` of a tile of a cache in bytes.
mlir::Value writeInBytes(KernelBuilder &k, int64_t width, int64_t lanes,
                         LoadColumns load, mlir::Value tile,
                         llvm::ArrayRef<mlir::Value> to);

/// Whether rows of heads are bytes.
inline bool isInBytes(mlir::Value heads) {
  return isInBytes(getElementTypeOrSelf(heads.getType()));
}
/// Numbers of a row in bytes, as f32 that wait for the scale of their row.
mlir::Value loadUnscaled(KernelBuilder &k, mlir::Value heads,
                         mlir::ValueRange at, int64_t lanes,
                         mlir::Value valid = {});
/// The scale of the row [.., row] in bytes, which numbers of loadUnscaled() are
/// multiplied by.
mlir::Value loadRowScale(KernelBuilder &k, mlir::Value heads,
                         mlir::ValueRange row);
/// Numbers of a row of any type, as f32.
mlir::Value loadHeads(KernelBuilder &k, mlir::Value heads, mlir::ValueRange at,
                      int64_t lanes, mlir::Value valid = {});

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ROWS_CACHEDROWS_H
