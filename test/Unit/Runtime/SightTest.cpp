//===- SightTest.cpp - Pictures in files, and what models see -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// pictures.txt holds what Pillow makes of the files in Inputs/pictures;
// pictures.py wrote both.
//
//===----------------------------------------------------------------------===//

#include "Sight/Preparation.h"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

using namespace attune::runtime;

namespace {

const std::string folder = ATTUNE_TEST_DIR "/Unit/Runtime/";

std::string bytesOf(const std::string &name) {
  std::ifstream file(folder + "Inputs/pictures/" + name, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string problemOf(const std::string &bytes, Image &image) {
  // In memory of its own, so that sanitizers see what is read behind its end.
  std::vector<uint8_t> copy(bytes.begin(), bytes.end());
  std::string problem;
  if (parseImage(copy.data(), copy.size(), image, problem))
    return problem.empty() ? "read" : problem;
  return problem;
}

std::string problemOf(const std::string &bytes) {
  Image image;
  return problemOf(bytes, image);
}

Preparation preparationOf(const std::string &config) {
  JsonValue value;
  std::string problem;
  EXPECT_TRUE(parseJson(config, value, problem)) << problem;
  Preparation preparation;
  EXPECT_TRUE(preparation.read(value, problem)) << problem;
  return preparation;
}

std::string refused(const std::string &config) {
  JsonValue value;
  std::string problem;
  EXPECT_TRUE(parseJson(config, value, problem)) << problem;
  Preparation preparation;
  EXPECT_FALSE(preparation.read(value, problem));
  return problem;
}

/// Every form of file and every filter, bit for bit.
TEST(Sight, PixelsAreThoseOfPillow) {
  std::ifstream file(folder + "pictures.txt");
  std::string line;
  int count = 0;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name, pixels;
    int64_t width, height, number, newWidth, newHeight;
    words >> name >> width >> height >> number >> newWidth >> newHeight >>
        pixels;
    if (name == "prepared")
      continue;
    Image image;
    ASSERT_EQ(problemOf(bytesOf(name), image), "read") << name;
    if (number)
      resample(image, width, height, Filter(number - 1));
    EXPECT_EQ(image.width, newWidth) << line;
    EXPECT_EQ(image.height, newHeight) << line;
    std::string found;
    for (uint8_t byte : image.pixels) {
      found += "0123456789abcdef"[byte / 16];
      found += "0123456789abcdef"[byte % 16];
    }
    EXPECT_EQ(found, pixels) << line.substr(0, 40);
    ++count;
  }
  EXPECT_EQ(count, 27);
}

TEST(Sight, ClipSeesWhatItsProcessorMakes) {
  std::ifstream file(folder + "pictures.txt");
  std::string line;
  while (std::getline(file, line) && line.compare(0, 9, "prepared ") != 0)
    ;
  std::istringstream words(line.substr(9));
  Preparation preparation = preparationOf(
      R"({"image_processor_type": "CLIPImageProcessor", "do_convert_rgb": true,
          "size": {"shortest_edge": 7}, "crop_size": {"height": 6, "width": 12},
          "resample": 3})");
  EXPECT_EQ(preparation.height(), 6);
  EXPECT_EQ(preparation.width(), 12);
  Image image;
  ASSERT_EQ(problemOf(bytesOf("rgb.jpg"), image), "read");
  Picture picture;
  std::vector<float> numbers;
  std::string problem;
  ASSERT_TRUE(preparation.prepare(image, picture, problem)) << problem;
  picture.fill(3, numbers);
  ASSERT_EQ(numbers.size(), size_t(3 * 6 * 12));
  EXPECT_EQ(picture.width, 12);
  for (float number : numbers) {
    double expected = 0;
    ASSERT_TRUE(words >> expected);
    // A few roundings of numbers below 3.
    EXPECT_NEAR(number, expected, 1e-6);
  }
}

TEST(Sight, ProcessorsHaveTheirDefaults) {
  Image image;
  ASSERT_EQ(problemOf(bytesOf("rgb.jpg"), image), "read");
  Preparation siglip =
      preparationOf(R"({"image_processor_type": "SiglipImageProcessorFast",
                        "size": {"height": 3, "width": 5}})");
  Picture small, same;
  std::vector<float> numbers;
  std::string problem;
  ASSERT_TRUE(siglip.prepare(image, small, problem));
  // Two frames: each colour of both, one after the other.
  small.fill(6, numbers);
  ASSERT_EQ(numbers.size(), size_t(6 * 3 * 5));
  for (size_t i = 0; i < 90; ++i)
    EXPECT_EQ(numbers[i], numbers[i / 30 * 30 + i % 15]);
  ASSERT_TRUE(siglip.prepare(image, same, problem));
  EXPECT_TRUE(small.looksLike(same) && small.number != same.number);
  same.pixels[7] ^= 1;
  EXPECT_FALSE(small.looksLike(same));
  resample(image, 5, 3, Filter::Bicubic);
  for (size_t i = 0; i < 15; ++i)
    EXPECT_NEAR(numbers[i], image.pixels[3 * i] / 127.5 - 1, 1e-6);
  Preparation plain = preparationOf(
      R"({"feature_extractor_type": "ViTFeatureExtractor", "size": 224,
          "do_resize": false, "do_normalize": false, "do_rescale": false})");
  ASSERT_TRUE(plain.prepare(image, small, problem));
  small.fill(3, numbers);
  EXPECT_EQ(numbers[1], float(image.pixels[3]));
  EXPECT_EQ(plain.width(), 0);
  Preparation gemma =
      preparationOf(R"({"image_processor_type": "Gemma3ImageProcessor",
                        "do_pan_and_scan": null,
                        "size": {"height": 3, "width": 5}})");
  Image squeezed;
  ASSERT_EQ(problemOf(bytesOf("rgb.jpg"), squeezed), "read");
  ASSERT_TRUE(gemma.prepare(squeezed, small, problem));
  small.fill(3, numbers);
  resample(squeezed, 5, 3, Filter::Bilinear);
  for (size_t i = 0; i < 15; ++i)
    EXPECT_NEAR(numbers[i], squeezed.pixels[3 * i] / 127.5 - 1, 1e-6);
  Preparation pixtral =
      preparationOf(R"({"image_processor_type": "PixtralImageProcessorFast",
                        "size": {"longest_edge": 1024},
                        "patch_size": {"height": 16, "width": 16}})");
  ASSERT_TRUE(pixtral.takesAnySize());
  pixtral.resizeTo(3, 5);
  ASSERT_EQ(problemOf(bytesOf("rgb.jpg"), squeezed), "read");
  ASSERT_TRUE(pixtral.prepare(squeezed, small, problem));
  small.fill(3, numbers);
  resample(squeezed, 5, 3, Filter::Bicubic);
  for (size_t i = 0; i < 15; ++i)
    EXPECT_NEAR(numbers[i],
                (squeezed.pixels[3 * i] / 255.0 - 0.48145466) / 0.26862954,
                1e-6);
  EXPECT_EQ(preparationOf(R"({"image_processor_type": "BitImageProcessor",
                              "size": {"shortest_edge": 256}})")
                .width(),
            224);
}

