//===- HoverDocs.h - Documentation of operations in hovers ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// MLIR's server answers a hover over an operation with its name and its generic
// form; it does not know what an operation means, for the library carries no
// documentation. This puts that in, on the answer's way to the editor.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TOOLS_ATTUNE_LSP_SERVER_HOVERDOCS_H
#define ATTUNE_TOOLS_ATTUNE_LSP_SERVER_HOVERDOCS_H

#include "llvm/ADT/StringRef.h"

#include <string>
#include <thread>

namespace attune {

/// The section of the reference page on an operation, down to its tables of
/// operands; empty if there is none.
llvm::StringRef findOperationDocs(llvm::StringRef operation);

/// A message of the server, with documentation if it answers a hover over an
/// operation of the dialect.
std::string addHoverDocs(llvm::StringRef message);

/// Takes what is written to the standard output from now on, and writes it
/// there with documentation, until finish().
class HoverDocs {
public:
  /// False: pipes are not to be had, and the output stays as it is.
  bool start();
  /// Writes what is left.
  void finish();

private:
  void copy();

  int input = -1, output = -1;
  std::thread reader;
};

} // namespace attune

#endif // ATTUNE_TOOLS_ATTUNE_LSP_SERVER_HOVERDOCS_H
