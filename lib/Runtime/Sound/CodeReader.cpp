//===- CodeReader.cpp - A sound to codes ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeReader.h"

#include <algorithm>

namespace attune::runtime {

/// The input of samples [rows, samples, channels]; null, after an error, if
/// there is none.
static const ArgInfo *findSamples(CompiledModel &model, Error &error) {
  const EntryInfo *entry = model.entry("encode_sound");
  if (entry)
    for (const ArgInfo &arg : entry->args)
      if (arg.kind == ArgKind::Input && arg.name == model.info().audio.input &&
          arg.shape.size() == 3 && arg.shape[2].size > 0)
        return &arg;
  error.badInput("--audio: model '" + model.info().name +
                 "' has no part that makes codes of a sound");
  return nullptr;
}

/// At the model's rate, channel by channel: [channels, samples].
static bool readChannels(const std::string &path, int64_t channels,
                         int64_t rate, Sound &sound, Error &error) {
  if (!readWave(path, sound, error, channels))
    return false;
  std::vector<float> all;
  for (int64_t channel = 0; channel < channels; ++channel) {
    Sound one;
    one.rate = sound.rate;
    for (size_t i = size_t(channel); i < sound.samples.size();
         i += size_t(channels))
      one.samples.push_back(sound.samples[i]);
    resample(one, rate);
    all.insert(all.end(), one.samples.begin(), one.samples.end());
  }
  sound.samples = std::move(all);
  sound.rate = rate;
  return true;
}

bool readSoundCodes(CompiledModel &model, const std::string &path,
                    SoundCodes &codes, Error &error) {
  const ArgInfo *samples = findSamples(model, error);
  if (!samples)
    return false;
  const ModelInfo &info = model.info();
  // What the model writes has a row for each channel.
  int64_t rows = info.codes.books() > 0 ? info.codes.channels : 1;
  int64_t channels = samples->shape[2].size;
  Sound sound;
  if (!readChannels(path, rows * channels, info.audio.rate, sound, error))
    return false;
  int64_t count = int64_t(sound.samples.size()) / (rows * channels);
  std::vector<float> placed(sound.samples.size());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t i = 0; i < count; ++i)
      for (int64_t channel = 0; channel < channels; ++channel)
        placed[size_t((row * count + i) * channels + channel)] =
            sound.samples[size_t((row * channels + channel) * count + i)];

  Invocation invocation(model, *model.entry("encode_sound"));
  InputTensor input;
  input.name = samples->name;
  input.dtype = DType::F32;
  input.shape = {rows, count, channels};
  input.data = placed.data();
  std::vector<Buffer> buffers;
  if (!invocation.bindInput(input, error) ||
      !invocation.resolve(/*past=*/0, "", error) ||
      !invocation.bindOutputs(buffers, error) || !invocation.run(error)) {
    error.message = path + ": " + error.message;
    return false;
  }
  const std::vector<int64_t> shape = invocation.outputs()[0].shape;
  const auto *made = reinterpret_cast<const int64_t *>(buffers[0].data());
  int64_t frames = shape[2];
  codes.clear();
  for (int64_t book = 0; book < shape[1]; ++book)
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t *own = made + (row * shape[1] + book) * frames;
      codes.emplace_back(own, own + frames);
    }
  return true;
}

} // namespace attune::runtime
