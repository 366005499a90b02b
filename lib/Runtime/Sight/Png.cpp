//===- Png.cpp - PNG files through libpng ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <png.h>

namespace attune::runtime {

namespace {
/// libpng leaves its functions by longjmp: nothing between a setjmp and the
/// calls behind it may have a destructor.
struct Reader {
  const uint8_t *bytes;
  uint64_t size, at = 0;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[200] = "";
};
} // namespace

static void onError(png_structp png, png_const_charp text) {
  auto *reader = static_cast<Reader *>(png_get_error_ptr(png));
  std::snprintf(reader->message, sizeof(reader->message), "%s", text);
  png_longjmp(png, 1);
}

static void onWarning(png_structp, png_const_charp) {}

static void readBytes(png_structp png, png_bytep to, size_t count) {
  auto *reader = static_cast<Reader *>(png_get_io_ptr(png));
  if (count > reader->size - reader->at)
    png_error(png, "the file ends too early");
  std::memcpy(to, reader->bytes + reader->at, count);
  reader->at += count;
}

/// Reads what stands before the pixels, and asks for rows of RGB.
static bool readHeader(Reader &reader, uint64_t &width, uint64_t &height) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png)))
    return false;
  png_set_read_fn(png, &reader, readBytes);
  png_read_info(png, reader.info);
  width = png_get_image_width(png, reader.info);
  height = png_get_image_height(png, reader.info);
  return true;
}

static bool readPixels(Reader &reader, uint8_t *pixels, uint64_t rowBytes,
                       uint64_t height) {
  png_structp png = reader.png;
  if (setjmp(png_jmpbuf(png)))
    return false;
  png_byte colours = png_get_color_type(png, reader.info);
  png_byte bits = png_get_bit_depth(png, reader.info);
  if (colours == PNG_COLOR_TYPE_PALETTE)
    png_set_palette_to_rgb(png);
  if (colours == PNG_COLOR_TYPE_GRAY && bits < 8)
    png_set_expand_gray_1_2_4_to_8(png);
  if (bits == 16)
    png_set_strip_16(png);
  if (!(colours & PNG_COLOR_MASK_COLOR))
    png_set_gray_to_rgb(png);
  png_set_strip_alpha(png);
  int passes = png_set_interlace_handling(png);
  png_read_update_info(png, reader.info);
  if (png_get_rowbytes(png, reader.info) != rowBytes)
    png_error(png, "the rows do not have the size of their pixels");
  for (int pass = 0; pass < passes; ++pass)
    for (uint64_t y = 0; y < height; ++y)
      png_read_row(png, pixels + y * rowBytes, nullptr);
  png_read_end(png, reader.info);
  return true;
}

bool parsePng(const uint8_t *bytes, uint64_t size, Image &image,
              int &orientation, std::string &problem, uint64_t most) {
  Reader reader{bytes, size};
  reader.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &reader, onError,
                                      onWarning);
  if (reader.png)
    reader.info = png_create_info_struct(reader.png);
  bool good = false;
  if (reader.info) {
    // What a file has besides its picture is no reason to take much memory.
    png_set_user_limits(reader.png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_chunk_malloc_max(reader.png, png_alloc_size_t(8) << 20);
    uint64_t width = 0, height = 0;
    good = readHeader(reader, width, height);
    if (good && !checkSize(width, height, problem, most)) {
      png_destroy_read_struct(&reader.png, &reader.info, nullptr);
      return false;
    }
    if (good) {
      image.resize(int64_t(width), int64_t(height));
      good = readPixels(reader, image.pixels.data(), width * 3, height);
    }
    png_bytep exif = nullptr;
    png_uint_32 exifBytes = 0;
    if (good && png_get_eXIf_1(reader.png, reader.info, &exifBytes, &exif))
      orientation = findOrientation(exif, exifBytes);
  } else {
    std::snprintf(reader.message, sizeof(reader.message), "no memory");
  }
  png_destroy_read_struct(&reader.png, reader.info ? &reader.info : nullptr,
                          nullptr);
  if (!good)
    problem = std::string("is no whole PNG file: ") + reader.message;
  return good;
}

} // namespace attune::runtime
