//===- AttuneShapes.h - Sizes of results from operands ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SHAPES_H
#define ATTUNE_SHAPES_H

#include "Attune/AttuneDialect.h"

#include "mlir/Interfaces/FunctionInterfaces.h"

namespace attune {

/// Where one result dimension comes from: dimension `dim` of `source`, or a
/// size computed by the caller, or nothing (a dynamic size no operand knows).
struct SizeSource {
  SizeSource(mlir::Value source, int64_t dim) : source(source), dim(dim) {}
  SizeSource(mlir::OpFoldResult size) : size(size) {}
  SizeSource() = default;
  mlir::Value source;
  int64_t dim = 0;
  mlir::OpFoldResult size;
};

/// Appends the sizes of `result`: constants where its type is static, else what
/// `sources` says; a dynamic size without a source stays unknown.
mlir::LogicalResult reifySizes(mlir::OpBuilder &builder, mlir::Location loc,
                               mlir::Value result,
                               llvm::ArrayRef<SizeSource> sources,
                               mlir::ReifiedRankedShapedTypeDims &shapes);

/// The same where `result` has the shape of `like`.
mlir::LogicalResult reifyAs(mlir::OpBuilder &builder, mlir::Location loc,
                            mlir::Value result, mlir::Value like,
                            mlir::ReifiedRankedShapedTypeDims &shapes);

/// The largest sizes that an argument may have (`attune.longest`): 0, and what
/// stands behind the last number, for any. Attune 1.0 wrote one number alone,
/// that of the second size.
llvm::SmallVector<int64_t> longestSizes(mlir::FunctionOpInterface function,
                                        unsigned argument);

} // namespace attune

#endif // ATTUNE_SHAPES_H
