//===- Preparation.cpp - What a model sees of a picture -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Preparation.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace attune::runtime {

namespace {
/// A published processor and what it does where its file says nothing.
struct Processor {
  const char *name; ///< before "ImageProcessor" or "FeatureExtractor"
  bool shortestEdge, crops;
  int64_t size; ///< 0: any
  Filter filter;
  double mean[3], deviation[3];
  Tiling tiling = Tiling::None;
};
} // namespace

#define CLIP_COLOURS                                                           \
  {0.48145466, 0.4578275, 0.40821073}, {0.26862954, 0.26130258, 0.27577711}
#define HALVES {0.5, 0.5, 0.5}, {0.5, 0.5, 0.5}
static constexpr Processor processors[] = {
    {"CLIP", true, true, 224, Filter::Bicubic, CLIP_COLOURS},
    {"Siglip", false, false, 224, Filter::Bicubic, HALVES},
    {"Gemma3", false, false, 224, Filter::Bilinear, HALVES},
    {"ViT", false, false, 224, Filter::Bilinear, HALVES},
    {"Bit", true, true, 224, Filter::Bicubic, CLIP_COLOURS},
    {"Qwen2VL", false, false, 0, Filter::Bicubic, CLIP_COLOURS},
    {"Pixtral", false, false, 0, Filter::Bicubic, CLIP_COLOURS},
    {"Lfm2Vl", false, false, 0, Filter::Bilinear, HALVES},
    {"Idefics3", false, false, 364, Filter::Lanczos, HALVES, Tiling::BySize},
    {"SmolVLM", false, false, 364, Filter::Lanczos, HALVES, Tiling::BySize},
    {"GotOcr2", false, false, 384, Filter::Bicubic, CLIP_COLOURS,
     Tiling::ByShape},
    {"LlavaNext", true, true, 336, Filter::Bicubic, CLIP_COLOURS,
     Tiling::ByList},
};
#undef CLIP_COLOURS
#undef HALVES

/// The largest size that a file may ask for.
static constexpr int64_t mostEdge = 16384;

static const JsonValue *member(const JsonValue &object, const char *key) {
  const JsonValue *value = object.find(key);
  return value && !value->isNull() ? value : nullptr;
}

static bool readFlag(const JsonValue &config, const char *key, bool &flag,
                     std::string &problem) {
  const JsonValue *value = member(config, key);
  if (!value)
    return true;
  flag = value->boolean;
  if (!value->isBool())
    problem = std::string("'") + key + "': expected true or false, found " +
              value->kindName();
  return value->isBool();
}

static bool readEdge(const JsonValue *value, const std::string &key,
                     int64_t &edge, std::string &problem) {
  if (!value || !value->isInt() || value->integer < 1 ||
      value->integer > mostEdge) {
    problem = "'" + key + "': expected pixels from 1 to " +
              std::to_string(mostEdge) + (value ? "" : ", found nothing");
    return false;
  }
  edge = value->integer;
  return true;
}

/// A number of both edges, or an object with "height" and "width".
static bool readBoth(const JsonValue &value, const std::string &key,
                     int64_t &height, int64_t &width, std::string &problem) {
  if (!value.isObject()) {
    if (!readEdge(&value, key, height, problem))
      return false;
    width = height;
    return true;
  }
  return readEdge(value.find("height"), key + "/height", height, problem) &&
         readEdge(value.find("width"), key + "/width", width, problem);
}

bool Preparation::readSizes(const JsonValue &config, std::string &problem) {
  if (const JsonValue *size = member(config, "size")) {
    bool square = shortest == 0;
    const JsonValue *edge = size->find("shortest_edge");
    if (size->isObject() &&
        (size->find("longest_edge") || size->find("max_height"))) {
      problem = "'size': a longest edge is not understood";
      return false;
    }
    shortest = fixedHeight = fixedWidth = 0;
    if (edge || (!size->isObject() && !square)) {
      if (!readEdge(edge ? edge : size, "size", shortest, problem))
        return false;
    } else if (!readBoth(*size, "size", fixedHeight, fixedWidth, problem)) {
      return false;
    }
  }
  if (const JsonValue *crop = member(config, "crop_size"))
    return readBoth(*crop, "crop_size", cropHeight, cropWidth, problem);
  return true;
}

/// A number of tiles.
static bool readCount(const JsonValue &config, const char *key, int64_t &count,
                      std::string &problem) {
  constexpr int64_t most = 4096;
  const JsonValue *value = member(config, key);
  if (!value)
    return true;
  count = value->isInt() ? value->integer : 0;
  if (count < 1 || count > most)
    problem = std::string("'") + key + "': expected tiles from 1 to " +
              std::to_string(most);
  return problem.empty();
}

