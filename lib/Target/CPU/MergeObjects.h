//===- MergeObjects.h - Several objects as one ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_CPU_MERGEOBJECTS_H
#define ATTUNE_LIB_TARGET_CPU_MERGEOBJECTS_H

#include "attune/Target/Backend.h"

#include "llvm/ADT/StringMap.h"

namespace attune {

/// Whether objects for this machine can be merged.
bool canMergeObjects(llvm::StringRef triple);

/// An object, and what symbols that others see are called in the result if it
/// is something else.
struct MergeInput {
  ProductBytes object;
  llvm::StringMap<std::string> names;
};

/// One relocatable object with the content of all, as `ld -r` makes it: no
/// product that is an object needs a linker. The objects are little-endian
/// 64-bit ELF, as LLVM writes it. Definitions that one of them hides become
/// local: their names mean nothing to the program that the result is linked
/// into. The same objects in the same order give the same bytes.
llvm::Expected<ProductBytes> mergeObjects(llvm::ArrayRef<MergeInput> inputs);

} // namespace attune

#endif // ATTUNE_LIB_TARGET_CPU_MERGEOBJECTS_H
