//===- Attention.h - Shared by the files that lower attention ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_ATTENTION_H
#define ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_ATTENTION_H

#include "Attune/AttuneDialect.h"
#include "attune/Conversion/KernelBuilder.h"

#include "mlir/IR/PatternMatch.h"

namespace attune {

/// The register tile; the options of convert-attune-online-to-vector.
struct VectorAttentionTile {
  int64_t lanes;
  int64_t rows;
  bool pairs = false;  ///< bf16 is multiplied in pairs
  bool matrix = false; ///< and of many rows in the tiles of a matrix unit
  /// Bytes of values that stay in the first-level cache while few rows read
  /// them.
  int64_t valueBytes = 8 << 10;
  /// Asked for before the first of it comes from memory.
  int64_t fetchBytes = 1 << 10;
  /// Bytes of keys and values that few rows fetch to the first-level cache,
  /// where they stay until they are read; 0: they are fetched to the
  /// second-level one.
  int64_t nearBytes = 0;
  /// Multiply-adds that are written out rather than put in a loop.
  int64_t unrolled = 64;
};

/// exp(x) = exp2(x * kLog2E).
constexpr double kLog2E = 1.4426950408889634;

/// The type of a tensor or of the buffer that it became.
inline mlir::ShapedType tensorType(mlir::Value value) {
  return mlir::cast<mlir::ShapedType>(value.getType());
}

/// The larger of two scalars or vectors; `rhs` where `lhs` is NaN. One
/// instruction, where maximumf is four.
mlir::Value emitMax(KernelBuilder &k, mlir::Value lhs, mlir::Value rhs);
/// `maximum`, but 0 where it is -inf: subtracting it from a score of -inf gives
/// -inf and not NaN.
mlir::Value emitSafeMax(KernelBuilder &k, mlir::Value maximum);
/// exp of a scalar or vector that is at most 0 or so; with `rough` 1.1e-4 off
/// is close enough.
mlir::Value emitExp(KernelBuilder &k, mlir::Value x, bool rough = false);

/// Walks `size` elements in vectors of `lanes`: `body(k, at, valid, carried)`,
/// where `valid` is null if every vector is whole.
KernelBuilder::Values forVectors(
    KernelBuilder &k, mlir::Value size, int64_t lanes, mlir::ValueRange inits,
    llvm::function_ref<KernelBuilder::Values(KernelBuilder &, mlir::Value at,
                                             mlir::Value valid,
                                             mlir::ValueRange carried)>
        body);

/// Lowers steps of online softmax.
void populateOnlineAttentionPatterns(mlir::RewritePatternSet &,
                                     const VectorAttentionTile &);
/// Lowers online_start, online_merge and online_finish.
void populateOnlineStatePatterns(mlir::RewritePatternSet &,
                                 const VectorAttentionTile &);

} // namespace attune

#endif // ATTUNE_LIB_CONVERSION_ATTUNETOVECTOR_ATTENTION_ATTENTION_H
