//===- RunTool.h - Linkers and assemblers -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_RUNTOOL_H
#define ATTUNE_TARGET_RUNTOOL_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

namespace attune {

/// Runs \p program with \p arguments (the first is its name), writes what it
/// prints to the file \p messages, and returns its exit code; negative if it
/// could not be run or crashed. A signal that ends this process ends the
/// program, too, before temporary files are removed.
int runTool(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
            llvm::StringRef messages);

} // namespace attune

#endif // ATTUNE_TARGET_RUNTOOL_H
