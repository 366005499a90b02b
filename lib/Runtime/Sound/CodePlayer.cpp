//===- CodePlayer.cpp - Codes to a sound ----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CodePlayer.h"

#include "CodeFile.h"

#include <algorithm>
#include <cmath>

namespace attune::runtime {

namespace {
/// Samples [rows, samples, channels].
struct Samples {
  std::vector<Buffer> buffers;
  int64_t rows = 0, count = 0, channels = 0;

  const float *row(int64_t row) const {
    return reinterpret_cast<const float *>(buffers[0].data()) +
           row * count * channels;
  }
};

/// The pieces of a sound, some at a time.
class PiecePlayer {
public:
  PiecePlayer(CompiledModel &model, const PieceCodes &file)
      : model(model), info(model.info().playback), file(file) {}

  bool run(Sound &sound, Error &error);

private:
  bool check(Error &error);
  bool play(int64_t first, int64_t count, int64_t frames, Error &error);
  void add(const float *samples, int64_t count, int64_t piece);

  CompiledModel &model;
  const PlaybackInfo &info;
  const PieceCodes &file;
  int64_t length = 0;   ///< samples of a whole piece
  int64_t channels = 0; ///< of a sample
  std::vector<double> sums, weights;
};
} // namespace

/// Runs an entry on `inputs`, one [rows, frames] for each codebook.
static bool makeSamples(CompiledModel &model, const EntryInfo &entry,
                        const SoundCodes &inputs, int64_t rows,
                        Samples &samples, Error &error) {
  Invocation invocation(model, entry);
  size_t book = 0;
  for (const ArgInfo &arg : entry.args) {
    if (arg.kind != ArgKind::Input || book == inputs.size())
      continue;
    InputTensor input;
    input.name = arg.name;
    input.dtype = DType::I64;
    input.shape = {rows, static_cast<int64_t>(inputs[book].size()) / rows};
    input.data = inputs[book++].data();
    if (!invocation.bindInput(input, error))
      return false;
  }
  if (!invocation.resolve(/*past=*/0, "", error) ||
      !invocation.bindOutputs(samples.buffers, error) || !invocation.run(error))
    return false;
  const std::vector<int64_t> shape = invocation.outputs()[0].shape;
  samples.rows = shape[0];
  samples.count = shape[1];
  samples.channels = shape[2];
  return true;
}

bool playCodes(CompiledModel &model, const SoundCodes &codes, Sound &sound,
               Error &error) {
  const EntryInfo *entry = model.entry("sound");
  if (!entry)
    return error.badInput("model '" + model.info().name +
                          "' has no part that makes samples of codes");
  // Channels are rows: each input has one of its codebooks of every channel.
  auto channels = size_t(model.info().codes.channels);
  SoundCodes inputs(codes.size() / channels);
  for (size_t k = 0; k < codes.size(); ++k) {
    std::vector<int64_t> &input = inputs[k / channels];
    input.insert(input.end(), codes[k].begin(), codes[k].end());
  }
  Samples samples;
  if (!makeSamples(model, *entry, inputs, int64_t(channels), samples, error))
    return false;
  sound.rate = model.info().codes.rate;
  sound.channels = int64_t(channels);
  sound.samples.resize(size_t(samples.count) * channels);
  for (size_t channel = 0; channel < channels; ++channel) {
    const float *row = samples.row(int64_t(channel));
    for (size_t i = 0; i < size_t(samples.count); ++i)
      sound.samples[i * channels + channel] = row[i];
  }
  return true;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

bool PiecePlayer::check(Error &error) {
  auto books = static_cast<int64_t>(info.inputs.size());
  auto say = [](int64_t count, const char *what) {
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
  };
  if (file.books > books || (file.books < books && info.none < 0))
    return error.badInput("the codes are of " + say(file.books, "codebook") +
                          ", but the model has " + std::to_string(books));
  if (info.piece == 0 && file.pieces != 1)
    return error.badInput("the codes are " + say(file.pieces, "piece") +
                          ", but the model makes a sound of one");
  if (info.scaled != !file.scales.empty())
    return error.badInput(info.scaled ? "there is no tensor 'audio_scales', "
                                        "the loudness of each piece"
                                      : "'audio_scales': the model's pieces "
                                        "have no loudness");
  return true;
}

/// The weight of a sample grows from both ends of its piece to the middle.
void PiecePlayer::add(const float *samples, int64_t count, int64_t piece) {
  double scale = info.scaled ? double(file.scales[size_t(piece)]) : 1;
  int64_t start = piece * info.step;
  for (int64_t i = 0; i < count; ++i) {
    double place = double(i + 1) / double(length + 1);
    double weight = 0.5 - std::fabs(place - 0.5);
    weights[size_t(start + i)] += weight;
    for (int64_t channel = 0; channel < channels; ++channel)
      sums[size_t((start + i) * channels + channel)] +=
          weight * scale * double(samples[i * channels + channel]);
  }
}

bool PiecePlayer::play(int64_t first, int64_t count, int64_t frames,
                       Error &error) {
  SoundCodes inputs(info.inputs.size());
  for (size_t book = 0; book < inputs.size(); ++book)
    for (int64_t piece = first; piece < first + count; ++piece) {
      std::vector<int64_t> &input = inputs[book];
      if (int64_t(book) >= file.books) {
        input.insert(input.end(), size_t(frames), info.none);
        continue;
      }
      const int64_t *row = file.row(piece, int64_t(book));
      // A file's codes do not include the id for no code.
      for (int64_t i = 0; i < frames; ++i)
        if (row[i] < 0 || row[i] == info.none)
          return error.badInput("'audio_codes' has the code " +
                                std::to_string(row[i]) + ", which is none");
      input.insert(input.end(), row, row + frames);
    }
  Samples samples;
  const EntryInfo *entry = model.entry("forward");
  if (!entry)
    return error.badInput("model '" + model.info().name +
                          "' has no entry 'forward'");
  if (!makeSamples(model, *entry, inputs, count, samples, error))
    return false;
  if (first == 0) {
    length = samples.count;
    channels = samples.channels;
    if (file.pieces > 1 && length < info.step)
      return error.badInput("pieces of " + std::to_string(length) +
                            " samples leave gaps, as they begin " +
                            std::to_string(info.step) + " samples apart");
  }
  int64_t end = (first + count - 1) * info.step + samples.count;
  sums.resize(std::max(sums.size(), size_t(end * channels)));
  weights.resize(std::max(weights.size(), size_t(end)));
  for (int64_t row = 0; row < count; ++row)
    add(samples.row(row), samples.count, first + row);
  return true;
}

bool PiecePlayer::run(Sound &sound, Error &error) {
  if (!check(error))
    return false;
  // The last piece may be shorter, and norms count the frames of a piece.
  constexpr int64_t most = 8;
  int64_t whole = file.missing ? file.pieces - 1 : file.pieces;
  for (int64_t first = 0; first < whole; first += most)
    if (!play(first, std::min(most, whole - first), file.frames, error))
      return false;
  if (whole < file.pieces && !play(whole, 1, file.frames - file.missing, error))
    return false;
  sound.rate = info.rate;
  sound.channels = channels;
  sound.samples.resize(sums.size());
  for (size_t i = 0; i < sound.samples.size(); ++i)
    sound.samples[i] = float(sums[i] / weights[i / size_t(channels)]);
  return true;
}

bool playFile(CompiledModel &model, const std::string &path, Sound &sound,
              Error &error) {
  const ModelInfo &info = model.info();
  PieceCodes codes;
  if (!loadCodes(path, codes, error))
    return false;
  bool isPlayed = false;
  if (!info.playback.inputs.empty()) {
    isPlayed = PiecePlayer(model, codes).run(sound, error);
  } else if (codes.pieces > 1 || codes.books != info.codes.books() ||
             !codes.scales.empty() || codes.missing) {
    error.badInput("expected 'audio_codes' [1, " +
                   std::to_string(info.codes.books()) +
                   ", frames], as --codes-out writes them");
  } else {
    SoundCodes all;
    for (int64_t book = 0; book < codes.books; ++book)
      all.emplace_back(codes.row(0, book), codes.row(0, book) + codes.frames);
    isPlayed = playCodes(model, all, sound, error);
  }
  if (!isPlayed)
    error.message = path + ": " + error.message;
  return isPlayed;
}

} // namespace attune::runtime
