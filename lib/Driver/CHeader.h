//===- CHeader.h - The header of a compiled library -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_CHEADER_H
#define ATTUNE_LIB_DRIVER_CHEADER_H

#include "mlir/IR/BuiltinOps.h"

#include <string>

namespace attune::driver {

/// A C header that needs no other: what the entries of a described module take
/// and give, and the interface of attune/Runtime/attune.h.
std::string makeHeader(mlir::ModuleOp module);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_CHEADER_H
