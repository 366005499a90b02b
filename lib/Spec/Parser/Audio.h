//===- Audio.h - How a model hears ------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_SPEC_PARSER_AUDIO_H
#define ATTUNE_LIB_SPEC_PARSER_AUDIO_H

#include "Reader.h"

#include "attune/Spec/Spec.h"

#include <functional>

namespace attune::spec {

/// Reads the object "audio". `token` gives the id that a value stands for, if
/// the vocabulary has it; the model's result has `width` channels.
Audio parseAudio(const Object &object, const std::vector<TensorSpec> &inputs,
                 int64_t width,
                 const std::function<Known(const Value &value,
                                           const std::string &pointer)> &token);

/// Reads the objects "codes" and "playback" of a model whose streams are known.
Codes parseCodes(const Object &object, const Model &model);
Playback parsePlayback(const Object &object, const Model &model);
/// Checks what "audio" needs to say of samples that codes are made of.
void checkCoded(const Object &object, const Model &model);

} // namespace attune::spec

#endif // ATTUNE_LIB_SPEC_PARSER_AUDIO_H
