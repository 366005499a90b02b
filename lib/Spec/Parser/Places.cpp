//===- Places.cpp - Places of images ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

#include <algorithm>

namespace attune::spec {

namespace {
/// Behind: those of an image behind class tokens.
enum class Kind { None, Image, Behind, Windows };
/// What tokens are, and which of the parts that `concat` put one behind the
/// other are the places of an image.
struct Form {
  Kind kind = Kind::None;
  std::vector<bool> parts = {};
};
} // namespace

static Form formOf(const std::vector<Stream> &streams, size_t count,
                   const std::string &name);

static std::vector<bool> partsOf(const Form &form) {
  return form.parts.empty() ? std::vector<bool>{form.kind == Kind::Image}
                            : form.parts;
}

static std::vector<bool> joined(const Form &first, const Form &second) {
  std::vector<bool> parts = partsOf(first), more = partsOf(second);
  parts.insert(parts.end(), more.begin(), more.end());
  return parts;
}

/// What the tokens become in a layer, of the stream behind `count` others.
static Form formBehind(const std::vector<Stream> &streams, size_t count,
                       const Layer &layer, const Form &form) {
  const auto *conv = std::get_if<Conv>(&layer.op);
  if (conv && conv->kernel.size() == 2)
    return {Kind::Image};
  bool ofImage = form.kind == Kind::Image || form.kind == Kind::Behind;
  if (std::holds_alternative<ClassTokens>(layer.op))
    return {ofImage ? Kind::Behind : Kind::None};
  if (conv || layer.pooled || std::holds_alternative<Unpatch>(layer.op) ||
      std::holds_alternative<Chunk>(layer.op))
    return {};
  if (const auto *slice = std::get_if<Slice>(&layer.op)) {
    auto part = static_cast<size_t>(slice->part);
    bool isImage = slice->part >= 0
                       ? part < form.parts.size() && form.parts[part]
                       : form.kind == Kind::Behind && slice->count == 0;
    return {isImage ? Kind::Image : Kind::None};
  }
  if (const auto *concat = std::get_if<Concat>(&layer.op))
    return {Kind::None, joined(form, formOf(streams, count, concat->source))};
  if (std::holds_alternative<Windows>(layer.op))
    return {Kind::Windows};
  return std::holds_alternative<Whole>(layer.op) ? Form{Kind::Image} : form;
}

/// What the tokens are that `name` gives: one of the first `count` streams, or
/// a layer of one.
static Form formOf(const std::vector<Stream> &streams, size_t count,
                   const std::string &name) {
  const Layer *last = findResult(streams, name);
  for (size_t i = 0; last && i < count; ++i) {
    const std::vector<Layer> &layers = streams[i].layers;
    auto end = std::find_if(layers.begin(), layers.end(),
                            [&](const Layer &layer) { return &layer == last; });
    if (end == layers.end())
      continue;
    Form form = formOf(streams, i, streams[i].input);
    for (auto layer = layers.begin(); layer <= end; ++layer)
      form = formBehind(streams, i, *layer, form);
    return form;
  }
  return {};
}

void LayerParser::findPlaces() {
  Form form = formOf(model.streams, model.streams.size(), stream.input);
  grid = form.kind == Kind::Image;
  behindGrid = form.kind == Kind::Behind;
  parts = form.parts;
}

std::vector<bool> LayerParser::partsBehind(const Concat &concat) const {
  Form mine = {grid ? Kind::Image : Kind::None, parts};
  return joined(mine,
                formOf(model.streams, model.streams.size(), concat.source));
}

void LayerParser::finish(const Object &object) {
  if (windowed)
    object.error("layers", "end in windows; 'whole' undoes them");
}

bool LayerParser::parsePlaces(const Object &object, Layer &layer) {
  auto needImage = [&](const Object &options) {
    if (needTokens(options) && !grid)
      options.error(windowed ? "is not for windows; 'whole' undoes them"
                             : "needs the places of an image, which a 2-D "
                               "convolution makes");
    return grid;
  };
  if (auto options = object.object("windows")) {
    needImage(*options);
    std::vector<int64_t> sizes = parseSizes(*options, "size", 2, 1);
    layer.op = Windows{sizes[0], sizes[1]};
    constexpr int64_t most = 1 << 24;
    if (sizes[0] * sizes[1] > most)
      options->error("size", "makes windows of more than " +
                                 std::to_string(most) + " places");
    grid = false;
    windowed = true;
  } else if (auto options = object.object("whole")) {
    if (!windowed)
      options->error("has no windows to undo; 'windows' makes them");
    layer.op = Whole{};
    grid = true;
    windowed = false;
  } else if (auto options = object.object("merge")) {
    Known size = options->integer("size", 2);
    bool mean = options->boolean("mean", false);
    layer.op = Merge{size.value_or(2), mean};
    constexpr int64_t mostOfMean = 16;
    if (mean && size.value_or(2) > mostOfMean)
      options->error("size", "is at most " + std::to_string(mostOfMean) +
                                 " for the mean of squares");
    if (needImage(*options) && size && width && !mean) {
      constexpr int64_t most = 1 << 24;
      if (*size > most || *width > most / *size / *size)
        options->error("size",
                       "gives more than " + std::to_string(most) + " channels");
      else
        width = *width * *size * *size;
    }
  } else if (auto options = object.object("unpatch")) {
    needImage(*options);
    layer.op = parseUnpatch(*options);
  } else {
    return false;
  }
  return true;
}

/// Parses the keys by which images turn.
void LayerParser::parseSections(const Object &object, Known channels,
                                Rope &rope) {
  rope.places = object.boolean("places", false);
  rope.alternating = object.boolean("alternating", false);
  if (rope.alternating && !rope.places)
    object.error("alternating", "needs 'places'");
  rope.sections.interleaved = object.boolean("interleaved_sections", false);
  if (rope.places && !grid && !windowed)
    object.error("places", "the tokens before it are not the places of an "
                           "image");
  if (rope.places && channels && *channels % 4 != 0)
    object.error("places", "half of the pairs are for rows, half for columns, "
                           "but there are " +
                               std::to_string(*channels) + " channels");
  if (rope.places && object.has("scaling"))
    object.error("scaling", "has no place beside 'places'");
  if (rope.sections.interleaved && !object.has("sections"))
    object.error("interleaved_sections", "needs 'sections'");
  if (!object.get("sections"))
    return;
  std::vector<int64_t> &pairs = rope.sections.pairs;
  pairs = parseSizes(object, "sections", 3, 0);
  if (rope.places)
    object.error("sections", "has no place beside 'places'");
  const std::string &scaling = rope.scaling.type;
  if (scaling == "dynamic" || scaling == "longrope")
    object.error("sections", "have no place beside scaling " + quote(scaling));
  bool placed = false;
  for (const Layer &layer : stream.layers)
    if (const auto *insert = std::get_if<Insert>(&layer.op))
      placed |= !insert->grid.empty();
  if (!placed)
    object.error("sections", "need a layer before it that inserts images with "
                             "a 'grid'");
  int64_t sum = pairs[0] + pairs[1] + pairs[2];
  if (channels && sum != *channels / 2)
    object.error("sections", "are " + std::to_string(sum) +
                                 " pairs together, but there are " +
                                 std::to_string(*channels / 2));
  else if (rope.sections.interleaved && channels &&
           (3 * pairs[1] > sum + 1 || 3 * pairs[2] > sum))
    object.error("sections", "do not fit into each other: rows and columns "
                             "have a third of the pairs at most");
}

} // namespace attune::spec
