//===- Picture.cpp - Pictures in texts ------------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Picture.h"

#include "attune/Runtime/Sight.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

namespace attune::runtime {

/// Null in products that are linked without AttuneRuntimeSight.
[[gnu::weak]] bool seePicture(const JsonValue &config, const uint8_t *bytes,
                              uint64_t size, int64_t height, int64_t width,
                              uint64_t &pixelsLeft, Picture &picture,
                              std::string &problem);

static std::atomic<int64_t> numPictures{0};

Picture::Picture() : number(numPictures.fetch_add(1)) {}

bool Picture::looksLike(const Picture &other) const {
  return height == other.height && width == other.width && rows == other.rows &&
         columns == other.columns && order == other.order &&
         pixels == other.pixels &&
         std::memcmp(values, other.values, sizeof(values)) == 0;
}

void Picture::fill(int64_t tile, int64_t channels,
                   std::vector<float> &numbers) const {
  auto plane = static_cast<size_t>(height * width);
  auto count = static_cast<size_t>(channels);
  const uint8_t *from = pixels.data() + static_cast<size_t>(tile) * plane * 3;
  numbers.resize(plane * count);
  for (size_t c = 0; c < count; ++c) {
    size_t colour = c / (count / 3);
    for (size_t i = 0; i < plane; ++i)
      numbers[c * plane + i] = values[colour][from[i * 3 + colour]];
  }
}

bool canSee(const ModelInfo &model, Error &error) {
  if (!findImageInput(model))
    return error.badInput("model '" + model.name + "' sees no pictures");
  return (!model.images.isNull() && seePicture) ||
         error.badInput(
             "model '" + model.name +
             "' does not say how pictures become its input: it was compiled "
             "without a preprocessor_config.json beside its config.json");
}

PicturePtr readPicture(const ModelInfo &model, const std::string &path,
                       Error &error) {
  MappedFile file;
  std::string problem;
  if (!canSee(model, error))
    return nullptr;
  if (!file.open(path, problem)) {
    error.badInput(problem);
    return nullptr;
  }
  uint64_t pixels = kMostPixels;
  PicturePtr picture =
      parsePicture(model, file.data(), file.size(), path, pixels, error);
  if (picture)
    picture->name = path;
  return picture;
}

/// LLaVA-NeXT's text model reads the whole picture, then all places of the
/// tiles row by row, without those where the picture was filled up to tiles,
/// and a vector behind each row: the first one of every tile.
static bool orderRows(int64_t each, Picture &picture, std::string &problem) {
  auto side = static_cast<int64_t>(std::sqrt(double(each - 1)));
  if (side * side != each - 1) {
    problem = "the model's processor is LLaVA-NeXT's, but the " +
              std::to_string(each) +
              " vectors of a tile are not a square and the end of a row";
    return false;
  }
  int64_t height = picture.rows * side, width = picture.columns * side;
  double shape = double(picture.fileWidth) / double(picture.fileHeight);
  int64_t top = 0, left = 0;
  // Shares of a place that are none but for rounding are not counted.
  auto whole = [](double places) {
    return static_cast<int64_t>(std::nearbyint(places * 1e7) / 1e7);
  };
  if (shape > double(width) / double(height)) {
    double scale = double(width) / double(picture.fileWidth);
    top = (height - whole(double(picture.fileHeight) * scale)) / 2;
  } else {
    double scale = double(height) / double(picture.fileHeight);
    left = (width - whole(double(picture.fileWidth) * scale)) / 2;
  }
  int64_t last = picture.rows * picture.columns;
  for (int64_t i = 1; i < each; ++i)
    picture.order.push_back(last * each + i);
  for (int64_t y = top; y < height - top; ++y) {
    for (int64_t x = left; x < width - left; ++x) {
      int64_t tile = y / side * picture.columns + x / side;
      picture.order.push_back(tile * each + 1 + y % side * side + x % side);
    }
    picture.order.push_back(0);
  }
  return true;
}

PicturePtr parsePicture(const ModelInfo &model, const uint8_t *bytes,
                        uint64_t size, const std::string &name,
                        uint64_t &pixelsLeft, Error &error) {
  if (!canSee(model, error))
    return nullptr;
  const ArgInfo &input = *findImageInput(model);
  // make_shared wants more of the C++ library than products have.
  PicturePtr picture(new Picture());
  std::string problem;
  if (seePicture(model.images, bytes, size, input.shape[2].size,
                 input.shape[3].size, pixelsLeft, *picture, problem) &&
      (!model.images.find("picture_lines") ||
       orderRows(imageToken(model).each, *picture, problem)))
    return picture;
  error.badInput(name + ": " + problem);
  return nullptr;
}

const ArgInfo &imageToken(const ModelInfo &model) {
  return *model.find("decode")->findInserted();
}

/// The string that a layout has for `key`, or "".
static std::string stringOf(const JsonValue *layout, const char *key) {
  const JsonValue *value = layout ? layout->find(key) : nullptr;
  return value && value->isString() ? value->string : "";
}

/// The same of the layout of pictures in texts.
static std::string layoutOf(const JsonValue &images, const char *key) {
  return stringOf(images.find("picture_text"), key);
}

bool layOutPictures(const JsonValue &images, size_t pictures,
                    std::string &text) {
  std::string token = layoutOf(images, "token");
  if (pictures == 0 || token.empty())
    return false;
  std::string start = layoutOf(images, "start");
  std::string written = layoutOf(images, "text");
  if (!start.empty() && text.find(token) == std::string::npos) {
    text.insert(0, start);
    for (size_t i = 0; i < pictures; ++i)
      text.insert(0, token);
  }
  for (size_t at = 0; (at = text.find(token, at)) != std::string::npos;
       at += written.size())
    text.replace(at, token.size(), written);
  text += layoutOf(images, "end");
  return !start.empty();
}

bool namesPictures(const ModelInfo &model, const Tokenizer &tokenizer,
                   const std::string &text) {
  std::vector<int64_t> ids;
  Error ignored;
  std::string token = layoutOf(model.images, "token");
  if (!token.empty() && text.find(token) != std::string::npos)
    return true;
  return tokenizer.encode(text, ids, ignored, /*addSpecial=*/false) &&
         std::count(ids.begin(), ids.end(), imageToken(model).inserted) != 0;
}

/// Writes a number for each {name} of a text.
static std::string
withNumbers(std::string text,
            std::initializer_list<std::pair<const char *, int64_t>> numbers) {
  for (auto [name, number] : numbers)
    if (size_t at = text.find(name); at != std::string::npos)
      text.replace(at, std::strlen(name), std::to_string(number));
  return text;
}

/// The text in which a picture's tiles stand one behind the other, as the
/// model's processor writes it: what is before each, and ends rows of them.
static std::string textOfTiles(const JsonValue &layout, const Picture &picture,
                               int64_t each) {
  std::string token = stringOf(&layout, "token"), tokens;
  for (int64_t i = 0; i < each; ++i)
    tokens += token;
  std::string text = stringOf(&layout, "start");
  for (int64_t row = 1; row <= picture.rows; ++row) {
    for (int64_t column = 1; column <= picture.columns; ++column)
      text += withNumbers(stringOf(&layout, "tile"),
                          {{"{row}", row}, {"{column}", column}}) +
              tokens;
    text += stringOf(&layout, "row_end");
  }
  text += stringOf(&layout, picture.rows ? "whole" : "alone") + tokens;
  return text + stringOf(&layout, "end");
}

/// What stands for a picture that is seen in tiles.
static bool tokensOfTiles(const ModelInfo &model, const JsonValue &layout,
                          const Tokenizer *tokenizer, const Picture &picture,
                          std::vector<int64_t> &ids, Error &error) {
  const ArgInfo &token = imageToken(model);
  int64_t all = picture.countTokens(token.each);
  if (!tokenizer)
    return error.badInput(
        "the prompt has an image token (id " + std::to_string(token.inserted) +
        ") for each picture, but model '" + model.name +
        "' does not know what stands between those of a picture's tiles, as it "
        "carries no tokenizer: give all " +
        std::to_string(all) + " of a picture, and those between");
  if (!tokenizer->encode(textOfTiles(layout, picture, token.each), ids, error,
                         /*addSpecial=*/false))
    return false;
  if (std::count(ids.begin(), ids.end(), token.inserted) == all)
    return true;
  return error.badInput("the tokenizer of model '" + model.name +
                        "' does not read '" + stringOf(&layout, "token") +
                        "' as the image token (id " +
                        std::to_string(token.inserted) + ")");
}

/// What stands for a picture in a prompt: all of its image tokens, in rows that
/// end with tokens of their own if the model's processor writes such.
static bool tokensOf(const ModelInfo &model, const Tokenizer *tokenizer,
                     const Picture &shown, std::vector<int64_t> &ids,
                     Error &error) {
  if (!shown.order.empty()) {
    ids.assign(shown.order.size(), imageToken(model).inserted);
    return true;
  }
  if (const JsonValue *tiles = model.images.find("picture_tiles"))
    return tokensOfTiles(model, *tiles, tokenizer, shown, ids, error);
  const ArgInfo &token = imageToken(model);
  if (shown.countTiles() > 1)
    return error.badInput(
        "the prompt has an image token (id " + std::to_string(token.inserted) +
        ") for each picture, but model '" + model.name +
        "' does not say what stands between those of a picture's tiles, as it "
        "was compiled without a 'processor_class' that is known: give all " +
        std::to_string(shown.countTokens(token.each)) +
        " of a picture, and those between");
  auto each = static_cast<size_t>(token.each);
  const JsonValue *rows = model.images.find("picture_rows");
  if (!rows) {
    ids.assign(each, token.inserted);
    return true;
  }
  auto number = [&](const char *key) {
    const JsonValue *value = rows->find(key);
    return value && value->isInt() ? value->integer : -1;
  };
  int64_t columns = number("columns"), within = number("break"),
          last = number("end");
  if (columns < 1 || token.each % columns != 0 || within < 0 || last < 0)
    return error.badInput(
        "the prompt has an image token (id " + std::to_string(token.inserted) +
        ") for each picture, but model '" + model.name +
        "' does not say which tokens end a picture's rows, as it was compiled "
        "without a tokenizer.json that has them: give all " +
        std::to_string(token.each) + " of each picture, and those between");
  for (size_t i = 0; i < each; ++i) {
    ids.push_back(token.inserted);
    if (i + 1 == each)
      ids.push_back(last);
    else if ((i + 1) % static_cast<size_t>(columns) == 0)
      ids.push_back(within);
  }
  return true;
}

bool placePictures(const ModelInfo &model, const Tokenizer *tokenizer,
                   const std::vector<PicturePtr> &pictures,
                   std::vector<int64_t> &ids, Error &error) {
  if (pictures.empty())
    return true;
  const ArgInfo &token = imageToken(model);
  auto places = std::count(ids.begin(), ids.end(), token.inserted);
  int64_t needed = 0;
  for (const PicturePtr &picture : pictures)
    needed += picture->countTokens(token.each);
  if (places == needed) // each picture has all of its tokens
    return true;
  size_t count = pictures.size();
  if (static_cast<size_t>(places) != count)
    return error.badInput(
        "the prompt has " + std::to_string(places) +
        (places == 1 ? " image token (id " : " image tokens (id ") +
        std::to_string(token.inserted) + ") for " + std::to_string(count) +
        (count == 1 ? " picture" : " pictures"));
  std::unique_ptr<Tokenizer> own;
  if (!tokenizer && model.hasTokenizer() &&
      model.images.find("picture_tiles")) {
    own = Tokenizer::open(model, error);
    if (!own)
      return false;
    tokenizer = own.get();
  }
  std::vector<int64_t> shown, all;
  all.reserve(ids.size() + static_cast<size_t>(needed));
  size_t next = 0;
  for (int64_t id : ids) {
    if (id != token.inserted) {
      all.push_back(id);
      continue;
    }
    shown.clear();
    if (!tokensOf(model, tokenizer, *pictures[next++], shown, error))
      return false;
    all.insert(all.end(), shown.begin(), shown.end());
  }
  ids = std::move(all);
  return true;
}

std::vector<int64_t> cacheKeys(const ModelInfo &model,
                               const std::vector<int64_t> &ids,
                               const std::vector<PicturePtr> &pictures) {
  std::vector<int64_t> keys = ids;
  if (pictures.empty())
    return keys;
  const ArgInfo &token = imageToken(model);
  size_t seen = 0;
  int64_t left = pictures[0]->countTokens(token.each);
  for (int64_t &key : keys) {
    if (key != token.inserted)
      continue;
    if (left == 0 && ++seen < pictures.size())
      left = pictures[seen]->countTokens(token.each);
    if (left == 0)
      break;
    key = -1 - pictures[seen]->number;
    --left;
  }
  return keys;
}

size_t placeToCut(const ModelInfo &model, const std::vector<int64_t> &keys,
                  size_t length, bool after) {
  const EntryInfo *decode = model.find("decode");
  const ArgInfo *token = decode ? decode->findInserted() : nullptr;
  size_t size = keys.size();
  if (!token || token->bidirectional == Bidirectional::None || length == 0 ||
      length >= size)
    return std::min(length, size);
  if (token->bidirectional == Bidirectional::Prompt)
    return after ? size : 0;
  auto isShown = [&](size_t i) { return keys[i] < 0; };
  size_t shown = 0;
  for (size_t i = 0; i < length; ++i)
    shown += isShown(i);
  size_t each = static_cast<size_t>(token->each), within = shown % each;
  for (size_t left = after ? each - within : within; within && left > 0;)
    left -= isShown(after ? length++ : --length);
  if (after && within)
    return length;
  size_t start = length, end = length;
  while (start > 0 && !isShown(start - 1))
    --start;
  while (end < size && !isShown(end))
    ++end;
  if (length == start || (after && length == end))
    return length;
  if (length - start < fewRows)
    length = after ? std::min(start + fewRows, end) : start;
  if (end - length < fewRows && length != start) {
    if (after)
      length = end;
    else if (length != end)
      length = end - start >= 2 * fewRows ? end - fewRows : start;
  }
  return length;
}

} // namespace attune::runtime
