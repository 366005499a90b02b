//===- CodeWriter.h - A text to codes to a sound ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_CODEWRITER_H
#define ATTUNE_LIB_RUNTIME_SOUND_CODEWRITER_H

#include "CodePlayer.h"
#include "attune/Runtime/Cli.h"

namespace attune::runtime {

/// Writes codes for the text of these ids, or of what `options.inputs` holds
/// (MusicGen, Copet et al. 2023). A step takes a column of codes, one of each
/// codebook, and gives the scores of the next one. Frame f of codebook k stands
/// in column f + k + 1; elsewhere stands the id for no code. So S steps give S
/// + 1 - K frames of K codebooks, of each channel if there are several: their
/// codebooks take turns. With a guidance g above 1 each step has a second row,
/// without the text: scores are those of it plus g times what the text changes.
/// Codebooks of one column are chosen in their order. A sound goes on behind
/// the codes `begun`, if there are any: P frames of them are the first P + 1
/// columns, and S steps give S + P + 1 - K frames.
bool writeCodes(CompiledModel &model, const std::vector<int64_t> &text,
                const SoundCodes &begun, const GenerateOptions &options,
                SoundCodes &codes, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_CODEWRITER_H
