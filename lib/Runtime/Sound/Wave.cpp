//===- Wave.cpp - WAV files -----------------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A file is "RIFF", a size, "WAVE" and chunks: four letters, a size and as many
// bytes, with one more if that is odd. "fmt " says what the samples in "data"
// are; other chunks are passed over. All numbers are little-endian.
//
//===----------------------------------------------------------------------===//

#include "Wave.h"

#include "attune/Runtime/Safetensors.h"
#include "attune/Runtime/WholeFile.h"

#include <cmath>
#include <cstring>
#include <string_view>

namespace attune::runtime {

namespace {
/// What "fmt " says.
struct Format {
  enum Tag : uint16_t { Whole = 1, Real = 3, Extensible = 0xFFFE };
  uint16_t tag = 0;
  uint16_t channels = 0;
  uint32_t rate = 0;
  uint16_t frameBytes = 0; ///< of a sample of every channel
  uint16_t bits = 0;       ///< of a sample
};
} // namespace

template <typename T> static T load(const uint8_t *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof(T));
  return value;
}

static const char *nameOfTag(uint16_t tag) {
  switch (tag) {
  case 2:
  case 0x11:
    return " (ADPCM)";
  case 6:
    return " (A-law)";
  case 7:
    return " (mu-law)";
  case 0x50:
  case 0x55:
    return " (MPEG)";
  default:
    return "";
  }
}

static bool readFormat(const uint8_t *bytes, uint64_t size, Format &format,
                       std::string &problem) {
  if (size < 16) {
    problem =
        "the chunk 'fmt ' has " + std::to_string(size) + " bytes, and needs 16";
    return false;
  }
  format.tag = load<uint16_t>(bytes);
  format.channels = load<uint16_t>(bytes + 2);
  format.rate = load<uint32_t>(bytes + 4);
  format.frameBytes = load<uint16_t>(bytes + 12);
  format.bits = load<uint16_t>(bytes + 14);
  // The tag of an extensible format is the head of an identifier.
  if (format.tag == Format::Extensible) {
    if (size < 40) {
      problem = "the chunk 'fmt ' of an extensible format has " +
                std::to_string(size) + " bytes, and needs 40";
      return false;
    }
    format.tag = load<uint16_t>(bytes + 24);
  }
  bool isWhole =
      format.tag == Format::Whole && (format.bits == 8 || format.bits == 16 ||
                                      format.bits == 24 || format.bits == 32);
  bool isReal =
      format.tag == Format::Real && (format.bits == 32 || format.bits == 64);
  if (format.tag != Format::Whole && format.tag != Format::Real) {
    problem = "the samples are compressed or of a format that is not read, " +
              std::to_string(format.tag) + nameOfTag(format.tag) +
              "; 16 bits PCM is read";
  } else if (!isWhole && !isReal) {
    problem = "samples of " + std::to_string(format.bits) +
              (format.tag == Format::Whole ? " bits" : " bits of floats") +
              " are not read; 16 bits PCM is";
  } else if (format.channels == 0) {
    problem = "there are no channels";
  } else if (format.rate < kLeastRate || format.rate > kMostRate) {
    problem = "expected from " + std::to_string(kLeastRate) + " to " +
              std::to_string(kMostRate) + " samples a second, found " +
              std::to_string(format.rate);
  } else if (format.frameBytes != uint64_t(format.channels) * format.bits / 8) {
    problem = std::to_string(format.channels) + " channels of " +
              std::to_string(format.bits) + " bits are not " +
              std::to_string(format.frameBytes) + " bytes";
  } else {
    return true;
  }
  return false;
}

static double loadSample(const Format &format, const uint8_t *bytes) {
  if (format.tag == Format::Real)
    return format.bits == 32 ? double(load<float>(bytes)) : load<double>(bytes);
  switch (format.bits) {
  case 8: // the only one without a sign
    return (double(*bytes) - 128) / 128;
  case 16:
    return double(load<int16_t>(bytes)) / 32768;
  case 24: {
    auto high = uint32_t(load<uint16_t>(bytes)) << 8 | uint32_t(bytes[2]) << 24;
    return double(int32_t(high)) / 2147483648.0;
  }
  default:
    return double(load<int32_t>(bytes)) / 2147483648.0;
  }
}

