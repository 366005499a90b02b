//===- CodeReader.cpp - A sound to codes ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodeReader.h"

#include <algorithm>
#include <cmath>

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

namespace {
/// Samples [count, channels] of a sound, or of each of its channels alone.
struct Heard {
  const ArgInfo *input = nullptr;
  int64_t rows = 0, count = 0, channels = 0;
  std::vector<float> samples; ///< [rows, count, channels]
};
} // namespace

static bool hear(CompiledModel &model, const std::string &path, int64_t rows,
                 Heard &heard, Error &error) {
  heard.input = findSamples(model, error);
  if (!heard.input)
    return false;
  heard.rows = rows;
  heard.channels = heard.input->shape[2].size;
  int64_t all = rows * heard.channels;
  Sound sound;
  if (!readChannels(path, all, model.info().audio.rate, sound, error))
    return false;
  heard.count = int64_t(sound.samples.size()) / all;
  heard.samples.resize(sound.samples.size());
  for (int64_t k = 0; k < all; ++k) {
    int64_t row = k / heard.channels, channel = k % heard.channels;
    for (int64_t i = 0; i < heard.count; ++i)
      heard
          .samples[size_t((row * heard.count + i) * heard.channels + channel)] =
          sound.samples[size_t(k * heard.count + i)];
  }
  return true;
}

/// Adds the codes of `rows` pieces, samples [rows, count, channels]. All have
/// as many codebooks, and places for as many frames as the first ones.
static bool encode(CompiledModel &model, const ArgInfo &samples,
                   const float *data, int64_t rows, int64_t count,
                   PieceCodes &codes, Error &error) {
  Invocation invocation(model, *model.entry("encode_sound"));
  InputTensor input;
  input.name = samples.name;
  input.dtype = DType::F32;
  input.shape = {rows, count, samples.shape[2].size};
  input.data = data;
  std::vector<Buffer> buffers;
  if (!invocation.bindInput(input, error) ||
      !invocation.resolve(/*past=*/0, "", error) ||
      !invocation.bindOutputs(buffers, error) || !invocation.run(error))
    return false;
  const std::vector<int64_t> shape = invocation.outputs()[0].shape;
  const auto *made = reinterpret_cast<const int64_t *>(buffers[0].data());
  int64_t frames = shape[2];
  if (codes.pieces == 0) {
    codes.books = shape[1];
    codes.frames = frames;
  }
  codes.pieces += rows;
  codes.missing = codes.frames - frames;
  for (int64_t row = 0; row < rows * codes.books; ++row) {
    codes.codes.insert(codes.codes.end(), made + row * frames,
                       made + (row + 1) * frames);
    codes.codes.insert(codes.codes.end(), size_t(codes.missing), 0);
  }
  return true;
}

/// Divides a piece by its loudness.
static float normalise(float *samples, int64_t count, int64_t channels) {
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    double mean = 0;
    for (int64_t channel = 0; channel < channels; ++channel)
      mean += double(samples[i * channels + channel]);
    mean /= double(channels);
    sum += mean * mean;
  }
  auto scale = float(std::sqrt(sum / double(count)) + 1e-8);
  for (int64_t i = 0; i < count * channels; ++i)
    samples[i] /= scale;
  return scale;
}

static bool encodePieces(CompiledModel &model, const Heard &heard,
                         PieceCodes &codes, Error &error) {
  const PlaybackInfo &info = model.info().playback;
  int64_t piece = info.piece > 0 ? info.piece : heard.count;
  int64_t step = info.piece > 0 ? info.step : heard.count;
  constexpr int64_t most = 8;
  std::vector<float> samples;
  for (int64_t first = 0; first < heard.count && codes.missing == 0;) {
    // Whole ones, or one that is shorter.
    int64_t count = std::min(piece, heard.count - first), rows = 0;
    samples.clear();
    do {
      const float *from = heard.samples.data() + first * heard.channels;
      samples.insert(samples.end(), from, from + count * heard.channels);
      if (info.scaled)
        codes.scales.push_back(
            normalise(samples.data() + rows * count * heard.channels, count,
                      heard.channels));
      first += step;
    } while (++rows < most && count == piece && first + piece <= heard.count);
    if (!encode(model, *heard.input, samples.data(), rows, count, codes, error))
      return false;
  }
  return true;
}

bool readPieceCodes(CompiledModel &model, const std::string &path,
                    PieceCodes &codes, Error &error) {
  Heard heard;
  if (!hear(model, path, /*rows=*/1, heard, error))
    return false;
  codes = {};
  if (encodePieces(model, heard, codes, error))
    return true;
  error.message = path + ": " + error.message;
  return false;
}

bool readSoundCodes(CompiledModel &model, const std::string &path,
                    SoundCodes &codes, Error &error) {
  Heard heard;
  PieceCodes made;
  if (!hear(model, path, /*rows=*/model.info().codes.channels, heard, error))
    return false;
  if (!encode(model, *heard.input, heard.samples.data(), heard.rows,
              heard.count, made, error)) {
    error.message = path + ": " + error.message;
    return false;
  }
  codes.clear();
  for (int64_t book = 0; book < made.books; ++book)
    for (int64_t row = 0; row < heard.rows; ++row)
      codes.emplace_back(made.row(row, book),
                         made.row(row, book) + made.frames);
  return true;
}

} // namespace attune::runtime
