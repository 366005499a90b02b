//===- SoundTest.cpp - WAV files, rates and mel bands ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Sound/LogMel.h"
#include "Sound/Wave.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstring>

using namespace attune::runtime;

namespace {

std::string number(uint64_t value, int bytes) {
  std::string text;
  for (int i = 0; i < bytes; ++i)
    text += char(value >> (8 * i));
  return text;
}

std::string chunk(const std::string &name, const std::string &body) {
  return name + number(body.size(), 4) + body +
         std::string(body.size() % 2, '\0');
}

std::string format(int tag, int channels, int64_t rate, int bits) {
  return chunk("fmt ", number(tag, 2) + number(channels, 2) + number(rate, 4) +
                           number(rate * channels * bits / 8, 4) +
                           number(channels * bits / 8, 2) + number(bits, 2));
}

std::string wave(const std::string &chunks) {
  return "RIFF" + number(chunks.size() + 4, 4) + "WAVE" + chunks;
}

template <typename T> std::string raw(const std::vector<T> &values) {
  return {reinterpret_cast<const char *>(values.data()),
          values.size() * sizeof(T)};
}

std::string problemOf(const std::string &bytes, Sound &sound) {
  // In memory of its own, so that sanitizers see what is read behind its end.
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  std::string problem;
  if (parseWave(copy.data(), copy.size(), sound, problem))
    return problem.empty() ? "read" : problem;
  return problem;
}

using Samples = std::vector<float>;

TEST(Wave, EveryFormatIsRead) {
  Sound sound;
  auto read = [&](int tag, int bits, const std::string &data) {
    EXPECT_EQ(problemOf(wave(format(tag, 1, 8000, bits) + chunk("data", data)),
                        sound),
              "read");
    return sound.samples;
  };
  EXPECT_EQ(read(1, 8, {'\x80', '\xC0', '\0', '\x40'}),
            (Samples{0, 0.5, -1, -0.5}));
  EXPECT_EQ(read(1, 16, raw<int16_t>({0, 16384, -32768})),
            (Samples{0, 0.5, -1}));
  EXPECT_EQ(read(1, 24, number(0x400000, 3) + number(0x800000, 3)),
            (Samples{0.5, -1}));
  EXPECT_EQ(read(1, 32, raw<int32_t>({1 << 29, INT32_MIN})),
            (Samples{0.25, -1}));
  EXPECT_EQ(read(3, 32, raw<float>({0.125f, -3})), (Samples{0.125, -3}));
  EXPECT_EQ(read(3, 64, raw<double>({0.75, -0.5})), (Samples{0.75, -0.5}));
  EXPECT_EQ(sound.rate, 8000);
}

TEST(Wave, ChannelsAreMixedAndOtherChunksPassedOver) {
  Sound sound;
  std::string data = raw<int16_t>({16384, 0, -32768, -16384, 1});
  std::string bytes = wave(chunk("LIST", "odd") + format(1, 2, 44100, 16) +
                           chunk("fact", "1234") + chunk("data", data));
  EXPECT_EQ(problemOf(bytes, sound), "read");
  // The last sample has one channel only.
  EXPECT_EQ(sound.samples, (Samples{0.25, -0.75}));
  EXPECT_EQ(sound.rate, 44100);
}

TEST(Wave, AnExtensibleFormatNamesAnother) {
  Sound sound;
  std::string body = format(0xFFFE, 1, 16000, 32).substr(8) + number(22, 2) +
                     number(32, 2) + number(4, 4) + number(3, 2) +
                     std::string(14, 'x');
  EXPECT_EQ(
      problemOf(wave(chunk("fmt ", body) + chunk("data", raw<float>({0.5f}))),
                sound),
      "read");
  EXPECT_EQ(sound.samples, Samples{0.5});
}

TEST(Wave, ASizeThatWasNeverFilledInIsTheRestOfTheFile) {
  Sound sound;
  std::string bytes = wave(format(1, 1, 16000, 16)) + "data" +
                      number(UINT32_MAX, 4) + raw<int16_t>({8192, 16384});
  EXPECT_EQ(problemOf(bytes, sound), "read");
  EXPECT_EQ(sound.samples, (Samples{0.25, 0.5}));
}

TEST(Wave, WhatIsWrongIsSaid) {
  Sound sound;
  std::string good = format(1, 1, 16000, 16), four = chunk("data", "abcd");
  auto problem = [&](const std::string &chunks) {
    return problemOf(wave(chunks), sound);
  };
  EXPECT_EQ(problemOf("", sound), "is not a WAV file");
  EXPECT_EQ(problemOf("RIFF", sound), "is not a WAV file");
  EXPECT_EQ(problemOf("RIFF\1\1\1\1AVI LIST", sound), "is not a WAV file");
  EXPECT_EQ(problemOf("RF64\1\1\1\1WAVEds64", sound),
            "is a WAV file of the form RF64, which is not read; RIFF is");
  EXPECT_EQ(problem(""), "has no chunk 'fmt '");
  EXPECT_EQ(problem(good), "has no chunk 'data'");
  EXPECT_EQ(problem(four + good), "the samples come before the chunk 'fmt '");
  EXPECT_EQ(problem(chunk("fmt ", "abcdefgh") + four),
            "the chunk 'fmt ' has 8 bytes, and needs 16");
  EXPECT_EQ(problem(format(0xFFFE, 1, 16000, 16) + four),
            "the chunk 'fmt ' of an extensible format has 16 bytes, and needs "
            "40");
  EXPECT_EQ(problem(format(7, 1, 8000, 8) + four),
            "the samples are compressed or of a format that is not read, 7 "
            "(mu-law); 16 bits PCM is read");
  EXPECT_EQ(problem(format(0x55, 2, 44100, 0) + four),
            "the samples are compressed or of a format that is not read, 85 "
            "(MPEG); 16 bits PCM is read");
  EXPECT_EQ(problem(format(1, 1, 16000, 12) + four),
            "samples of 12 bits are not read; 16 bits PCM is");
  EXPECT_EQ(problem(format(3, 1, 16000, 16) + four),
            "samples of 16 bits of floats are not read; 16 bits PCM is");
  EXPECT_EQ(problem(format(1, 0, 16000, 16) + four), "there are no channels");
  EXPECT_EQ(problem(format(1, 1, 0, 16) + four),
            "expected from 1000 to 1000000 samples a second, found 0");
  EXPECT_EQ(problem(format(1, 1, 4000000000, 16) + four),
            "expected from 1000 to 1000000 samples a second, found 4000000000");
  std::string odd = good;
  odd[20] = 3;
  EXPECT_EQ(problem(odd + four), "1 channels of 16 bits are not 3 bytes");
  EXPECT_EQ(problem(good + chunk("data", "")), "there are no samples");
  EXPECT_EQ(problem(good + chunk("data", "a")), "there are no samples");
  EXPECT_EQ(problem(good + "data" + number(1000, 4) + "abcd"),
            "is truncated: the chunk at byte 36 has 1000 bytes, and the file "
            "ends after 4");
  EXPECT_EQ(problem("LIST" + number(0xFFFFFFF0, 4) + "abcd"),
            "is truncated: the chunk at byte 12 has 4294967280 bytes, and the "
            "file ends after 4");
  EXPECT_EQ(
      problem(format(3, 1, 16000, 32) + chunk("data", raw<float>({0, NAN}))),
      "sample 1 is not a number, or far above 1");
  Error error;
  EXPECT_FALSE(readWave("/nowhere/a.wav", sound, error));
  EXPECT_EQ(error.message,
            "/nowhere/a.wav: cannot open: No such file or directory");
}

/// A tone of `hertz`, half as loud as can be.
Sound makeTone(int64_t rate, double hertz, size_t count) {
  Sound sound;
  sound.rate = rate;
  for (size_t i = 0; i < count; ++i)
    sound.samples.push_back(
        float(0.5 * std::sin(2 * M_PI * hertz * double(i) / double(rate))));
  return sound;
}

/// How far the middle of a sound is from a tone.
double distance(const Sound &sound, const Sound &tone) {
  size_t count = std::min(sound.samples.size(), tone.samples.size());
  double worst = 0;
  for (size_t i = count / 4; i < count * 3 / 4; ++i)
    worst =
        std::max(worst, double(std::fabs(sound.samples[i] - tone.samples[i])));
  return worst;
}

TEST(Resample, TonesStayAndWhatDoesNotFitGoes) {
  for (int64_t rate : {8000, 11025, 16000, 22050, 44100, 48000, 96000}) {
    Sound sound = makeTone(rate, 1000, size_t(rate));
    resample(sound, 16000);
    EXPECT_EQ(sound.rate, 16000);
    EXPECT_EQ(sound.samples.size(), 16000u);
    EXPECT_LT(distance(sound, makeTone(16000, 1000, 16000)), 3e-5) << rate;
  }
  // The passband reaches far, and nothing is folded back into it.
  Sound high = makeTone(44100, 7200, 44100);
  resample(high, 16000);
  EXPECT_LT(distance(high, makeTone(16000, 7200, 16000)), 2e-4);
  for (double hertz : {8050.0, 12000.0, 20000.0}) {
    Sound above = makeTone(44100, hertz, 44100);
    resample(above, 16000);
    EXPECT_LT(distance(above, makeTone(16000, 0, 16000)), 3e-5) << hertz;
  }
}

TEST(Resample, CountsAreRoundedUpAndShortSoundsWork) {
  for (size_t count : {1, 2, 3, 100, 441}) {
    Sound sound = makeTone(44100, 500, count);
    resample(sound, 16000);
    EXPECT_EQ(sound.samples.size(), (count * 160 + 440) / 441) << count;
  }
  Sound odd = makeTone(16001, 500, 5000);
  resample(odd, 16000);
  EXPECT_LT(distance(odd, makeTone(16000, 500, 5000)), 3e-5);
}

/// The published formula, term by term.
std::vector<double> melOf(const Samples &samples, int64_t rate, int64_t window,
                          int64_t hop, int64_t bands) {
  auto count = int64_t(samples.size()), frames = count / hop;
  int64_t bins = window / 2 + 1;
  std::vector<double> corners;
  double top = 15 + 27 * std::log(double(rate) / 2000) / std::log(6.4);
  for (int64_t i = 0; i < bands + 2; ++i) {
    double mel = top * double(i) / double(bands + 1);
    corners.push_back(mel >= 15 ? 1000 * std::pow(6.4, (mel - 15) / 27)
                                : 200.0 / 3 * mel);
  }
  std::vector<double> levels(bands * frames);
  double most = -1e9;
  for (int64_t t = 0; t < frames; ++t) {
    std::vector<double> power(bins);
    for (int64_t f = 0; f < bins; ++f) {
      std::complex<double> sum = 0;
      for (int64_t i = 0; i < window; ++i) {
        int64_t at = t * hop - window / 2 + i;
        if (at < 0)
          at = -at;
        if (at > count - 1)
          at = count - 1 - (at - (count - 1));
        double hann = std::pow(std::sin(M_PI * double(i) / double(window)), 2);
        sum += hann * samples[at] *
               std::polar(1.0,
                          -2 * M_PI * double(f * i % window) / double(window));
      }
      power[f] = std::norm(sum);
    }
    for (int64_t b = 0; b < bands; ++b) {
      double a = corners[b], m = corners[b + 1], z = corners[b + 2], sum = 0;
      for (int64_t f = 0; f < bins; ++f) {
        double hertz = double(f * rate) / double(window);
        double weight =
            hertz <= m ? (hertz - a) / (m - a) : (z - hertz) / (z - m);
        sum += std::max(0.0, weight) * 2 / (z - a) * power[f];
      }
      levels[b * frames + t] = std::log10(std::max(sum, 1e-10));
      most = std::max(most, levels[b * frames + t]);
    }
  }
  for (double &level : levels)
    level = (std::max(level, most - 8) + 4) / 4;
  return levels;
}

TEST(LogMel, IsThePublishedFormula) {
  struct Case {
    int64_t rate, window, hop, bands;
  };
  // Whisper's two, then sizes with other and large prime factors.
  for (Case c : {Case{16000, 400, 160, 80}, Case{16000, 400, 160, 128},
                 Case{8000, 210, 77, 20}, Case{22050, 257, 100, 13}}) {
    Samples samples;
    uint32_t state = 1;
    for (int i = 0; i < 1300; ++i) {
      state = state * 1664525 + 1013904223;
      double noise = double(state) / 4294967296.0 - 0.5;
      samples.push_back(float(0.3 * std::sin(0.02 * i * (1 + i / 900.0)) +
                              (i < 900 ? 0.01 * noise : 0)));
    }
    std::vector<double> wanted =
        melOf(samples, c.rate, c.window, c.hop, c.bands);
    std::vector<float> got =
        LogMel(c.rate, c.window, c.hop, c.bands).compute(samples);
    ASSERT_EQ(got.size(), wanted.size());
    double worst = 0;
    for (size_t i = 0; i < got.size(); ++i)
      worst = std::max(worst, std::fabs(double(got[i]) - wanted[i]));
    EXPECT_LT(worst, 3e-7) << c.window;
  }
}

TEST(LogMel, SilenceIsTheLeastPower) {
  std::vector<float> got =
      LogMel(16000, 400, 160, 80).compute(Samples(3200, 0.0f));
  EXPECT_EQ(got.size(), 80u * 20);
  for (float level : got)
    EXPECT_FLOAT_EQ(level, -1.5);
}

} // namespace
