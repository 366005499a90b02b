//===- AttuneDialect.h - The attune dialect and its ops ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_DIALECT_H
#define ATTUNE_DIALECT_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Interfaces/ViewLikeInterface.h"

#include "Attune/AttuneDialect.h.inc"
#include "Attune/AttuneEnums.h.inc"
#define GET_ATTRDEF_CLASSES
#include "Attune/AttuneAttrs.h.inc"
#define GET_OP_CLASSES
#include "Attune/AttuneOps.h.inc"

namespace attune {

/// The number of gates of a cell, each as wide as the state.
int64_t numGates(CellKind kind);

} // namespace attune

#endif // ATTUNE_DIALECT_H
