//===- KernelLines.h - Line tables of kernels -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_CPU_KERNELLINES_H
#define ATTUNE_LIB_TARGET_CPU_KERNELLINES_H

#include "attune/Target/Backend.h"

#include "mlir/IR/BuiltinOps.h"

namespace attune {

/// Where a kernel comes from. Its object does not say: the same kernel of
/// another model comes from another place.
struct KernelPlace {
  std::string file; ///< without folders; empty: from nowhere
  unsigned line = 0, column = 0;

  /// The place that most of the ops in `code` name.
  static KernelPlace find(mlir::ModuleOp code);
};

/// The functions of a kernel's object.
struct KernelLines {
  KernelPlace place;
  std::string symbol; ///< of the kernel, in the whole object
  int64_t begin = 0;  ///< of its functions, in bytes from the symbol
  uint64_t size = 0;  ///< of all of them, in bytes

  /// \p name: the kernel's in its object.
  static llvm::Expected<KernelLines> find(const ProductBytes &object,
                                          llvm::StringRef name);
};

/// One unit of debug info (DWARF 4) that says of each kernel which line it is
/// of, as an assembler's text.
std::string printKernelLines(llvm::ArrayRef<KernelLines> kernels);

} // namespace attune

#endif // ATTUNE_LIB_TARGET_CPU_KERNELLINES_H
