//===- StopText.h - Ending a text where it says something -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_STOPTEXT_H
#define ATTUNE_LIB_RUNTIME_GENERATION_STOPTEXT_H

#include <string>
#include <string_view>
#include <vector>

namespace attune::runtime {

/// Passes a text on piece by piece up to the first of the stop texts. A
/// possible beginning of one is held back until it is clear.
class StopText {
public:
  explicit StopText(std::vector<std::string> stops) : stops(std::move(stops)) {}

  /// Takes the next piece; what can be shown now. After a stop text there is
  /// nothing more.
  std::string push(std::string_view piece);
  /// The text that is held back when the end comes without a stop text.
  std::string finish();
  bool isStopped() const { return stopped; }

private:
  std::vector<std::string> stops;
  std::string held;
  bool stopped = false;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_STOPTEXT_H
