//===- Wave.h - Sounds in files ---------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SOUND_WAVE_H
#define ATTUNE_LIB_RUNTIME_SOUND_WAVE_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune::runtime {

/// A sound from -1 to 1.
struct Sound {
  int64_t rate = 0;     ///< samples a second
  int64_t channels = 1; ///< side by side
  std::vector<float> samples;
};

/// The rates that files may have; others are a mistake.
inline constexpr int64_t kLeastRate = 1000, kMostRate = 1000000;

/// Reads a WAV file of whole numbers (8, 16, 24 or 32 bits) or floats (32 or 64
/// bits). Any number of channels is averaged, but if `channels` is more than
/// one the file has to have that many. Programs that write to a pipe leave the
/// largest number where the size of the samples belongs: such a file has
/// samples to its end.
bool readWave(const std::string &path, Sound &sound, Error &error,
              int64_t channels = 1);
/// The same of bytes; false, with a reason, if they are no such file.
bool parseWave(const uint8_t *bytes, uint64_t size, Sound &sound,
               std::string &problem, int64_t channels = 1);

/// Writes a WAV file of 32-bit floats, whole or not at all.
bool writeWave(const std::string &path, const Sound &sound, Error &error);

/// A sound of one channel at another rate, of ceil(count * rate / sound.rate)
/// samples: sample n is what the sound has at n / rate seconds. What neither
/// rate can hold is filtered off (by a sinc under a Kaiser window, 64 zeros on
/// either side: flat to 0.91 of the lower rate's half and 90 dB down from there
/// on).
void resample(Sound &sound, int64_t rate);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SOUND_WAVE_H
