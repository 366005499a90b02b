//===- GgufWords.h - How texts are cut into words ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_GGUF_GGUFWORDS_H
#define ATTUNE_LIB_IMPORT_GGUF_GGUFWORDS_H

#include <string>
#include <string_view>

namespace attune::gguf {

/// How byte-level BPE of a name cuts texts.
struct Words {
  static constexpr int kMostCuts = 6;
  const char *name;
  const char *cuts[kMostCuts]; ///< patterns in turn; null: no more
  bool ignoreMerges = false;   ///< a word that is a token is that token
  bool addsBegin = false;      ///< where no key says whether
};

/// By "tokenizer.ggml.pre"; null: that name is not known.
const Words *findWords(std::string_view name);
/// All names, for messages.
std::string knownWords();

} // namespace attune::gguf

#endif // ATTUNE_LIB_IMPORT_GGUF_GGUFWORDS_H