/// The longest edge that `key` has.
static bool readLongest(const JsonValue &config, const char *key, int64_t &edge,
                        std::string &problem) {
  const JsonValue *value = member(config, key);
  return !value || readEdge(value->find("longest_edge"),
                            std::string(key) + "/longest_edge", edge, problem);
}

/// The sizes that pictures in tiles may have.
bool Preparation::readList(const JsonValue &config, std::string &problem) {
  static constexpr PictureSize usual[] = {
      {672, 336}, {336, 672}, {672, 672}, {336, 1008}, {1008, 336}};
  constexpr size_t most = 1024;
  if (!readSizes(config, problem))
    return false;
  // The whole picture is stretched to a square.
  if (shortest)
    fixedHeight = fixedWidth = shortest;
  shortest = 0;
  if (crops && (cropHeight != fixedHeight || cropWidth != fixedWidth)) {
    problem = "'crop_size': expected the size that pictures are stretched to";
    return false;
  }
  crops = false;
  sizes.assign(std::begin(usual), std::end(usual));
  const JsonValue *list = member(config, "image_grid_pinpoints");
  bool good = !list || (list->isArray() && !list->items.empty() &&
                        list->items.size() <= most);
  if (list)
    sizes.clear();
  for (size_t i = 0; list && good && i < list->items.size(); ++i) {
    const JsonValue &pair = list->items[i];
    good = pair.isArray() && pair.items.size() == 2 && pair.items[0].isInt() &&
           pair.items[1].isInt();
    if (good)
      sizes.push_back({pair.items[1].integer, pair.items[0].integer});
  }
  for (PictureSize size : sizes)
    good &= size.width > 0 && size.width <= mostEdge && size.height > 0 &&
            size.height <= mostEdge && size.width % fixedWidth == 0 &&
            size.height % fixedHeight == 0 &&
            size.width * size.height <= static_cast<int64_t>(kMostPixels);
  if (!good)
    problem = "'image_grid_pinpoints': expected heights and widths that are "
              "multiples of the model's " +
              std::to_string(fixedHeight) + " x " + std::to_string(fixedWidth);
  return good;
}

/// Sizes of what is cut into tiles.
bool Preparation::readTiles(const JsonValue &config, std::string &problem) {
  if (tiling == Tiling::ByList)
    return readList(config, problem);
  if (tiling == Tiling::ByShape) {
    bool cuts = false;
    mostTiles = 12;
    if (!readSizes(config, problem) ||
        !readFlag(config, "crop_to_patches", cuts, problem) ||
        !readCount(config, "min_patches", leastTiles, problem) ||
        !readCount(config, "max_patches", mostTiles, problem))
      return false;
    if (!cuts || mostTiles == 1)
      tiling = Tiling::None;
    else if (fixedWidth * fixedHeight >
             static_cast<int64_t>(kMostPixels) / mostTiles)
      problem = "'max_patches': so many tiles of " +
                std::to_string(fixedWidth) + " x " +
                std::to_string(fixedHeight) + " pixels are too many";
    return problem.empty();
  }
  longest = 4 * fixedWidth;
  if (!readFlag(config, "do_image_splitting", splits, problem) ||
      !readLongest(config, "size", longest, problem) ||
      !readLongest(config, "max_image_size", fixedWidth, problem))
    return false;
  fixedHeight = fixedWidth;
  return true;
}

bool Preparation::readNumbers(const JsonValue &config, std::string &problem) {
  if (const JsonValue *scale = member(config, "rescale_factor")) {
    factor = scale->real;
    if (!scale->isNumber() || !std::isfinite(factor)) {
      problem = "'rescale_factor': expected a number";
      return false;
    }
  }
  for (auto [key, to] :
       {std::pair("image_mean", mean), std::pair("image_std", deviation)}) {
    const JsonValue *numbers = member(config, key);
    if (!numbers)
      continue;
    bool single = numbers->isNumber();
    bool good = single || (numbers->isArray() && numbers->items.size() == 3);
    for (int c = 0; good && c < 3; ++c) {
      const JsonValue &number =
          single ? *numbers : numbers->items[static_cast<size_t>(c)];
      to[c] = number.real;
      good = number.isNumber() && std::isfinite(number.real) &&
             (to == mean || number.real != 0);
    }
    if (!good) {
      problem = std::string("'") + key +
                "': expected three numbers, of red, green and blue" +
                (to == mean ? "" : ", none of them 0");
      return false;
    }
  }
  return true;
}

/// Pillow's numbers of its filters; 0 is that of the nearest pixel.
static bool readFilter(const JsonValue &config, Filter &filter,
                       std::string &problem) {
  const JsonValue *number = member(config, "resample");
  if (!number)
    return true;
  static constexpr Filter filters[] = {Filter::Lanczos, Filter::Bilinear,
                                       Filter::Bicubic, Filter::Box,
                                       Filter::Hamming};
  if (!number->isInt() || number->integer < 1 || number->integer > 5) {
    problem = "'resample': expected 1 to 5 (Lanczos, bilinear, bicubic, box, "
              "Hamming)";
    return false;
  }
  filter = filters[number->integer - 1];
  return true;
}

