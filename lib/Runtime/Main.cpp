//===- Main.cpp - Entry of a compiled executable --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/attune.h"

int main(int argc, char **argv) {
  return attune_cli_main(&attune_model, argc, argv);
}
