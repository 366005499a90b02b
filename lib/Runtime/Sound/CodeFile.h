//===- CodeFile.h - Codes of a sound in a file ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_CODEFILE_H
#define ATTUNE_LIB_RUNTIME_SOUND_CODEFILE_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune::runtime {

/// Codes of a sound in one piece or several, as EnCodec's class has them
/// (Defossez et al. 2022).
struct PieceCodes {
  int64_t pieces = 0, books = 0, frames = 0;
  int64_t missing = 0;        ///< frames at the end of the last piece
  std::vector<int64_t> codes; ///< [pieces, books, frames]
  std::vector<float> scales;  ///< the loudness of each piece; or none

  /// Codes of a codebook of a piece.
  const int64_t *row(int64_t piece, int64_t book) const {
    return codes.data() + (piece * books + book) * frames;
  }
};

/// Reads the tensor `audio_codes` of a safetensors file: [codebooks, frames],
/// [1, codebooks, frames] or [pieces, 1, codebooks, frames]; `audio_scales`
/// with a number for each piece, and `last_frame_pad_length`, how many frames
/// at the end of the last piece are none, if they are there.
bool loadCodes(const std::string &path, PieceCodes &codes, Error &error);

/// Writes such a file, whole or not at all. The codes of one piece that has no
/// loudness are [1, codebooks, frames].
bool saveCodes(const std::string &path, const PieceCodes &codes, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_CODEFILE_H
