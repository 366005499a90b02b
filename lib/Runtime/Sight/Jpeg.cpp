//===- Jpeg.cpp - JPEG files through libjpeg ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Image.h"

#include <csetjmp>
#include <cstdio>
#include <cstring>
// It wants the types of stdio.h.
#include <jpeglib.h>

#include <jerror.h>

namespace attune::runtime {

namespace {
/// libjpeg leaves its functions by longjmp: nothing between a setjmp and the
/// calls behind it may have a destructor.
struct Reader {
  jpeg_decompress_struct jpeg;
  jpeg_error_mgr errors;
  jpeg_source_mgr source;
  jpeg_progress_mgr progress;
  jmp_buf escape;
  char message[JMSG_LENGTH_MAX];
};
} // namespace

/// More passes over a picture than encoders make: a small file could keep a
/// reader busy for hours.
static constexpr int mostScans = 256;

static Reader &readerOf(j_common_ptr jpeg) {
  return *static_cast<Reader *>(jpeg->client_data);
}

[[noreturn]] static void fail(j_common_ptr jpeg, const char *message) {
  Reader &reader = readerOf(jpeg);
  std::snprintf(reader.message, sizeof(reader.message), "%s", message);
  longjmp(reader.escape, 1);
}

[[noreturn]] static void onError(j_common_ptr jpeg) {
  char message[JMSG_LENGTH_MAX];
  jpeg->err->format_message(jpeg, message);
  fail(jpeg, message);
}

static void onMessage(j_common_ptr, int) {}

static void watchScans(j_common_ptr jpeg) {
  if (reinterpret_cast<j_decompress_ptr>(jpeg)->input_scan_number > mostScans)
    fail(jpeg, "it has too many scans");
}

static void startSource(j_decompress_ptr) {}

static boolean refill(j_decompress_ptr jpeg) {
  fail(reinterpret_cast<j_common_ptr>(jpeg), "the file ends too early");
}

static void skip(j_decompress_ptr jpeg, long count) {
  if (count <= 0)
    return;
  if (static_cast<size_t>(count) > jpeg->src->bytes_in_buffer)
    refill(jpeg);
  jpeg->src->next_input_byte += count;
  jpeg->src->bytes_in_buffer -= static_cast<size_t>(count);
}

static bool readHeader(Reader &reader) {
  if (setjmp(reader.escape))
    return false;
  jpeg_create_decompress(&reader.jpeg);
  reader.jpeg.src = &reader.source;
  reader.jpeg.progress = &reader.progress;
  jpeg_save_markers(&reader.jpeg, JPEG_APP0 + 1, 0xFFFF);
  jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

/// Pillow takes all files of four colours for Adobe's, whose numbers say how
/// much of a colour is not there.
static void toRgb(const uint8_t *cmyk, uint8_t *rgb, int64_t width) {
  for (int64_t x = 0; x < width; ++x, cmyk += 4, rgb += 3)
    for (int c = 0; c < 3; ++c) {
      int product = (255 - cmyk[c]) * cmyk[3] + 128;
      product = ((product >> 8) + product) >> 8;
      rgb[c] = static_cast<uint8_t>(cmyk[3] - product);
    }
}

static bool readPixels(Reader &reader, uint8_t *pixels, uint8_t *row) {
  if (setjmp(reader.escape))
    return false;
  j_decompress_ptr jpeg = &reader.jpeg;
  bool four = jpeg->num_components == 4;
  jpeg->out_color_space = four ? JCS_CMYK : JCS_RGB;
  jpeg_start_decompress(jpeg);
  auto width = static_cast<int64_t>(jpeg->output_width);
  if (jpeg->output_components != (four ? 4 : 3))
    fail(reinterpret_cast<j_common_ptr>(jpeg), "its colours are not known");
  while (jpeg->output_scanline < jpeg->output_height) {
    uint8_t *to = pixels + int64_t(jpeg->output_scanline) * width * 3;
    JSAMPROW place = four ? row : to;
    if (jpeg_read_scanlines(jpeg, &place, 1) != 1)
      fail(reinterpret_cast<j_common_ptr>(jpeg), "the file ends too early");
    if (four)
      toRgb(row, to, width);
  }
  return true;
}

static int orientationOf(const jpeg_decompress_struct &jpeg) {
  constexpr char start[] = "Exif\0"; // and the zero behind it
  for (jpeg_saved_marker_ptr marker = jpeg.marker_list; marker;
       marker = marker->next)
    if (marker->marker == JPEG_APP0 + 1 &&
        marker->data_length >= sizeof(start) &&
        std::memcmp(marker->data, start, sizeof(start)) == 0)
      return findOrientation(marker->data + sizeof(start),
                             marker->data_length - sizeof(start));
  return 1;
}

bool parseJpeg(const uint8_t *bytes, uint64_t size, Image &image,
               int &orientation, std::string &problem, uint64_t most) {
  Reader reader = {};
  reader.jpeg.err = jpeg_std_error(&reader.errors);
  reader.errors.error_exit = onError;
  reader.errors.emit_message = onMessage;
  reader.jpeg.client_data = &reader;
  reader.progress.progress_monitor = watchScans;
  reader.source.next_input_byte = bytes;
  reader.source.bytes_in_buffer = size;
  reader.source.init_source = startSource;
  reader.source.fill_input_buffer = refill;
  reader.source.skip_input_data = skip;
  reader.source.resync_to_restart = jpeg_resync_to_restart;
  reader.source.term_source = startSource;
  bool good = readHeader(reader);
  if (good && !checkSize(reader.jpeg.image_width, reader.jpeg.image_height,
                         problem, most)) {
    jpeg_destroy_decompress(&reader.jpeg);
    return false;
  }
  if (good) {
    orientation = orientationOf(reader.jpeg);
    image.resize(reader.jpeg.image_width, reader.jpeg.image_height);
    std::vector<uint8_t> row(static_cast<size_t>(image.width) * 4);
    good = readPixels(reader, image.pixels.data(), row.data());
  }
  jpeg_destroy_decompress(&reader.jpeg);
  if (!good)
    problem = std::string("is no whole JPEG file: ") + reader.message;
  return good;
}

} // namespace attune::runtime
