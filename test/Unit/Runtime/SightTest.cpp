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

#include <array>
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
  picture.fill(0, 3, numbers);
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
  small.fill(0, 6, numbers);
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
  small.fill(0, 3, numbers);
  EXPECT_EQ(numbers[1], float(image.pixels[3]));
  EXPECT_EQ(plain.width(), 0);
  Preparation gemma =
      preparationOf(R"({"image_processor_type": "Gemma3ImageProcessor",
                        "do_pan_and_scan": null,
                        "size": {"height": 3, "width": 5}})");
  Image squeezed;
  ASSERT_EQ(problemOf(bytesOf("rgb.jpg"), squeezed), "read");
  ASSERT_TRUE(gemma.prepare(squeezed, small, problem));
  small.fill(0, 3, numbers);
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
  small.fill(0, 3, numbers);
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
  // Rows of 448 pixels, as high as the file: 1.4 GB.
  auto refuses = [&](const std::string &config, int64_t width, int64_t height) {
    Image image;
    image.resize(width, height);
    problem.clear();
    EXPECT_FALSE(preparationOf(config).prepare(image, picture, problem));
    return problem;
  };
  const std::string intern =
      R"({"image_processor_type": "GotOcr2ImageProcessor", "size": 448,
          "crop_to_patches": )";
  EXPECT_EQ(refuses(intern + "false}", 1, 1 << 20),
            "has 1 x 1048576 pixels, which is too thin to become one of 448 x "
            "448");
  EXPECT_EQ(refuses(intern + "true}", 1, 1 << 20),
            "has 1 x 1048576 pixels, which is too thin to become one of 448 x "
            "5376");
  EXPECT_EQ(refuses(R"({"image_processor_type": "SiglipImageProcessor"})", 1,
                    1 << 20),
            "has 1 x 1048576 pixels, which is too thin to become one of 224 x "
            "224");
  // A row of tiles for each of which there are few pixels.
  const std::string smol =
      R"({"image_processor_type": "SmolVLMImageProcessor",
          "size": {"longest_edge": 2048},
          "max_image_size": {"longest_edge": 512}, "do_resize": )";
  EXPECT_EQ(refuses(smol + "false}", 1 << 20, 1),
            "has 1048576 x 1 pixels, which is too thin to become one of "
            "1048576 x 512");
  // Weights of each pixel of an edge.
  EXPECT_EQ(refuses(smol + "true}", (1 << 20) + 1, 1),
            "has 1048577 x 1 pixels, which is too thin to become one of 2048 x "
            "1");
  EXPECT_EQ(refuses(R"({"image_processor_type": "LlavaNextImageProcessor"})",
                    (1 << 20) + 1, 1),
            "has 1048577 x 1 pixels, which is too thin to become one of 672 x "
            "1");
  // Of these processors pictures stay small.
  ASSERT_TRUE(preparationOf(smol + "true}").prepare(thin, picture, problem));
  EXPECT_EQ(picture.rows, 4);
}

