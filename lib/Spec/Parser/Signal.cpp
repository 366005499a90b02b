//===- Signal.cpp - Conditions and chunks -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

/// False if `object` has no layer of these kinds whose options are readable.
bool LayerParser::parseSignals(const Object &object, Layer &layer) {
  if (auto options = object.object("modulate")) {
    needTokens(*options);
    layer.op = Modulate{parseModulation(*options)};
  } else if (auto options = object.object("timestep")) {
    layer.op = parseTimestep(*options);
  } else if (auto options = object.object("chunk")) {
    layer.op = parseChunk(*options);
  } else if (auto options = object.object("swap")) {
    layer.op = SwapChunks{};
    if (chunks == Chunks::None)
      options->error("has no chunks to swap; 'chunk' makes them");
    else
      chunks = chunks == Chunks::Cut ? Chunks::Swapped : Chunks::Cut;
  } else if (auto options = object.object("overlap_add")) {
    if (chunks == Chunks::None)
      options->error("has no chunks to sum; 'chunk' makes them");
    else if (chunks == Chunks::Swapped)
      options->error("needs chunks as they were cut; swap them back first");
    layer.op = OverlapAdd{};
    chunks = Chunks::None;
  } else {
    return false;
  }
  return true;
}

Modulation LayerParser::parseModulation(const Object &object) {
  Modulation modulation;
  modulation.location = object.getLocation();
  modulation.source = object.string("source");
  modulation.activation = object.choice("activation", Activation::Silu);
  modulation.bias = object.boolean("bias", true);
  if (const Layer *source = findSource(object)) {
    modulation.sourceWidth = source->width;
    if (!source->pooled)
      object.error("source", "gives tokens, but a condition is one vector "
                             "[batch, width] for each sequence");
  }
  return modulation;
}

void LayerParser::checkModulation(const Object &object, const Block &block) {
  bool parallel = block.placement == Placement::Parallel;
  if (block.placement != Placement::Pre && !parallel)
    object.error("modulation", "belongs to pre-norm and parallel blocks");
  if (parallel && (block.norm.scale || block.norm.bias))
    object.error("norm", "the norm of a modulated parallel block is one for "
                         "all sublayers and has no weights; give it "
                         "\"scale\": false and, if it is a layer_norm, "
                         "\"bias\": false");
  if (block.residualScale != 1)
    object.error("residual_scale", "has no place beside the gates of a "
                                   "modulation");
  if (block.residualOfNorm)
    object.error("residual", "a modulated block adds to its input");
  if (block.inputScale != 1)
    object.error("input_scale", "has no place beside the gates of a "
                                "modulation");
  if (block.layerScale)
    object.error("layer_scale", "has no place beside the gates of a "
                                "modulation");
}

Timestep LayerParser::parseTimestep(const Object &object) {
  Timestep timestep;
  Known channels = object.integer("width", std::nullopt);
  timestep.width = channels.value_or(0);
  timestep.period = object.number("period", 10000);
  timestep.scale = object.number("scale", 1);
  timestep.cosinesFirst = object.boolean("cosines_first", true);
  timestep.shift = object.integer("shift", 0).value_or(0);
  if (channels && *channels % 2 != 0)
    object.error("width", std::to_string(*channels) +
                              " is odd; every sine has a cosine");
  else if (channels && *channels == 2 && timestep.shift == 1)
    object.error("shift", "needs a width above 2");
  const TensorSpec *input = streamInput();
  bool isFloat =
      input && (input->dtype == DType::F32 || input->dtype == DType::F16 ||
                input->dtype == DType::BF16);
  if (!stream.layers.empty() || !isFloat || input->shape.size() != 1)
    object.error("starts a stream from a float input [batch]");
  width = channels;
  pooled = true;
  return timestep;
}

Chunk LayerParser::parseChunk(const Object &object) {
  Chunk chunk;
  needTokens(object);
  Known size = object.integer("size", std::nullopt);
  chunk.size = size.value_or(2);
  if (size && *size % 2 != 0)
    object.error("size",
                 std::to_string(*size) + " is odd; chunks overlap by half");
  if (chunks != Chunks::None)
    object.error("cuts what is in chunks already");
  chunks = Chunks::Cut;
  grid = behindGrid = false;
  parts.clear();
  return chunk;
}

} // namespace attune::spec