TEST(Sight, ThinPicturesStaySmall) {
  Preparation clip =
      preparationOf(R"({"image_processor_type": "CLIPImageProcessor"})");
  Image thin;
  thin.resize(1, 1 << 20);
  Picture picture;
  std::string problem;
  EXPECT_FALSE(clip.prepare(thin, picture, problem));
  EXPECT_EQ(problem, "has 1 x 1048576 pixels, which is too thin: its shorter "
                     "edge becomes one of 224");
}

TEST(Sight, WhatIsNotUnderstoodIsRefused) {
  EXPECT_EQ(refused("[]"), "expected an object, found an array");
  EXPECT_EQ(refused("{}"),
            "'image_processor_type': expected one of CLIPImageProcessor, "
            "SiglipImageProcessor, Gemma3ImageProcessor, ViTImageProcessor, "
            "BitImageProcessor, Qwen2VLImageProcessor, PixtralImageProcessor, "
            "found nothing");
  EXPECT_EQ(refused(R"({"image_processor_type": "Gemma3ImageProcessor",
                        "do_pan_and_scan": true})"),
            "'do_pan_and_scan': pictures of which parts are seen, too, are not "
            "understood");
  auto clip = [](const std::string &more) {
    return refused(R"({"image_processor_type": "CLIPImageProcessor", )" + more +
                   "}");
  };
  EXPECT_EQ(clip(R"("do_pad": true)"),
            "'do_pad': pictures that are padded are not understood");
  EXPECT_EQ(clip(R"("resample": 0)"),
            "'resample': expected 1 to 5 (Lanczos, bilinear, bicubic, box, "
            "Hamming)");
  EXPECT_EQ(clip(R"("size": {"longest_edge": 5})"),
            "'size': a longest edge is not understood");
  EXPECT_EQ(clip(R"("size": 0)"), "'size': expected pixels from 1 to 16384");
  EXPECT_EQ(clip(R"("crop_size": {"height": 5})"),
            "'crop_size/width': expected pixels from 1 to 16384, found "
            "nothing");
  EXPECT_EQ(clip(R"("image_std": [1, 0, 1])"),
            "'image_std': expected three numbers, of red, green and blue, none "
            "of them 0");
  EXPECT_EQ(clip(R"("do_rescale": 1)"),
            "'do_rescale': expected true or false, found an integer");
}

