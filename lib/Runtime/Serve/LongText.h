//===- LongText.h - Texts far beyond what a model reads ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_LONGTEXT_H
#define ATTUNE_LIB_RUNTIME_SERVE_LONGTEXT_H

#include "attune/Runtime/Tokenizer.h"

#include <atomic>
#include <string_view>

namespace attune::runtime {

/// A beginning of a text that has certainly more than `most` tokens, the same
/// first ones as the text; the whole text if it may have no more. To cut a text
/// into tokens takes long, while other requests wait. `cutBytes` counts what
/// was cut. A text that cannot be cut comes back whole.
std::string_view findBeginning(const Tokenizer &tokenizer,
                               std::string_view text, size_t most,
                               std::atomic<int64_t> &cutBytes);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_LONGTEXT_H
