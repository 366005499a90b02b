//===- BugReport.h - What a crash asks its reader to send -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_BUGREPORT_H
#define ATTUNE_SUPPORT_BUGREPORT_H

#include "attune/Support/Version.h"

#include "llvm/Support/PrettyStackTrace.h"

namespace attune {

/// Makes LLVM's crash handler ask for what a fix needs. Every main of Attune
/// calls it first; it is header-only so that rooms without LLVM stay without.
inline void installBugReport() {
  llvm::setBugReportMsg(
      "This is a bug in Attune " ATTUNE_VERSION_STRING
      " (LLVM " ATTUNE_LLVM_VERSION_STRING "). Please report it with the "
      "command line, the input\nand the stack below; "
      "`attune-opt --mlir-pass-pipeline-crash-reproducer=FILE` writes the IR "
      "before the\npass that crashed.\n");
}

} // namespace attune

#endif // ATTUNE_SUPPORT_BUGREPORT_H
