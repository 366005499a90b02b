//===- Image.h - Pictures in files ------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SIGHT_IMAGE_H
#define ATTUNE_LIB_RUNTIME_SIGHT_IMAGE_H

#include "attune/Runtime/Sight.h"

#include <cstdint>
#include <string>
#include <vector>

namespace attune::runtime {

/// Rows of pixels from the top, each from the left: red, green, blue.
struct Image {
  int64_t width = 0, height = 0;
  std::vector<uint8_t> pixels;

  void resize(int64_t newWidth, int64_t newHeight) {
    width = newWidth;
    height = newHeight;
    pixels.resize(static_cast<size_t>(width * height * 3));
  }
  const uint8_t *at(int64_t x, int64_t y) const {
    return pixels.data() + (y * width + x) * 3;
  }
  uint8_t *at(int64_t x, int64_t y) {
    return pixels.data() + (y * width + x) * 3;
  }
};

/// Reads the bytes of a PNG or JPEG file. Grey is three equal channels,
/// transparency and profiles of colours are passed over, of 16 bits the upper 8
/// count, CMYK becomes RGB, and a picture is turned the way that its EXIF data
/// say: all as Pillow's `convert("RGB")` behind `exif_transpose` does it (but
/// for grey of 16 bits, which Pillow clips). False, with a reason, if they are
/// no such file, or have more pixels than `most`.
bool parseImage(const uint8_t *bytes, uint64_t size, Image &image,
                std::string &problem, uint64_t most = kMostPixels);

/// Pillow's filters.
enum class Filter : uint8_t { Lanczos, Bilinear, Bicubic, Box, Hamming };
/// The picture at another size, by Pillow's arithmetic (of whole numbers, so
/// that results are equal): each new pixel is a sum over those below the filter
/// stretched by the factor of the reduction, first along rows, then columns.
void resample(Image &image, int64_t width, int64_t height, Filter filter);

// Parsers of the formats; `orientation` is EXIF's, 1 to 8.
bool parsePng(const uint8_t *bytes, uint64_t size, Image &image,
              int &orientation, std::string &problem, uint64_t most);
bool parseJpeg(const uint8_t *bytes, uint64_t size, Image &image,
               int &orientation, std::string &problem, uint64_t most);
/// False, with a reason, unless a picture has pixels, and not more than `most`.
bool checkSize(uint64_t width, uint64_t height, std::string &problem,
               uint64_t most = kMostPixels);
/// The orientation that EXIF data (a TIFF file) name; 1 if they name none.
int findOrientation(const uint8_t *bytes, uint64_t size);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SIGHT_IMAGE_H
