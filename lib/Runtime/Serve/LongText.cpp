//===- LongText.cpp - Texts far beyond what a model reads -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LongText.h"

namespace attune::runtime {

std::string_view findBeginning(const Tokenizer &tokenizer,
                               std::string_view text, size_t most,
                               std::atomic<int64_t> &cutBytes) {
  std::vector<int64_t> ids;
  for (size_t length = most * 16 + 4096; length < text.size(); length *= 4) {
    size_t end = length;
    while (end > 0 && (text[end] & 0xC0) == 0x80)
      --end; // within a character
    std::string_view beginning = text.substr(0, end);
    cutBytes.fetch_add(static_cast<int64_t>(end));
    ids.clear();
    Error ignored;
    if (!tokenizer.encode(beginning, ids, ignored, /*addSpecial=*/false))
      return text;
    // The end of a beginning changes the tokens there, but not a sixteenth of
    // all.
    if (ids.size() > most + most / 16 + 64)
      return beginning;
  }
  return text;
}

} // namespace attune::runtime
