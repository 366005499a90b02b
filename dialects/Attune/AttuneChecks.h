//===- AttuneChecks.h - Checks shared by verifiers --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_CHECKS_H
#define ATTUNE_CHECKS_H

#include "Attune/AttuneDialect.h"

namespace attune {

/// One size of a tensor, as a message names it: "key" "width".
struct NamedSize {
  mlir::Value value;
  int64_t dim;
  llvm::StringRef owner, what;

  int64_t get() const {
    return llvm::cast<mlir::ShapedType>(value.getType()).getDimSize(dim);
  }
  bool known() const { return !mlir::ShapedType::isDynamic(get()); }
};

/// Fails if both sizes are known and differ.
mlir::LogicalResult sameSize(mlir::Operation *op, NamedSize left,
                             NamedSize right);

/// The same for the numbers that rows have; rows in bytes have fewer numbers
/// than elements.
mlir::LogicalResult sameWidth(mlir::Operation *op, NamedSize left,
                              NamedSize right);

/// Fails if `left` is known to be another number than `right`, which is what
/// `why` says.
mlir::LogicalResult sizeIs(mlir::Operation *op, NamedSize left, int64_t right,
                           const llvm::Twine &why);

/// Fails if heads of `key` cannot be shared evenly among those of `query`.
mlir::LogicalResult headsShare(mlir::Operation *op, mlir::Value query,
                               mlir::Value key, llvm::StringRef owner);

/// Fails unless `value`, if there, has the type of the result.
mlir::LogicalResult typeOfResult(mlir::Operation *op, mlir::Value value,
                                 llvm::StringRef owner);

/// The same, where the result's elements may be of another type.
mlir::LogicalResult shapeOfResult(mlir::Operation *op, mlir::Value value,
                                  llvm::StringRef owner);

int64_t rankOf(mlir::Value value);
/// The size of the last dimension.
NamedSize lastSize(mlir::Value value, llvm::StringRef owner,
                   llvm::StringRef what = "width");

/// Fails if the two differ in more than their last dimension.
mlir::LogicalResult sameTokens(mlir::Operation *op, mlir::Value value,
                               llvm::StringRef owner, mlir::Value like,
                               llvm::StringRef likeOwner);

/// Fails unless `matrix` has `rows` rows, which may be dynamic; in panels it
/// has as many as hold them, each half on its own if gated. `side` columns of a
/// row stand side by side in a panel.
mlir::LogicalResult hasRows(mlir::Operation *op, mlir::Value matrix,
                            llvm::StringRef owner, int64_t rows, bool gated,
                            const llvm::Twine &why, int64_t side = 1);

/// L7 and L8 of attune.quantized_linear, for numbers of so many bits that
/// multiply rows of `inputs`: `groups`, the second dimension but one of their
/// scales, make whole ones, and scales of floats are those of 4 bits.
mlir::LogicalResult groupsFit(mlir::Operation *op, mlir::Value scales,
                              unsigned dim, llvm::StringRef owner, bool zeros,
                              int64_t bits, int64_t inputs);

/// L9: a matrix of floats of 8 bits has scales of f32 without zeros, and
/// multiplies an input, if there is one, of numbers.
mlir::LogicalResult byteFloatsFit(mlir::Operation *op, mlir::Value matrix,
                                  mlir::Value scales, bool zeros,
                                  mlir::Value input = {});

/// L7: bytes come with scales and sums, numbers with neither.
mlir::LogicalResult scalesFit(mlir::Operation *op, mlir::Value input,
                              mlir::Value scales, mlir::Value sums);

/// Fails unless `bias`, if there, has `entries` entries.
mlir::LogicalResult hasEntries(mlir::Operation *op, mlir::Value bias,
                               llvm::StringRef owner, int64_t entries);

} // namespace attune

#endif // ATTUNE_CHECKS_H
