//===- SentencePiece.h - Models of SentencePiece ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_SENTENCEPIECE_H
#define ATTUNE_LIB_IMPORT_SENTENCEPIECE_H

#include <string>

namespace attune {

/// Turns a serialized ModelProto into the text of a tokenizer.json. On failure
/// `problem` says what is wrong at which byte.
bool convertSentencePiece(const std::string &bytes, std::string &json,
                          std::string &problem);

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_SENTENCEPIECE_H