TEST(Sight, WhatIsNotUnderstoodIsRefused) {
  EXPECT_EQ(refused("[]"), "expected an object, found an array");
  EXPECT_EQ(refused("{}"),
            "'image_processor_type': expected one of CLIPImageProcessor, "
            "SiglipImageProcessor, Gemma3ImageProcessor, ViTImageProcessor, "
            "BitImageProcessor, Qwen2VLImageProcessor, PixtralImageProcessor, "
            "Lfm2VlImageProcessor, Idefics3ImageProcessor, "
            "SmolVLMImageProcessor, "
            "GotOcr2ImageProcessor, LlavaNextImageProcessor, found nothing");
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
  auto tiles = [](const std::string &name, const std::string &more) {
    return refused(R"({"image_processor_type": ")" + name +
                   R"(ImageProcessor", )" + more + "}");
  };
  EXPECT_EQ(tiles("Idefics3", R"("do_image_splitting": 0)"),
            "'do_image_splitting': expected true or false, found an integer");
  EXPECT_EQ(tiles("SmolVLM", R"("size": {"height": 512, "width": 512})"),
            "'size/longest_edge': expected pixels from 1 to 16384, found "
            "nothing");
  EXPECT_EQ(tiles("SmolVLM", R"("max_image_size": 512)"),
            "'max_image_size/longest_edge': expected pixels from 1 to 16384, "
            "found nothing");
  EXPECT_EQ(tiles("LlavaNext", R"("image_grid_pinpoints": [[336, 500]])"),
            "'image_grid_pinpoints': expected heights and widths that are "
            "multiples of the model's 336 x 336");
  EXPECT_EQ(tiles("LlavaNext", R"("image_grid_pinpoints": [336, 672])"),
            "'image_grid_pinpoints': expected heights and widths that are "
            "multiples of the model's 336 x 336");
  EXPECT_EQ(tiles("LlavaNext", R"("crop_size": 224)"),
            "'crop_size': expected the size that pictures are stretched to");
  EXPECT_EQ(tiles("GotOcr2", R"("crop_to_patches": true, "max_patches": 0)"),
            "'max_patches': expected tiles from 1 to 4096");
  EXPECT_EQ(tiles("GotOcr2", R"("crop_to_patches": true, "max_patches": 4096)"),
            "'max_patches': so many tiles of 384 x 384 pixels are too many");
}

/// Of published settings; what the processors' own arithmetic gives for them.
TEST(Sight, GridsAreThoseOfTheProcessors) {
  struct Case {
    int64_t width, height, fitWidth, fitHeight, rows, columns;
  };
  // SmolVLM: 2048 pixels, tiles of 512.
  for (const Case &known :
       {Case{640, 480, 2048, 1536, 3, 4}, Case{480, 640, 1536, 2048, 4, 3},
        Case{1000, 1000, 2048, 2048, 4, 4}, Case{1000, 999, 2048, 2046, 4, 4},
        // 2048 / (3 / 2) is 1365.33, which is odd.
        Case{3, 2, 2048, 1366, 3, 4}, Case{100000, 1, 2048, 1, 1, 4},
        Case{1, 100000, 1, 2048, 4, 1}}) {
    int64_t width = known.width, height = known.height;
    fitLongerEdge(width, height, 2048);
    EXPECT_EQ(width, known.fitWidth) << known.width << " " << known.height;
    EXPECT_EQ(height, known.fitHeight) << known.width << " " << known.height;
    TileGrid grid = gridBySize(width, height, 512);
    EXPECT_EQ(grid.rows, known.rows) << known.width << " " << known.height;
    EXPECT_EQ(grid.columns, known.columns)
        << known.width << " " << known.height;
  }
  int64_t width = 4, height = 3;
  fitLongerEdge(width, height, 16384);
  EXPECT_EQ(width, 4096);
  EXPECT_EQ(height, 3072);
  // LLaVA-NeXT: what the listed sizes keep of a picture.
  std::vector<PictureSize> sizes = {
      {672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}};
  for (auto [wide, high, ofWidth, ofHeight, partWidth, partHeight] :
       {std::array<int64_t, 6>{640, 480, 672, 672, 672, 504},
        {300, 200, 672, 336, 504, 336},
        {200, 900, 336, 1008, 225, 1008}, // 200 x 1.12 is 224.00000000000003
        {3000, 500, 1008, 336, 1008, 168},
        {1, 1, 672, 336, 336, 336}}) {
    PictureSize size = chooseSize(wide, high, sizes);
    EXPECT_EQ(size.width, ofWidth) << wide << " " << high;
    EXPECT_EQ(size.height, ofHeight) << wide << " " << high;
    PictureSize part = fitWithin(wide, high, size);
    EXPECT_EQ(part.width, partWidth) << wide << " " << high;
    EXPECT_EQ(part.height, partHeight) << wide << " " << high;
  }
  // InternVL: 1 to 12 tiles of 448. Equal shapes: the largest that is no more
  // than twice the picture.
  for (auto [wide, high, rows, columns] :
       {std::array<int64_t, 4>{640, 480, 3, 4},
        {480, 640, 4, 3},
        {448, 448, 1, 1},
        {1000, 1000, 3, 3},
        {3000, 3000, 3, 3},
        {634, 634, 2, 2},
        {632, 632, 1, 1},
        {1920, 1080, 2, 4},
        {10000, 10, 1, 12}}) {
    TileGrid grid = gridByShape(wide, high, 448, 448, 1, 12);
    EXPECT_EQ(grid.rows, rows) << wide << " " << high;
    EXPECT_EQ(grid.columns, columns) << wide << " " << high;
  }
}

