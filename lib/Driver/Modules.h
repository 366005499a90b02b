//===- Modules.h - MLIR in the driver: context, messages, import ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_MODULES_H
#define ATTUNE_LIB_DRIVER_MODULES_H

#include "ModelSource.h"

#include "attune/Import/ImportSpec.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/Support/ThreadPool.h"

#include <map>
#include <memory>
#include <set>
#include <string>

namespace attune::driver {

/// An MLIR context that knows every dialect and whose diagnostics come out as
/// the driver's own: located in the JSON, with the line and a caret.
class Modules {
public:
  /// Passes and backends work on `threads` threads; 0: one per core.
  explicit Modules(DiagnosticEngine &diags, unsigned threads = 1);

  /// Locations that name this file are shown with its text.
  void addFile(std::shared_ptr<const SourceFile> file);
  /// The module of a source: imported, or parsed from an .mlir file.
  mlir::OwningOpRef<mlir::ModuleOp> import(const ModelSource &source,
                                           const ImportOptions &options);
  /// The module of a file in MLIR's syntax; null, once reported, if it is none.
  mlir::OwningOpRef<mlir::ModuleOp>
  parse(const std::shared_ptr<const SourceFile> &file);
  /// Errors that MLIR reported so far.
  unsigned getNumErrors() const { return numErrors; }
  mlir::MLIRContext &getContext() { return context; }

private:
  void convert(mlir::Diagnostic &diagnostic);
  SourceLocation locate(mlir::Location location);

  DiagnosticEngine &diags;
  std::unique_ptr<llvm::ThreadPoolInterface> pool; ///< null: one thread
  mlir::MLIRContext context;
  mlir::ScopedDiagnosticHandler handler;
  std::map<std::string, std::shared_ptr<const SourceFile>> files;
  std::set<std::string> shown; ///< errors so far
  unsigned numErrors = 0;
};

/// The module as text; with `locations`, every op with its place.
std::string printModule(mlir::ModuleOp module, bool locations = false);

/// The same without the bodies of kernels: what a model calls, in order.
std::string printKernels(mlir::ModuleOp module, bool locations = false);
/// One kernel alone, or nothing if there is none of this name.
std::optional<std::string> printKernel(mlir::ModuleOp module,
                                       llvm::StringRef name,
                                       bool locations = false);
/// The names of kernels, in order.
std::vector<std::string> listKernels(mlir::ModuleOp module);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_MODULES_H
