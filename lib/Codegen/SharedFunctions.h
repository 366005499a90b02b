//===- SharedFunctions.h - Functions that stand there once ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_CODEGEN_SHAREDFUNCTIONS_H
#define ATTUNE_LIB_CODEGEN_SHAREDFUNCTIONS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace attune {

/// Functions that an outlining pass makes; equal computations share one.
class SharedFunctions {
public:
  explicit SharedFunctions(mlir::ModuleOp module) : symbols(module) {}

  /// A kernel of nothing yet, which is in no module: private, and never
  /// inlined, for one that is called once would lose its name.
  static mlir::func::FuncOp create(mlir::Location loc, llvm::StringRef name,
                                   mlir::ValueRange arguments);
  /// Takes a function that is in no module. Returns one that computes the same,
  /// or if there is none puts it into the module, with a number behind its name
  /// if that is taken; and whether it is new.
  std::pair<mlir::func::FuncOp, bool> add(mlir::func::FuncOp func);

private:
  mlir::SymbolTable symbols;
  llvm::DenseMap<size_t, llvm::SmallVector<mlir::func::FuncOp, 1>> known;
};

/// The place of a call of what was at `loc`. LLVM wants one for each call of a
/// function with debug info, also of layers that no file names.
mlir::Location placeOfCall(mlir::Location loc);

} // namespace attune

#endif // ATTUNE_LIB_CODEGEN_SHAREDFUNCTIONS_H
