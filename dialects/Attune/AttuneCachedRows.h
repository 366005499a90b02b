//===- AttuneCachedRows.h - Rows of keys and values in bytes ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A row of a key/value cache in bytes is the numbers of one head at one
// position, each an integer of 8 bits (i8) or a float of 8 bits (f8E4M3FN), and
// behind them four bytes: the f32, in the order of bytes of the machine, that
// they are multiplied by. So a scale comes from memory with its row, and a
// cache is one tensor, whatever it consists of.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CACHED_ROWS_H
#define ATTUNE_CACHED_ROWS_H

#include "mlir/IR/BuiltinTypes.h"

namespace attune {

/// Bytes of the scale behind the numbers of a row.
constexpr int64_t kRowScaleBytes = 4;

/// Whether rows of such elements are bytes with a scale.
inline bool isInBytes(mlir::Type element) {
  return element.isInteger(8) || mlir::isa<mlir::Float8E4M3FNType>(element);
}

/// The largest number of a row before it is scaled.
inline double largestInBytes(mlir::Type element) {
  return element.isInteger(8) ? 127 : 448;
}

/// The number of elements in a row of `width` numbers.
inline int64_t elementsOfRow(mlir::Type element, int64_t width) {
  return isInBytes(element) ? width + kRowScaleBytes : width;
}

/// The width in numbers of rows [..., elements], if that is known.
inline int64_t widthOfRows(mlir::ShapedType rows) {
  int64_t elements = rows.getShape().back();
  bool scaled = isInBytes(rows.getElementType()) &&
                !mlir::ShapedType::isDynamic(elements);
  return scaled ? elements - kRowScaleBytes : elements;
}

} // namespace attune

#endif // ATTUNE_CACHED_ROWS_H
