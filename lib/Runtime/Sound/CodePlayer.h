//===- CodePlayer.h - Codes to a sound --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_CODEPLAYER_H
#define ATTUNE_LIB_RUNTIME_SOUND_CODEPLAYER_H

#include "Wave.h"
#include "attune/Runtime/CompiledModel.h"

#include <vector>

namespace attune::runtime {

/// Codes of a sound: for each codebook its codes in order, equally many.
using SoundCodes = std::vector<std::vector<int64_t>>;

/// Makes samples of codes that the model wrote. With several channels, codebook
/// k is one of channel k % channels.
bool playCodes(CompiledModel &model, const SoundCodes &codes, Sound &sound,
               Error &error);

/// Makes samples of the codes in a safetensors file, its tensor `audio_codes`:
/// [codebooks, frames] or [1, codebooks, frames], or as EnCodec's class has
/// them [pieces, 1, codebooks, frames]. Then `audio_scales` has a loudness for
/// each piece if the model wants one, and `last_frame_pad_length` says how many
/// frames at the end of the last piece are none. Where pieces overlap, each
/// sample is the mean of them, weighted by how far it is from the ends of each
/// (Defossez et al. 2022).
bool playFile(CompiledModel &model, const std::string &path, Sound &sound,
              Error &error);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_CODEPLAYER_H
