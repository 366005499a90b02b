//===- CodeReader.h - A sound to codes --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_CODEREADER_H
#define ATTUNE_LIB_RUNTIME_SOUND_CODEREADER_H

#include "CodePlayer.h"

namespace attune::runtime {

/// Makes codes of the sound in a WAV file, at the model's rate. Where the model
/// writes codes of several channels these are encoded one by one, and their
/// codebooks take turns, as in what it writes.
bool readSoundCodes(CompiledModel &model, const std::string &path,
                    SoundCodes &codes, Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_CODEREADER_H