TEST(Sight, OtherFilesAreNamed) {
  EXPECT_EQ(problemOf(""), "is neither a PNG nor a JPEG file");
  EXPECT_EQ(problemOf("{\"a\": 1}"), "is neither a PNG nor a JPEG file");
  EXPECT_EQ(problemOf("GIF89a"), "is a GIF file; PNG and JPEG are read");
  EXPECT_EQ(problemOf("RIFF....WEBPVP8 "),
            "is a WebP file; PNG and JPEG are read");
  EXPECT_EQ(problemOf(std::string("....ftypheic")),
            "is a HEIC or AVIF file; PNG and JPEG are read");
}

TEST(Sight, HugePicturesAreRefusedBeforeTheyTakeMemory) {
  std::string png = bytesOf("rgb.png");
  // Width and height, and the sum over the chunk.
  png.replace(16, 8, std::string("\x7f\xff\xff\xff\x7f\xff\xff\xff", 8));
  png.replace(29, 4, std::string("\x9b\xab\x9c\x31", 4));
  EXPECT_EQ(problemOf(png), "has 2147483647 x 2147483647 pixels; 134217728 in "
                            "all are the most that are read");
  std::string jpeg = bytesOf("l.jpg");
  size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, std::string("\xff\xdc\xff\xdc", 4));
  EXPECT_EQ(problemOf(jpeg), "has 65500 x 65500 pixels; 134217728 in all are "
                             "the most that are read");
}

/// A file that ends early says so, wherever that is.
TEST(Sight, PartsOfFilesAreRefused) {
  for (const char *name : {"rgb.png", "p.png", "rgb.jpg", "progressive.jpg"}) {
    std::string bytes = bytesOf(name);
    // What stands behind the pixels may be missing.
    size_t most = bytes.size() - (bytes[0] == '\x89' ? 1 : 30);
    for (size_t size = 8; size < most; size += 1 + size / 32) {
      std::string problem = problemOf(bytes.substr(0, size));
      EXPECT_NE(problem.find(bytes[0] == '\x89' ? "is no whole PNG file: "
                                                : "is no whole JPEG file: "),
                std::string::npos)
          << name << " " << size << ": " << problem;
    }
  }
}

/// Whatever stands in a file, it is a picture or there is a reason.
TEST(Sight, DamagedFilesAreNoDanger) {
  uint32_t random = 1;
  for (const char *name : {"rgba.png", "rgb16.png", "rgb.jpg", "cmyk.jpg",
                           "progressive.jpg", "turned6.jpg", "turned7.png"}) {
    const std::string bytes = bytesOf(name);
    for (int round = 0; round < 300; ++round) {
      std::string damaged = bytes;
      for (int i = 0; i < 3; ++i) {
        random = random * 1664525 + 1013904223;
        damaged[random / 7 % damaged.size()] = char(random >> 24);
      }
      Image image;
      std::string problem = problemOf(damaged, image);
      EXPECT_FALSE(problem.empty());
      if (problem == "read") {
        EXPECT_EQ(image.pixels.size(), size_t(image.width * image.height * 3));
      }
    }
  }
}

} // namespace
