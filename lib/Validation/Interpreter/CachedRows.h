//===- CachedRows.h - Rows of a cache in bytes, as numbers ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_CACHEDROWS_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_CACHEDROWS_H

#include "Datum.h"

#include "Attune/AttuneCachedRows.h"

namespace attune::validation {

/// Whether an array of such elements is a cache in bytes: [layers, batch,
/// heads, capacity, width + 4].
inline bool isCacheInBytes(mlir::Type element, size_t rank) {
  return rank == 5 && isInBytes(element);
}

/// Rows [.., width + 4] of `element` for these numbers: as `cache_append` says,
/// with the roundings of f32.
Datum toBytes(mlir::Type element, const Array &numbers);
/// The numbers [.., width] that such rows stand for.
Datum fromBytes(mlir::Type element, const Array &rows);

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_CACHEDROWS_H
