//===- WaveFuzzer.cpp - Sounds in files -----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Sound/LogMel.h"
#include "Sound/Wave.h"

#include <algorithm>
#include <cmath>

using namespace attune::runtime;

/// A file that is read has a sample for each frame of its bytes at most, and
/// what is made of them are numbers.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const LogMel mel(/*rate=*/16000, /*window=*/60, /*hop=*/50,
                          /*bands=*/5);
  Sound sound;
  std::string problem;
  if (!parseWave(data, size, sound, problem)) {
    FUZZ_REQUIRE(!problem.empty());
    return 0;
  }
  size_t count = sound.samples.size();
  FUZZ_REQUIRE(count > 0 && count < size);
  FUZZ_REQUIRE(sound.rate >= kLeastRate && sound.rate <= kMostRate);
  // Longer ones would only be slow.
  sound.samples.resize(std::min<size_t>(count, 300));
  resample(sound, 16000);
  FUZZ_REQUIRE(!sound.samples.empty());
  for (float sample : sound.samples)
    FUZZ_REQUIRE(std::fabs(sample) <= 1e8f);
  sound.samples.resize(std::max<size_t>(sound.samples.size(), 200));
  for (float level : mel.compute(sound.samples))
    FUZZ_REQUIRE(std::fabs(level) < 100);
  return 0;
}