static bool readSamples(const Format &format, const uint8_t *bytes,
                        uint64_t size, Sound &sound, std::string &problem) {
  uint64_t count = size / format.frameBytes;
  if (count == 0) {
    problem = "there are no samples";
    return false;
  }
  if (sound.channels > 1 && format.channels != sound.channels) {
    problem = "expected " + std::to_string(sound.channels) +
              " channels, found " + std::to_string(format.channels);
    return false;
  }
  sound.rate = format.rate;
  uint64_t kept = uint64_t(sound.channels), mixed = format.channels / kept;
  count *= kept;
  sound.samples.resize(count);
  unsigned sampleBytes = format.bits / 8;
  for (uint64_t i = 0; i < count; ++i) {
    double sum = 0;
    for (uint64_t channel = 0; channel < mixed; ++channel)
      sum += loadSample(format, bytes + (i * mixed + channel) * sampleBytes);
    double mean = sum / double(mixed);
    // Floats may be beyond 1, but sounds are never so loud.
    if (!(std::fabs(mean) <= 1e6)) {
      problem =
          "sample " + std::to_string(i) + " is not a number, or far above 1";
      return false;
    }
    sound.samples[i] = float(mean);
  }
  return true;
}

bool parseWave(const uint8_t *bytes, uint64_t size, Sound &sound,
               std::string &problem, int64_t channels) {
  sound.channels = channels;
  auto is = [&](uint64_t at, std::string_view letters) {
    return size >= at + 4 && std::memcmp(bytes + at, letters.data(), 4) == 0;
  };
  if (is(0, "RIFX") || is(0, "RF64")) {
    problem = "is a WAV file of the form " +
              std::string(reinterpret_cast<const char *>(bytes), 4) +
              ", which is not read; RIFF is";
    return false;
  }
  if (!is(0, "RIFF") || !is(8, "WAVE")) {
    problem = "is not a WAV file";
    return false;
  }
  Format format;
  bool hasFormat = false;
  for (uint64_t at = 12; size - at >= 8;) {
    uint64_t chunk = load<uint32_t>(bytes + at + 4), room = size - at - 8;
    const uint8_t *body = bytes + at + 8;
    bool isData = is(at, "data");
    if (isData && chunk == UINT32_MAX)
      chunk = room;
    if (chunk > room) {
      problem = "is truncated: the chunk at byte " + std::to_string(at) +
                " has " + std::to_string(chunk) +
                " bytes, and the file ends after " + std::to_string(room);
      return false;
    }
    if (isData) {
      if (hasFormat)
        return readSamples(format, body, chunk, sound, problem);
      problem = "the samples come before the chunk 'fmt '";
      return false;
    }
    if (is(at, "fmt ")) {
      if (!readFormat(body, chunk, format, problem))
        return false;
      hasFormat = true;
    }
    uint64_t step = 8 + chunk + chunk % 2;
    if (step > size - at)
      break;
    at += step;
  }
  problem = hasFormat ? "has no chunk 'data'" : "has no chunk 'fmt '";
  return false;
}

bool readWave(const std::string &path, Sound &sound, Error &error,
              int64_t channels) {
  MappedFile file;
  std::string problem;
  if (!file.open(path, problem))
    return error.badInput(problem);
  return parseWave(file.data(), file.size(), sound, problem, channels) ||
         error.badInput(path + ": " + problem);
}

template <typename T> static void store(std::string &bytes, T value) {
  bytes.append(reinterpret_cast<const char *>(&value), sizeof(T));
}

bool writeWave(const std::string &path, const Sound &sound, Error &error) {
  uint64_t size = sound.samples.size() * sizeof(float);
  auto rate = static_cast<uint32_t>(sound.rate);
  auto channels = static_cast<uint32_t>(sound.channels);
  constexpr uint32_t formatBytes = 18, factBytes = 4, headBytes = 4 + 3 * 8;
  if (size > UINT32_MAX - headBytes - formatBytes - factBytes)
    return error.badInput(path + ": a WAV file holds no " +
                          std::to_string(sound.samples.size()) + " samples");
  std::string head = "RIFF";
  store(head,
        static_cast<uint32_t>(headBytes + formatBytes + factBytes + size));
  head += "WAVEfmt ";
  store(head, formatBytes);
  store(head, uint16_t(Format::Real));
  store(head, static_cast<uint16_t>(channels));
  store(head, rate);
  store(head, static_cast<uint32_t>(rate * channels * sizeof(float)));
  store(head, static_cast<uint16_t>(channels * sizeof(float)));
  store(head, uint16_t(32));
  store(head, uint16_t(0)); // no more about the format
  // A format of samples that are not integers states their count.
  head += "fact";
  store(head, factBytes);
  store(head, static_cast<uint32_t>(sound.samples.size() / channels));
  head += "data";
  store(head, static_cast<uint32_t>(size));
  std::string_view samples(reinterpret_cast<const char *>(sound.samples.data()),
                           size);
  return writeWholeFile(path, head, samples, error);
}

} // namespace attune::runtime
