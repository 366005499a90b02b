//===- Positions.cpp - Positions of tokens ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

Positions LayerParser::parsePositions(const Object &object) {
  Positions positions;
  positions.kind = object.choice("kind", PositionKind::Learned);
  positions.length = object.integer("length", 0).value_or(0);
  Known offset = object.integer("offset", 0);
  positions.offset = offset.value_or(0);
  positions.skipPadding = object.boolean("skip_padding", false);
  positions.layout = object.choice("layout", SinusoidLayout::Interleaved);
  bool known = needTokens(object);
  positions.count = object.choice(
      "count", object.has("shapes") ? PositionCount::Tokens : defaultCount());
  positions.pad = object.integer("pad", 0).value_or(0);
  parseGrid(object, positions);
  bool unpadded = positions.count == PositionCount::Unpadded;
  if (positions.count != PositionCount::Tokens &&
      defaultCount() == PositionCount::Tokens && object.get("count"))
    object.error("count", "the stream does not have one token for each id or "
                          "frame of its input, so only tokens can count it");
  const TensorSpec *input = streamInput();
  if (unpadded && input && input->shape.size() != 2)
    object.error("count", "input " + quote(input->name) +
                              " has no ids that could be padding");
  if (unpadded && !object.has("pad"))
    object.missing("pad", "the id that is not counted");
  if (!unpadded && object.get("count") && object.has("pad"))
    object.error("pad", "belongs to unpadded positions");
  if (positions.kind == PositionKind::Learned) {
    if (!object.has("length") && positions.dims == 1)
      object.missing("length", "rows of the learned table");
    else if (object.has("length") && positions.dims == 2)
      object.error("length", "in two dimensions 'grid' says the lengths");
    if (object.has("layout"))
      object.error("layout", "belongs to sinusoidal positions");
    if (positions.length && positions.offset >= positions.length)
      object.error("offset", "row " + std::to_string(positions.offset) +
                                 " is not in a table of " +
                                 std::to_string(positions.length) + " rows");
  } else {
    if (object.has("length"))
      object.error("length", "belongs to learned positions");
    int64_t channels = positions.concat ? positions.concat : width.value_or(0);
    if (known && channels % (2 * positions.dims) != 0)
      object.error("sinusoidal positions need " +
                   std::string(positions.dims == 2 ? "a width divisible by 4"
                                                   : "an even width") +
                   ", it is " + std::to_string(channels));
    else if (known && channels == 2 * positions.dims &&
             (positions.layout == SinusoidLayout::Tensor2Tensor ||
              positions.layout == SinusoidLayout::CosinesFirst))
      object.error("layout", std::string(stringify(positions.layout)) +
                                 " needs more channels");
  }
  if (known && positions.concat)
    width = *width + positions.concat;
  return positions;
}

/// Parses the keys that make positions those of an image's places.
void LayerParser::parseGrid(const Object &object, Positions &positions) {
  positions.concat = object.integer("concat", 0).value_or(0);
  positions.dims = object.integer("dims", 1).value_or(1);
  positions.columnsFirst = object.boolean("columns_first", false);
  positions.interpolate = object.choice("interpolate", Interpolation::None);
  bool learned = positions.kind == PositionKind::Learned;
  bool stretched = positions.interpolate != Interpolation::None;
  if (object.get("grid"))
    positions.grid = parseSizes(object, "grid", 2, 1);
  if (positions.columnsFirst && positions.dims != 2)
    object.error("columns_first", "belongs to positions in two dimensions");
  if (positions.dims == 2 && width && *width && !grid)
    object.error("dims", "the tokens before it are not the places of an image, "
                         "which two dimensions need");
  if (learned && positions.dims == 2 && positions.concat % 2 != 0)
    object.error("concat", "is odd, but half of it is for rows, half for "
                           "columns");
  if (positions.dims == 2 && !positions.concat && width.value_or(0) % 2 != 0)
    object.error("dims", "the width is odd, but half of it is for rows, half "
                         "for columns");
  if (!learned && object.has("grid"))
    object.error("grid", "belongs to learned positions");
  else if (!learned && stretched)
    object.error("interpolate", "belongs to learned positions");
  else if (learned && (positions.dims == 2 || stretched) && !object.has("grid"))
    object.missing("grid", "rows and columns of the learned table");
  else if (learned && object.has("grid") && positions.dims == 1 && !stretched)
    object.error("grid", "belongs to interpolated positions and those in two "
                         "dimensions");
  if (learned && positions.dims == 2 && stretched)
    object.error("interpolate", "stretches one table over a grid, not one of "
                                "rows and one of columns");
  if (positions.grid.empty())
    positions.grid.resize(learned && (positions.dims == 2 || stretched) ? 2 : 0,
                          1);
  if ((positions.dims == 2 || stretched) &&
      positions.count != PositionCount::Tokens)
    object.error("count", "the places of an image number themselves");
  int64_t places =
      learned && stretched ? positions.grid[0] * positions.grid[1] : 0;
  if (positions.length && places > positions.length)
    object.error("grid", "has " + std::to_string(places) +
                             " places, more than the table's " +
                             std::to_string(positions.length) + " rows");
  if (stretched && positions.offset)
    object.error("offset", "has no place beside a grid");
  parseShapes(object, positions);
}

/// Parses where sizes of images come from that differ within a batch.
void LayerParser::parseShapes(const Object &object, Positions &positions) {
  bool antialias = positions.interpolate == Interpolation::Antialias;
  positions.shapesInput = object.string("shapes");
  if (!antialias && object.has("shapes"))
    object.error("shapes", "belongs to positions that antialias interpolates");
  if (positions.grid.size() == 2 && object.has("shapes") && positions.length &&
      positions.grid[0] * positions.grid[1] < positions.length)
    object.error("grid", "has fewer places than the table's " +
                             std::to_string(positions.length) +
                             " rows, but class tokens have no place in images "
                             "of different sizes");
  const TensorSpec *shapes = findInput(object, "shapes");
  if (shapes && (shapes->dtype != DType::I64 || shapes->shape.size() != 2 ||
                 shapes->shape[1].size != 2))
    object.error("shapes", "input " + quote(shapes->name) +
                               " cannot serve as sizes of images; expected "
                               "i64 [batch, 2]");
}

/// Images have no position_ids, and class tokens have none either.
PositionCount LayerParser::defaultCount() const {
  const TensorSpec *input = streamInput();
  if (!input || input->shape.size() > 3 || chunks != Chunks::None)
    return PositionCount::Tokens;
  for (const Layer &layer : stream.layers)
    if (std::holds_alternative<Conv>(layer.op) ||
        std::holds_alternative<ClassTokens>(layer.op) ||
        std::holds_alternative<Slice>(layer.op) ||
        std::holds_alternative<Concat>(layer.op))
      return PositionCount::Tokens;
  return PositionCount::Input;
}

} // namespace attune::spec
