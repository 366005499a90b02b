//===- ImageFuzzer.cpp - Files of pictures --------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Sight/Preparation.h"

#include <cmath>

using namespace attune::runtime;

/// Whether the header speaks of more pixels than are worth the time.
static bool isLarge(const uint8_t *data, size_t size) {
  uint64_t width = 0, height = 0;
  if (size < 24 || data[0] != 0x89)
    return false;
  for (int i = 0; i < 4; ++i) {
    width = width << 8 | data[16 + i];
    height = height << 8 | data[20 + i];
  }
  std::string problem;
  return checkSize(width, height, problem) && width * height > 1 << 20;
}

static Preparation preparationOf(const char *text) {
  JsonValue config;
  std::string problem;
  FUZZ_REQUIRE(parseJson(text, config, problem));
  Preparation read;
  FUZZ_REQUIRE(read.read(config, problem));
  return read;
}

/// A file that is read has the pixels that it says, and a model sees numbers of
/// them: of one image of 8 x 8, or of tiles of that size.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Preparation preparation =
      preparationOf("{\"image_processor_type\": \"CLIPImageProcessor\","
                    "\"size\": 8, \"crop_size\": 8}");
  static const Preparation tiles[] = {
      preparationOf("{\"image_processor_type\": \"SmolVLMImageProcessor\","
                    "\"size\": {\"longest_edge\": 32},"
                    "\"max_image_size\": {\"longest_edge\": 8}}"),
      preparationOf("{\"image_processor_type\": \"GotOcr2ImageProcessor\","
                    "\"size\": 8, \"crop_to_patches\": true}"),
      preparationOf("{\"image_processor_type\": \"LlavaNextImageProcessor\","
                    "\"size\": 8, \"crop_size\": 8,"
                    "\"image_grid_pinpoints\": [[8, 16], [24, 8]]}")};
  if (isLarge(data, size))
    return 0;
  Image image;
  std::string problem;
  if (!parseImage(data, size, image, problem)) {
    FUZZ_REQUIRE(!problem.empty());
    return 0;
  }
  FUZZ_REQUIRE(image.width > 0 && image.height > 0);
  FUZZ_REQUIRE(image.pixels.size() == size_t(image.width * image.height * 3));
  if (image.width * image.height > 1 << 16)
    return 0;
  for (const Preparation &cut : tiles) {
    Picture picture;
    FUZZ_REQUIRE(cut.prepare(image, picture, problem));
    FUZZ_REQUIRE(picture.pixels.size() == size_t(picture.countTiles() * 192));
    FUZZ_REQUIRE(picture.countTiles() <= 17);
  }
  Picture picture;
  if (!preparation.prepare(std::move(image), picture, problem)) {
    FUZZ_REQUIRE(!problem.empty());
    return 0;
  }
  std::vector<float> numbers;
  picture.fill(0, 3, numbers);
  FUZZ_REQUIRE(numbers.size() == 3 * 8 * 8);
  for (float number : numbers)
    FUZZ_REQUIRE(std::fabs(number) < 10);
  return 0;
}