bool Preparation::read(const JsonValue &config, std::string &problem) {
  if (!config.isObject()) {
    problem = std::string("expected an object, found ") + config.kindName();
    return false;
  }
  const JsonValue *type = member(config, "image_processor_type");
  if (!type)
    type = member(config, "feature_extractor_type");
  const Processor *chosen = nullptr;
  std::string names;
  for (const Processor &known : processors) {
    std::string name = std::string(known.name) + "ImageProcessor";
    names += (names.empty() ? "" : ", ") + name;
    if (type && (type->string == name || type->string == name + "Fast" ||
                 type->string == std::string(known.name) + "FeatureExtractor"))
      chosen = &known;
  }
  if (!chosen) {
    problem = "'image_processor_type': expected one of " + names +
              (type ? ", found '" + type->string + "'" : ", found nothing");
    return false;
  }
  // Tiles of one size are not padded, nor are pictures of LFM2-VL, which all
  // have the same size here.
  bool pads = false;
  if (!readFlag(config, "do_pad", pads, problem))
    return false;
  if (pads && chosen->tiling != Tiling::BySize &&
      chosen->tiling != Tiling::ByList &&
      std::string_view(chosen->name) != "Lfm2Vl") {
    problem = "'do_pad': pictures that are padded are not understood";
    return false;
  }
  bool pansAndScans = false;
  if (!readFlag(config, "do_pan_and_scan", pansAndScans, problem))
    return false;
  if (pansAndScans) {
    problem = "'do_pan_and_scan': pictures of which parts are seen, too, are "
              "not understood";
    return false;
  }
  anySize = chosen->size == 0;
  shortest = chosen->shortestEdge ? chosen->size : 0;
  fixedHeight = fixedWidth = chosen->shortestEdge ? 0 : chosen->size;
  crops = chosen->crops;
  cropHeight = cropWidth = chosen->size;
  filter = chosen->filter;
  std::copy_n(chosen->mean, 3, mean);
  std::copy_n(chosen->deviation, 3, deviation);
  tiling = chosen->tiling;
  // The others have no such keys.
  if (chosen->crops && !readFlag(config, "do_center_crop", crops, problem))
    return false;
  if (!readFlag(config, "do_resize", resizes, problem) ||
      !readFlag(config, "do_rescale", rescales, problem) ||
      !readFlag(config, "do_normalize", normalizes, problem) ||
      (tiling != Tiling::None && !readTiles(config, problem)) ||
      (!anySize && chosen->tiling == Tiling::None &&
       !readSizes(config, problem)) ||
      !readFilter(config, filter, problem) || !readNumbers(config, problem))
    return false;
  // Torchvision's tensors have no Lanczos.
  const std::string &name = type->string;
  if (filter == Filter::Lanczos && name.size() > 4 &&
      name.compare(name.size() - 4, 4, "Fast") == 0)
    filter = Filter::Bicubic;
  if (!resizes)
    longest = 0;
  if (!resizes && tiling == Tiling::None)
    fixedHeight = fixedWidth = shortest = 0;
  anySize &= resizes;
  return true;
}

/// Where a row of `after` places has its part in one of `before`, or the other
/// way round: the middle, black where there is none.
static void placeCrop(int64_t before, int64_t after, int64_t &from, int64_t &to,
                      int64_t &count) {
  count = std::min(before, after);
  from = before > after ? (before - after) / 2 : 0;
  to = before > after ? 0 : (after - before + 1) / 2;
}

static void crop(Image &image, int64_t width, int64_t height) {
  Image middle;
  middle.resize(width, height);
  int64_t fromX, toX, columns, fromY, toY, rows;
  placeCrop(image.width, width, fromX, toX, columns);
  placeCrop(image.height, height, fromY, toY, rows);
  for (int64_t y = 0; y < rows; ++y)
    std::memcpy(middle.at(toX, toY + y), image.at(fromX, fromY + y),
                static_cast<size_t>(columns * 3));
  image = std::move(middle);
}

/// Brings an image to another size, unless that takes too much memory: its rows
/// become shorter or longer first, and each edge has weights for its pixels.
static bool scale(Image &image, int64_t width, int64_t height, Filter filter,
                  const Picture &picture, std::string &problem) {
  constexpr int64_t longestEdge = 1 << 20;
  int64_t mostRows = static_cast<int64_t>(kMostPixels) / width;
  if (std::max(image.width, image.height) <= longestEdge &&
      std::max(image.height, height) <= mostRows) {
    resample(image, width, height, filter);
    return true;
  }
  problem = "has " + std::to_string(picture.fileWidth) + " x " +
            std::to_string(picture.fileHeight) +
            " pixels, which is too thin to become one of " +
            std::to_string(width) + " x " + std::to_string(height);
  return false;
}

