//===- Main.cpp - Entry of a compiled executable --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Standalone.h"

#include "attune/Runtime/Error.h"
#include "attune/Runtime/TemporaryFiles.h"
#include "attune/Runtime/attune.h"

#include <unistd.h>

static void exitOutOfMemory() {
  static const char message[] = "error: out of memory\n";
  [[maybe_unused]] ssize_t written = write(2, message, sizeof message - 1);
  _exit(attune::runtime::ExitResourceLimit);
}

int main(int argc, char **argv) {
  attune::runtime::outOfMemory = exitOutOfMemory;
  attune::runtime::removeTemporariesOnSignals();
  return attune_cli_main(&attune_model, argc, argv);
}
