//===- ReasoningPrinter.cpp - What a model thinks, for people -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ReasoningPrinter.h"

namespace attune::runtime {

void ReasoningPrinter::print(const std::string &piece) {
  if (piece.empty())
    return;
  FILE *file = messages.textFile();
  if (!file)
    held += piece;
  else
    std::fprintf(file, "%s%s", !isOpen && messages.terminal() ? "\033[2m" : "",
                 piece.c_str());
  if (file)
    std::fflush(file);
  isOpen = true;
}

void ReasoningPrinter::end() {
  if (!isOpen)
    return;
  isOpen = false;
  FILE *file = messages.textFile();
  if (!file) {
    messages.note(held);
    held.clear();
    return;
  }
  std::fputs(messages.terminal() ? "\033[0m\n\n" : "\n", file);
  std::fflush(file);
}

} // namespace attune::runtime
