//===- Codes.h - Several codes written at once ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_CODES_H
#define ATTUNE_SPEC_CODES_H

#include "attune/Support/Diagnostics.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace attune::spec {

/// How the last stream writes a frame of sound, which is one code of each
/// codebook, in one step (MusicGen, Copet et al. 2023). Codebook k runs k
/// frames late: where it has no code yet, or none any more, stands `pad`. The
/// last layer gives the scores of all codebooks, one behind the other.
struct Codes {
  /// Inputs [batch, frames] of ids, one for each codebook; the stream starts
  /// from the first.
  std::vector<std::string> inputs;
  /// Channels of the sound. Codebooks of several channels take turns: k is
  /// number k / channels of channel k % channels, and late by that number.
  int64_t channels = 1;
  int64_t pad = 0;
  /// Scores s of a text become t + guidance * (s - t), where t are those
  /// without a text (classifier-free guidance); 1: s.
  double guidance = 1;
  /// The stream that makes samples of a channel's codes, which it reads from
  /// inputs of its own; empty: there is none. It is no part of a forward pass.
  std::string sound;
  int64_t rate = 0; ///< of `sound`: samples a second
  SourceLocation location;
};

/// The playback of a model that makes samples of codes: its first output is
/// [pieces, samples, channels].
struct Playback {
  /// Inputs [pieces, frames] of ids, one for each codebook.
  std::vector<std::string> inputs;
  int64_t rate = 0; ///< samples a second
  /// The id for no code of a codebook, so that the first ones can be played
  /// alone; none: all are needed.
  std::optional<int64_t> none;
  /// Samples of a whole piece. The next piece begins `step` samples after this
  /// begins (Defossez et al. 2022): where they overlap one fades into the
  /// other. Both 0: a sound is one piece.
  int64_t piece = 0, step = 0;
  bool scaled = false; ///< each piece has a loudness, which multiplies it
  SourceLocation location;
};

/// As a description has them.
std::string print(const Codes &codes);
std::string print(const Playback &playback);

} // namespace attune::spec

#endif // ATTUNE_SPEC_CODES_H
