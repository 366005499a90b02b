//===- ReasoningPrinter.h - What a model thinks, for people -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_REASONINGPRINTER_H
#define ATTUNE_LIB_RUNTIME_CHAT_REASONINGPRINTER_H

#include "attune/Runtime/Messages.h"

#include <string>

namespace attune::runtime {

/// Shows reasoning beside the answer, where notes go: in faint letters on a
/// terminal, and as one note where these are JSON. So a file that takes the
/// answers has nothing else.
class ReasoningPrinter {
public:
  explicit ReasoningPrinter(const Messages &messages) : messages(messages) {}

  void print(const std::string &piece);
  /// Before the answer begins, and at its end.
  void end();

private:
  const Messages &messages;
  std::string held; ///< of a note
  bool isOpen = false;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_REASONINGPRINTER_H
