//===- BugReport.h - Bug report after a crash -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SUPPORT_BUGREPORT_H
#define ATTUNE_SUPPORT_BUGREPORT_H

#include "attune/Support/Version.h"

#include "llvm/Support/ErrorHandling.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/Signals.h"

#include <new>
#include <unistd.h>

namespace attune {

/// Message and exit of a program that gets no more memory: no bug, but a limit
/// (exit code 4). Temporary files are removed; nothing here may ask for memory.
[[noreturn]] inline void exitOutOfMemory() {
  static constexpr char message[] =
      "error: out of memory: the input needs more than this process may have\n";
  [[maybe_unused]] ssize_t written = write(2, message, sizeof message - 1);
  llvm::sys::RunInterruptHandlers();
  _exit(4);
}

/// Makes LLVM's crash handler ask for what a fix needs, and ends a program that
/// runs out of memory without it. Every main of Attune calls it after InitLLVM,
/// which has handlers of its own; it is header-only so that rooms without LLVM
/// stay without.
inline void installBugReport() {
  std::set_new_handler(exitOutOfMemory);
  llvm::remove_bad_alloc_error_handler();
  llvm::install_bad_alloc_error_handler(
      [](void *, const char *, bool) { exitOutOfMemory(); });
  llvm::setBugReportMsg(
      "This is a bug in Attune " ATTUNE_VERSION_STRING
      " (LLVM " ATTUNE_LLVM_VERSION_STRING "). Please report it with the "
      "command line, the input\nand the stack below; "
      "`attune-opt --mlir-pass-pipeline-crash-reproducer=FILE` writes the IR "
      "before the\npass that crashed.\n");
}

} // namespace attune

#endif // ATTUNE_SUPPORT_BUGREPORT_H
