//===- AttuneBytecode.h - The dialect's version in bytecode -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_BYTECODE_H
#define ATTUNE_BYTECODE_H

namespace attune {
class AttuneDialect;

/// Writes the dialect's version into bytecode and reads it back.
void addBytecode(AttuneDialect &dialect);

} // namespace attune

#endif // ATTUNE_BYTECODE_H
