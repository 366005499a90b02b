//===- StopText.cpp - Ending a text where it says something ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StopText.h"

#include <algorithm>

namespace attune::runtime {

std::string StopText::push(std::string_view piece) {
  if (stopped)
    return "";
  held += piece;
  size_t stop = std::string::npos;
  for (const std::string &text : stops)
    stop = std::min(stop, held.find(text));
  if (stop != std::string::npos) {
    stopped = true;
    std::string shown = held.substr(0, stop);
    held.clear();
    return shown;
  }
  // The longest end that begins a stop text stays.
  size_t keep = 0;
  for (const std::string &text : stops)
    for (size_t n = std::min(text.size() - 1, held.size()); n > keep; --n)
      if (held.compare(held.size() - n, n, text, 0, n) == 0)
        keep = n;
  std::string shown = held.substr(0, held.size() - keep);
  held.erase(0, held.size() - keep);
  return shown;
}

std::string StopText::finish() {
  std::string rest = std::move(held);
  held.clear();
  return rest;
}

} // namespace attune::runtime
