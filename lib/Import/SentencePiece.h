//===- SentencePiece.h - Models of SentencePiece ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_SENTENCEPIECE_H
#define ATTUNE_LIB_IMPORT_SENTENCEPIECE_H

#include "attune/Runtime/Error.h"

#include <string>

namespace attune {

/// Turns a serialized ModelProto into the text of a tokenizer.json. The error
/// says what is wrong at which byte.
bool convertSentencePiece(const std::string &bytes, std::string &json,
                          runtime::Error &error);

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_SENTENCEPIECE_H
