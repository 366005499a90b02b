//===- Image.cpp - Pictures in files --------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"

#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

extern "C" {
/// What libpng and libjpeg would write to, had they no better listeners.
extern FILE *attune_rt_stderr;
FILE *attune_rt_stderr = stderr;
}

namespace attune::runtime {

bool checkSize(uint64_t width, uint64_t height, std::string &problem,
               uint64_t most) {
  if (width == 0 || height == 0) {
    problem = "has no pixels";
    return false;
  }
  if (width > most || height > most / width) {
    problem = "has " + std::to_string(width) + " x " + std::to_string(height) +
              " pixels; " + std::to_string(most) +
              " in all are the most that are read";
    return false;
  }
  return true;
}

int findOrientation(const uint8_t *bytes, uint64_t size) {
  constexpr unsigned orientationTag = 0x0112, shortType = 3;
  if (size < 8)
    return 1;
  bool little = bytes[0] == 'I' && bytes[1] == 'I';
  if (!little && !(bytes[0] == 'M' && bytes[1] == 'M'))
    return 1;
  auto number = [&](uint64_t at, unsigned count) {
    uint64_t value = 0;
    for (unsigned i = 0; i < count; ++i)
      value |= uint64_t(bytes[at + i]) << (8 * (little ? i : count - 1 - i));
    return value;
  };
  uint64_t at = number(4, 4);
  if (number(2, 2) != 42 || at > size - 2)
    return 1;
  uint64_t count = number(at, 2);
  at += 2;
  for (; count > 0 && size - at >= 12; --count, at += 12) {
    if (number(at, 2) != orientationTag || number(at + 2, 2) != shortType)
      continue;
    auto value = static_cast<int>(number(at + 8, 2));
    return value >= 1 && value <= 8 ? value : 1;
  }
  return 1;
}

/// Turns and mirrors the picture to how it is looked at.
static void orient(Image &image, int orientation) {
  if (orientation == 1)
    return;
  Image turned;
  bool swaps = orientation >= 5;
  int64_t width = image.width, height = image.height;
  turned.resize(swaps ? height : width, swaps ? width : height);
  for (int64_t y = 0; y < turned.height; ++y)
    for (int64_t x = 0; x < turned.width; ++x) {
      // Where the pixel comes from: along the file's columns and rows.
      int64_t column = swaps ? y : x, row = swaps ? x : y;
      bool mirrorsColumns = orientation == 2 || orientation == 3 ||
                            orientation == 7 || orientation == 8;
      bool mirrorsRows = orientation == 3 || orientation == 4 ||
                         orientation == 6 || orientation == 7;
      if (mirrorsColumns)
        column = width - 1 - column;
      if (mirrorsRows)
        row = height - 1 - row;
      std::memcpy(turned.at(x, y), image.at(column, row), 3);
    }
  image = std::move(turned);
}

/// What a file that is neither is, by its first bytes.
static const char *otherFormat(std::string_view start) {
  auto has = [&](size_t at, std::string_view letters) {
    return start.size() >= at && start.substr(at, letters.size()) == letters;
  };
  if (has(0, "GIF8"))
    return "GIF";
  if (has(0, "RIFF") && has(8, "WEBP"))
    return "WebP";
  if (has(0, "BM"))
    return "BMP";
  if (has(0, std::string_view("II*\0", 4)) ||
      has(0, std::string_view("MM\0*", 4)))
    return "TIFF";
  if (has(4, "ftyp"))
    return "HEIC or AVIF";
  return nullptr;
}

bool parseImage(const uint8_t *bytes, uint64_t size, Image &image,
                std::string &problem, uint64_t most) {
  std::string_view start(reinterpret_cast<const char *>(bytes),
                         size < 16 ? size : 16);
  int orientation = 1;
  constexpr std::string_view png("\x89PNG\r\n\x1a\n", 8);
  constexpr std::string_view jpeg("\xff\xd8\xff", 3);
  if (start.substr(0, png.size()) == png) {
    if (!parsePng(bytes, size, image, orientation, problem, most))
      return false;
  } else if (start.substr(0, jpeg.size()) == jpeg) {
    if (!parseJpeg(bytes, size, image, orientation, problem, most))
      return false;
  } else {
    const char *other = otherFormat(start);
    problem =
        other ? std::string("is a ") + other + " file; PNG and JPEG are read"
              : "is neither a PNG nor a JPEG file";
    return false;
  }
  orient(image, orientation);
  return true;
}

} // namespace attune::runtime
