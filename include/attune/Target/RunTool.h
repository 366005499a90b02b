//===- RunTool.h - Linkers and assemblers -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_RUNTOOL_H
#define ATTUNE_TARGET_RUNTOOL_H

#include "attune/Target/TemporaryFolder.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"

#include <string>

namespace attune {

/// Runs \p program with \p arguments (the first is its name), sets \p messages
/// to what it prints, and returns its exit code; negative if it could not be
/// run or crashed. Its temporary files lie in \p folder, too. A signal that
/// ends this process ends the program before the folder is removed.
int runTool(llvm::StringRef program, llvm::ArrayRef<llvm::StringRef> arguments,
            const TemporaryFolder &folder, std::string &messages);

} // namespace attune

#endif // ATTUNE_TARGET_RUNTOOL_H
