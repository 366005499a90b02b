//===- WeightTable.h - The attune.weight symbols of a module ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_WEIGHTTABLE_H
#define ATTUNE_LIB_IMPORT_WEIGHTTABLE_H

#include "Attune/AttuneDialect.h"
#include "attune/Spec/Spec.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace attune {

/// One role of a weight that several roles make up, and its number of rows.
struct WeightPiece {
  std::vector<spec::WeightSource> sources;
  int64_t rows = 0;
};

/// Declares each weight once, ahead of the module's functions, however many
/// functions use it.
class WeightTable {
public:
  WeightTable(mlir::ModuleOp module, mlir::Type storage,
              DiagnosticEngine &diags)
      : module(module), storage(storage), diags(diags) {}

  /// The value of weight `symbol`: the pieces one below the other, with
  /// `columns` columns (0: a vector). For a repeated layer it is the part of
  /// repeat `index`, unless all repeats name the same tensors. With `parts` it
  /// is a stack of so many such matrices, whose numbers are `{e}` in the names.
  /// Null after an error was reported.
  mlir::Value get(mlir::OpBuilder &builder, mlir::Location loc,
                  llvm::StringRef symbol, llvm::ArrayRef<WeightPiece> pieces,
                  int64_t columns, const spec::Layer &layer, mlir::Value index,
                  int64_t parts = 0);

private:
  WeightOp declare(mlir::Location loc, llvm::StringRef symbol,
                   llvm::ArrayRef<WeightPiece> pieces, int64_t columns,
                   const spec::Layer &layer, int64_t parts);

  mlir::ModuleOp module;
  mlir::Type storage;
  DiagnosticEngine &diags;
  llvm::StringMap<WeightOp> declared;
  /// By type, sources and what these are multiplied by.
  llvm::DenseMap<std::tuple<mlir::Type, mlir::Attribute, mlir::Attribute>,
                 WeightOp>
      bySource;
  WeightOp last;
};

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_WEIGHTTABLE_H
