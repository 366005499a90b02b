//===- CodeReader.h - A sound to codes --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_CODEREADER_H
#define ATTUNE_LIB_RUNTIME_SOUND_CODEREADER_H

#include "CodeFile.h"
#include "CodePlayer.h"

namespace attune::runtime {

/// Makes codes of the sound in a WAV file, at the model's rate. Where the model
/// writes codes of several channels these are encoded one by one, and their
/// codebooks take turns, as in what it writes.
bool readSoundCodes(CompiledModel &model, const std::string &path,
                    SoundCodes &codes, Error &error);

/// The same for a model that plays codes (EnCodec, Defossez et al. 2022). Where
/// its sounds are in pieces, one begins with every step and has the samples
/// that are left, at most a whole piece; if pieces have a loudness, it is the
/// root of the mean square of the channels' mean, and 1e-8 more, by which
/// samples are divided. A piece of fewer frames than the first is the last one:
/// it reaches the end of the sound.
bool readPieceCodes(CompiledModel &model, const std::string &path,
                    PieceCodes &codes, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_CODEREADER_H
