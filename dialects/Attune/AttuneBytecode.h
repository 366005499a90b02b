//===- AttuneBytecode.h - The dialect's version in bytecode -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_BYTECODE_H
#define ATTUNE_BYTECODE_H

#include "mlir/Bytecode/BytecodeImplementation.h"

namespace attune {
class AttuneDialect;

/// Writes the dialect's version into bytecode and reads it back.
void addBytecode(AttuneDialect &dialect);

/// The version of the dialect that wrote the module.
uint64_t versionOf(mlir::DialectBytecodeReader &reader);

/// Reads an optional attribute that an op has since `version`: none of a module
/// that is older.
template <typename Attr>
llvm::LogicalResult readSince(uint64_t version,
                              mlir::DialectBytecodeReader &reader, Attr &attr) {
  if (versionOf(reader) < version)
    return llvm::success();
  return reader.readOptionalAttribute(attr);
}

/// The same of how many operands each of an op's parts has, which older modules
/// leave to `upgradeFromVersion`.
inline llvm::LogicalResult readSince(uint64_t version,
                                     mlir::DialectBytecodeReader &reader,
                                     llvm::MutableArrayRef<int32_t> sizes) {
  if (versionOf(reader) < version)
    return llvm::success();
  return reader.readSparseArray(sizes);
}

} // namespace attune

#endif // ATTUNE_BYTECODE_H
