//===- LetterWriter.h - Speech to letters, frame by frame -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_LETTERWRITER_H
#define ATTUNE_LIB_RUNTIME_SOUND_LETTERWRITER_H

#include "attune/Runtime/Cli.h"

namespace attune::runtime {

/// A sound as letters.
struct Spelled {
  double seconds = 0, heard = 0; ///< of the sound; until it could be read
  std::vector<int64_t> ids;      ///< of letters, without blanks
  std::string text;
};

/// Whether a model gives the logits of letters for each frame of a waveform
/// (CTC), as wav2vec 2.0 does.
bool writesLetters(const ModelInfo &info);

/// Writes down what a file says by the likeliest letter of each frame: equal
/// neighbours are one letter, and blanks are none.
bool spellSound(CompiledModel &model, const GenerateOptions &options,
                Spelled &spelled, Error &error);

/// Gives samples a mean of 0 and, but for silence, a variance of 1, as
/// transformers' feature extractor does.
void normaliseSamples(std::vector<float> &samples);

/// The ids of `frames` rows of `width` logits.
std::vector<int64_t> collapseFrames(const float *logits, int64_t frames,
                                    int64_t width, int64_t blank);
/// What they are written as, without spaces at either end.
std::string spell(const std::vector<int64_t> &ids,
                  const std::vector<std::string> &letters);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_LETTERWRITER_H
