//===- Standalone.h - Stand-ins for libstdc++ -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_STANDALONE_H
#define ATTUNE_LIB_RUNTIME_STANDALONE_H

namespace attune::runtime {

/// Called when memory cannot be had; it must not return. Null: the program
/// aborts, which is all that can be done inside of a program of somebody else.
extern void (*outOfMemory)();

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_STANDALONE_H