/// Pictures become larger first, so that they consist of whole tiles.
bool Preparation::cut(Image image, Picture &picture,
                      std::string &problem) const {
  auto bringTo = [&](Image &one, int64_t width, int64_t height) {
    return scale(one, width, height, filter, picture, problem);
  };
  Image whole;
  TileGrid grid;
  if (tiling == Tiling::BySize) {
    int64_t width = image.width, height = image.height;
    if (longest) {
      fitLongerEdge(width, height, longest);
      if (!bringTo(image, width, height))
        return false;
    }
    // What is not cut becomes a square.
    if (splits)
      grid = gridBySize(width, height, fixedWidth);
  } else if (tiling == Tiling::ByList) {
    PictureSize size = chooseSize(image.width, image.height, sizes);
    PictureSize part = fitWithin(image.width, image.height, size);
    whole = image;
    if (!bringTo(image, part.width, part.height))
      return false;
    fillUp(image, size);
    grid = {size.height / fixedHeight, size.width / fixedWidth};
  } else {
    grid = gridByShape(image.width, image.height, fixedWidth, fixedHeight,
                       leastTiles, mostTiles);
    whole = image;
  }
  if (!bringTo(image, grid.columns * fixedWidth, grid.rows * fixedHeight))
    return false;
  if (tiling == Tiling::BySize)
    whole = image;
  if (grid.rows * grid.columns > 1 || tiling == Tiling::ByList) {
    picture.rows = grid.rows;
    picture.columns = grid.columns;
    appendTiles(image, grid, picture.pixels);
  }
  if (!bringTo(whole, fixedWidth, fixedHeight))
    return false;
  picture.height = fixedHeight;
  picture.width = fixedWidth;
  picture.pixels.insert(picture.pixels.end(), whole.pixels.begin(),
                        whole.pixels.end());
  return true;
}

bool Preparation::prepare(Image image, Picture &picture,
                          std::string &problem) const {
  picture.fileHeight = image.height;
  picture.fileWidth = image.width;
  picture.rows = picture.columns = 0;
  picture.pixels.clear();
  if (shortest) {
    // The longer edge keeps its share, rounded down.
    bool upright = image.width <= image.height;
    int64_t longer = std::max(image.width, image.height) * shortest /
                     std::min(image.width, image.height);
    if (longer > static_cast<int64_t>(kMostPixels) / shortest) {
      problem = "has " + std::to_string(image.width) + " x " +
                std::to_string(image.height) +
                " pixels, which is too thin: its shorter edge becomes one of " +
                std::to_string(shortest);
      return false;
    }
    if (!scale(image, upright ? shortest : longer, upright ? longer : shortest,
               filter, picture, problem))
      return false;
  } else if (fixedHeight && tiling == Tiling::None &&
             !scale(image, fixedWidth, fixedHeight, filter, picture, problem)) {
    return false;
  }
  if (crops)
    crop(image, cropWidth, cropHeight);
  if (tiling != Tiling::None) {
    if (!cut(std::move(image), picture, problem))
      return false;
  } else {
    picture.height = image.height;
    picture.width = image.width;
    picture.pixels = std::move(image.pixels);
  }
  for (int c = 0; c < 3; ++c)
    for (int pixel = 0; pixel < 256; ++pixel) {
      auto number = static_cast<float>(pixel);
      if (rescales)
        number = static_cast<float>(pixel * factor);
      if (normalizes)
        number = (number - static_cast<float>(mean[c])) /
                 static_cast<float>(deviation[c]);
      picture.values[c][pixel] = number;
    }
  return true;
}

bool seePicture(const JsonValue &config, const uint8_t *bytes, uint64_t size,
                int64_t height, int64_t width, uint64_t &pixelsLeft,
                Picture &picture, std::string &problem) {
  Preparation preparation;
  if (!preparation.read(config, problem)) {
    problem = "the model's preprocessor_config.json: " + problem;
    return false;
  }
  if (preparation.takesAnySize())
    preparation.resizeTo(height, width);
  Image image;
  if (!parseImage(bytes, size, image, problem, pixelsLeft))
    return false;
  pixelsLeft -= static_cast<uint64_t>(image.width * image.height);
  if (!preparation.prepare(std::move(image), picture, problem))
    return false;
  if (picture.height == height && picture.width == width)
    return true;
  problem = "the model's preprocessor_config.json makes " +
            std::to_string(picture.width) + " x " +
            std::to_string(picture.height) +
            " pixels of it, but the model sees " + std::to_string(width) +
            " x " + std::to_string(height);
  return false;
}

} // namespace attune::runtime

const char attune_rt_sees = 1;
