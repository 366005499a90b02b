//===- Transcriber.h - Speech to text, window by window ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_TRANSCRIBER_H
#define ATTUNE_LIB_RUNTIME_SOUND_TRANSCRIBER_H

#include "TimestampRules.h"

#include "attune/Runtime/Cli.h"

#include <optional>

namespace attune::runtime {

/// What was said in a part of a sound.
struct SpokenPart {
  double begin = 0, end = 0; ///< in seconds
  std::vector<int64_t> ids;  ///< with its times, if they were asked for
};

/// Writes down what a file says, as transformers' Whisper classes do it.
///
/// A sound that a window has room for is one window, with silence behind it. A
/// longer one is written down with times: each window begins where the last
/// whole part of the one before ended, or behind it if it has no such end. The
/// features are those of the whole sound, with zeros behind its end.
class Transcriber {
public:
  Transcriber(CompiledModel &model, const GenerateOptions &options);

  /// Reads the file and makes its features.
  bool open(Error &error);
  /// The next parts; none: the sound is over.
  bool next(std::vector<SpokenPart> &parts, Error &error);

  /// Seconds of the whole sound.
  double seconds() const { return length; }
  /// The code of the language that was asked for or heard; empty: unknown.
  const std::string &language() const { return languageCode; }
  /// Whether a token of a part is a time.
  bool isTime(int64_t token) const {
    return audio.noTimestamps >= 0 && token > audio.noTimestamps;
  }

private:
  bool findInput(Error &error);
  bool findTokens(Error &error);
  bool encode(Error &error);
  bool hearLanguage(int64_t &token, Error &error);
  bool begin(Error &error);
  void cut(const std::vector<int64_t> &said, std::vector<SpokenPart> &parts);
  double timeOf(int64_t frame) const {
    return double(frame) * double(audio.hop) / double(audio.rate);
  }

  CompiledModel &model;
  const AudioInfo &audio;
  GenerateOptions options;
  std::unique_ptr<Session> session;
  std::optional<TimestampRules> rules;
  int64_t bands = 0, windowFrames = 0;
  double length = 0;
  std::vector<float> features; ///< [bands, frames]
  int64_t frames = 0, position = 0;
  std::vector<float> window;  ///< [bands, windowFrames]
  std::vector<int64_t> start; ///< of every window's text
  const int64_t *askedLanguage = nullptr, *askedTask = nullptr;
  std::string languageCode;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_TRANSCRIBER_H
