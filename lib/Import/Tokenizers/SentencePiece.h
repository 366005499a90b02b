//===- SentencePiece.h - Models of SentencePiece ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_TOKENIZERS_SENTENCEPIECE_H
#define ATTUNE_LIB_IMPORT_TOKENIZERS_SENTENCEPIECE_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune {

enum PieceType { Normal = 1, Unknown, Control, UserDefined, Unused, Byte };

struct Piece {
  std::string text; ///< sound UTF-8
  float score = 0;  ///< finite
  uint64_t type = Normal;
};

/// The contents of a tokenizer model, whichever kind of file it is read from.
struct PieceModel {
  std::vector<Piece> pieces;
  uint64_t type = 1; ///< 1: Unigram, 2: BPE
  bool byteFallback = false;
  uint64_t unknown = 0;
  std::string charsmap;
  bool dummyPrefix = true, removesSpace = true;
};

/// The tokenizer.json of a model.
bool convertPieces(const PieceModel &model, std::string &json,
                   runtime::Error &error);

/// Turns a serialized ModelProto into the text of a tokenizer.json. The error
/// says what is wrong at which byte.
bool convertSentencePiece(const std::string &bytes, std::string &json,
                          runtime::Error &error);

} // namespace attune

#endif // ATTUNE_LIB_IMPORT_TOKENIZERS_SENTENCEPIECE_H
