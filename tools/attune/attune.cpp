//===- attune.cpp - The compiler's command line ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Driver/Driver.h"
#include "attune/Runtime/TemporaryFiles.h"
#include "attune/Support/BugReport.h"

#include "llvm/Support/InitLLVM.h"

int main(int argc, char **argv) {
  // Before LLVM takes the same signals: it hands them on when it has removed
  // what it knows of.
  attune::runtime::removeTemporariesOnSignals();
  llvm::InitLLVM init(argc, argv);
  attune::installBugReport();
  return attune::runDriver(argc, argv);
}
