//===- SizeText.h - Sizes as people write them ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CODEGEN_SIZETEXT_H
#define ATTUNE_LIB_CODEGEN_SIZETEXT_H

#include "mlir/IR/Location.h"
#include "mlir/IR/Value.h"

#include <string>

namespace attune {

/// An index in terms of the sizes that the inputs of the model have names for:
/// "seq", "batch * seq". What no input names is "?".
std::string describeSize(mlir::Value value);

/// The shape of a buffer in the same terms: "[batch, seq, 768] f32".
std::string describeShape(mlir::Value buffer);

/// The first file, line and column in a location, or "".
std::string describePlace(mlir::Location location);

} // namespace attune

#endif // ATTUNE_LIB_CODEGEN_SIZETEXT_H