TEST(Sight, PicturesAreCutIntoTiles) {
  Image image;
  ASSERT_EQ(problemOf(bytesOf("rgb.jpg"), image), "read");
  ASSERT_EQ(image.width, 18);
  ASSERT_EQ(image.height, 12);
  Preparation intern = preparationOf(
      R"({"image_processor_type": "GotOcr2ImageProcessorFast",
          "crop_to_patches": true, "max_patches": 6,
          "size": {"height": 8, "width": 8}})");
  Picture picture, other;
  std::string problem;
  ASSERT_TRUE(intern.prepare(image, picture, problem)) << problem;
  EXPECT_EQ(picture.rows, 2);
  EXPECT_EQ(picture.columns, 3);
  EXPECT_EQ(picture.countTiles(), 7);
  EXPECT_EQ(picture.height, 8);
  Image large = image, small = image;
  resample(large, 24, 16, Filter::Bicubic);
  resample(small, 8, 8, Filter::Bicubic);
  for (int64_t tile = 0; tile < 7; ++tile)
    for (int64_t y = 0; y < 8; ++y)
      for (int64_t x = 0; x < 8 * 3; ++x)
        EXPECT_EQ(picture.pixels[size_t(tile * 192 + y * 24 + x)],
                  tile == 6 ? small.at(0, y)[x]
                            : large.at(tile % 3 * 8, tile / 3 * 8 + y)[x]);
  std::vector<float> numbers;
  picture.fill(6, 3, numbers);
  EXPECT_EQ(numbers[1], picture.values[0][small.at(1, 0)[0]]);
  ASSERT_TRUE(intern.prepare(image, other, problem));
  EXPECT_TRUE(picture.looksLike(other));
  std::swap(other.rows, other.columns);
  EXPECT_FALSE(picture.looksLike(other));
  // A picture that fits one tile is one.
  Preparation smol = preparationOf(
      R"({"image_processor_type": "SmolVLMImageProcessor", "do_pad": true,
          "size": {"longest_edge": 8}, "max_image_size": {"longest_edge": 8}})");
  ASSERT_TRUE(smol.prepare(image, picture, problem)) << problem;
  EXPECT_EQ(picture.rows, 0);
  EXPECT_EQ(picture.countTiles(), 1);
  EXPECT_EQ(picture.pixels.size(), 192u);
  // Nor is one cut if the file says so: resized, it becomes a square. Where the
  // file names the fast processor, the filter is another one.
  for (auto [name, filter] :
       {std::pair("Idefics3ImageProcessor", Filter::Lanczos),
        {"SmolVLMImageProcessorFast", Filter::Bicubic}}) {
    Preparation whole =
        preparationOf(R"({"image_processor_type": ")" + std::string(name) +
                      R"(", "do_image_splitting": false, "resample": 1,
                         "size": {"longest_edge": 16},
                         "max_image_size": {"longest_edge": 8}})");
    ASSERT_TRUE(whole.prepare(image, picture, problem)) << problem;
    Image square = image;
    resample(square, 16, 10, filter);
    resample(square, 8, 8, filter);
    EXPECT_EQ(picture.rows, 0);
    EXPECT_EQ(picture.pixels, square.pixels) << name;
  }
  // Without tiles the whole alone is seen.
  Preparation plain =
      preparationOf(R"({"image_processor_type": "GotOcr2ImageProcessor",
                        "size": {"height": 8, "width": 8}})");
  ASSERT_TRUE(plain.prepare(image, picture, problem)) << problem;
  EXPECT_EQ(picture.pixels, small.pixels);
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
