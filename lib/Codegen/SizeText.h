//===- SizeText.h - Sizes as people write them ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CODEGEN_SIZETEXT_H
#define ATTUNE_LIB_CODEGEN_SIZETEXT_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

#include <string>

namespace attune {

/// The calls of a module, by which sizes are followed to its entries: it is
/// made once and looks no further at the module.
class SizeText {
public:
  explicit SizeText(mlir::ModuleOp module);

  /// An index in terms of the sizes that the inputs of the model have names
  /// for: "seq", "batch * seq". A size that no input names is "?".
  std::string describeSize(mlir::Value value) const;

  /// The shape of a buffer in the same terms: "[batch, seq, 768] f32".
  std::string describeShape(mlir::Value buffer) const;

private:
  std::string
  fromCallers(mlir::BlockArgument argument,
              llvm::function_ref<std::string(mlir::Value)> describe) const;
  std::string sizeText(mlir::OpFoldResult size, unsigned depth) const;
  std::string sizeText(mlir::Value value, unsigned depth) const;
  std::string binaryText(mlir::Operation *op, const char *symbol,
                         unsigned depth) const;
  std::string dimText(mlir::Value buffer, int64_t dim, unsigned depth) const;

  llvm::StringMap<llvm::SmallVector<mlir::func::CallOp>> calls;
};

/// The first file, line and column in a location, or "".
std::string describePlace(mlir::Location location);

} // namespace attune

#endif // ATTUNE_LIB_CODEGEN_SIZETEXT_H
