//===- LetterWriter.cpp - Speech to letters, frame by frame ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LetterWriter.h"

#include "../Clock.h"
#include "Wave.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

bool writesLetters(const ModelInfo &info) {
  return !info.audio.letters.empty();
}

void normaliseSamples(std::vector<float> &samples) {
  if (samples.empty())
    return;
  auto count = double(samples.size());
  double mean = 0, square = 0;
  for (float sample : samples)
    mean += sample;
  mean /= count;
  for (float sample : samples)
    square += (sample - mean) * (sample - mean);
  double scale = 1 / std::sqrt(square / count + 1e-7);
  for (float &sample : samples)
    sample = static_cast<float>((sample - mean) * scale);
}

std::vector<int64_t> collapseFrames(const float *logits, int64_t frames,
                                    int64_t width, int64_t blank) {
  std::vector<int64_t> ids;
  int64_t before = -1;
  for (int64_t frame = 0; frame < frames; ++frame) {
    const float *row = logits + frame * width;
    int64_t id = std::max_element(row, row + width) - row;
    if (id != before && id != blank)
      ids.push_back(id);
    before = id;
  }
  return ids;
}

std::string spell(const std::vector<int64_t> &ids,
                  const std::vector<std::string> &letters) {
  std::string text;
  for (int64_t id : ids)
    if (id < int64_t(letters.size()))
      text += letters[size_t(id)];
  size_t first = text.find_first_not_of(' ');
  if (first == std::string::npos)
    return "";
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

/// These choose among tokens one after the other, which frames are not.
static bool checkOptions(const GenerateOptions &options, const ModelInfo &info,
                         Error &error) {
  for (const std::string &name : options.given) {
    static const char *const fits[] = {"audio", "format", "stats", "adapter",
                                       "greedy"};
    if (std::none_of(std::begin(fits), std::end(fits),
                     [&](const char *known) { return name == known; }))
      return error.badInput("--" + name + ": model '" + info.name +
                            "' gives each frame its likeliest letter, and has "
                            "no use for it");
  }
  return true;
}

/// The result with a row of logits for each frame, by its number among all.
static const ArgInfo *findLogits(const EntryInfo &entry, size_t letters,
                                 size_t &number) {
  size_t next = 0;
  for (const ArgInfo &arg : entry.args) {
    if (arg.kind != ArgKind::Output)
      continue;
    number = next++;
    if (arg.shape.size() == 3 && arg.dtype == DType::F32 &&
        arg.shape[2].symbol.empty() && arg.shape[2].size >= int64_t(letters))
      return &arg;
  }
  return nullptr;
}

bool spellSound(CompiledModel &model, const GenerateOptions &options,
                Spelled &spelled, Error &error) {
  const ModelInfo &info = model.info();
  const AudioInfo &audio = info.audio;
  const EntryInfo *entry = model.entry("forward");
  size_t number = 0;
  const ArgInfo *logits =
      entry ? findLogits(*entry, audio.letters.size(), number) : nullptr;
  if (!logits)
    return error.badInput("model '" + info.name +
                          "' has no result [batch, frames, letters]");
  if (!checkOptions(options, info, error))
    return false;
  Sound sound;
  double start = monotonicTime();
  if (!readWave(options.audio, sound, error))
    return false;
  spelled.seconds = double(sound.samples.size()) / double(sound.rate);
  resample(sound, audio.rate);
  if (audio.normalise)
    normaliseSamples(sound.samples);
  spelled.heard = monotonicTime() - start;
  Invocation invocation(model, *entry);
  InputTensor input;
  input.name = audio.input;
  input.dtype = DType::F32;
  input.shape = {1, int64_t(sound.samples.size())};
  input.data = sound.samples.data();
  if (!invocation.bindInput(input, error) ||
      !invocation.resolve(/*past=*/0, "", error))
    return false;
  std::vector<Buffer> buffers;
  if (!invocation.bindOutputs(buffers, error))
    return false;
  const std::vector<int64_t> shape = invocation.outputs()[number].shape;
  if (!invocation.run(error))
    return false;
  spelled.ids =
      collapseFrames(reinterpret_cast<const float *>(buffers[number].data()),
                     shape[1], shape[2], audio.blank);
  spelled.text = spell(spelled.ids, audio.letters);
  return true;
}

} // namespace attune::runtime
