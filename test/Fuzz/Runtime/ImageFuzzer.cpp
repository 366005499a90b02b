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

/// A file that is read has the pixels that it says, and a model sees numbers of
/// them.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const Preparation preparation = [] {
    JsonValue config;
    std::string problem;
    FUZZ_REQUIRE(parseJson("{\"image_processor_type\": \"CLIPImageProcessor\","
                           "\"size\": 8, \"crop_size\": 8}",
                           config, problem));
    Preparation read;
    FUZZ_REQUIRE(read.read(config, problem));
    return read;
  }();
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
