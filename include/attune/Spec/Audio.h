//===- Audio.h - How a model hears and writes -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_AUDIO_H
#define ATTUNE_SPEC_AUDIO_H

#include "attune/Support/Diagnostics.h"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace attune::spec {

/// How sound becomes an input of the model [batch, bands, frames], the
/// logarithms of power in mel bands, and what tells its decoder what to write
/// of it. An input [batch, samples] is the sound itself: the model's logits are
/// then those of `letters`, frame by frame (CTC, Graves et al. 2006). Codes are
/// made of an input [batch, samples, channels], those that are nearest in the
/// tables of a codec: then `window` and `hop` are 0.
struct Audio {
  std::string input;
  int64_t rate = 16000; ///< samples a second
  int64_t window = 400; ///< samples that a frame is made of
  int64_t hop = 160;    ///< samples from frame to frame
  /// Tokens of languages and of tasks, by their names: "en", "translate".
  std::map<std::string, int64_t> languages, tasks;
  /// The language's token unless one is asked for; without it the model says
  /// which it hears.
  std::optional<int64_t> language;
  /// The tokens after the language unless a language or a task is asked for.
  std::vector<int64_t> start;
  /// Says that no times are wanted. The tokens behind it are times from the
  /// window's begin on, each `timestampFrames` later than the last.
  std::optional<int64_t> noTimestamps;
  int64_t timestampFrames = 2;
  /// The number of the latest time that a window's text may begin with.
  std::optional<int64_t> latestBegin;
  /// The letters of a waveform's ids; those that are not written are empty.
  /// `blank` parts equal letters; equal neighbours without it are one.
  std::vector<std::string> letters;
  int64_t blank = 0;
  /// The waveform gets a mean of 0 and a variance of 1.
  bool normalise = false;
  SourceLocation location;
};

/// As a description has it.
std::string print(const Audio &audio);

} // namespace attune::spec

#endif // ATTUNE_SPEC_AUDIO_H
