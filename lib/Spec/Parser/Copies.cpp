//===- Copies.cpp - Streams of several copies -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

/// False if `object` has no layer of these kinds whose options are readable.
bool LayerParser::parseCopies(const Object &object, Layer &layer) {
  if (auto options = object.object("layer_inputs")) {
    layer.op = parseLayerInputs(*options);
  } else if (auto options = object.object("spread")) {
    Spread spread;
    bool known = needTokens(*options);
    spread.copies = options->integer("copies", std::nullopt).value_or(2);
    spread.eps = options->number("eps", 1e-5);
    if (known)
      width = *width * spread.copies;
    layer.op = spread;
  } else if (auto options = object.object("unite")) {
    Unite unite;
    bool known = needTokens(*options);
    unite.copies = options->integer("copies", std::nullopt).value_or(2);
    unite.eps = options->number("eps", 1e-5);
    if (known && *width % unite.copies)
      options->error("copies", std::to_string(*width) +
                                   " channels are not that many copies");
    if (known)
      width = *width / unite.copies;
    layer.op = unite;
  } else {
    return false;
  }
  return true;
}

LayerInputs LayerParser::parseLayerInputs(const Object &object) {
  LayerInputs inputs;
  needTokens(object);
  inputs.vocab = object.integer("vocab", std::nullopt).value_or(0);
  inputs.width = object.integer("width", std::nullopt).value_or(0);
  inputs.blocks = object.integer("blocks", std::nullopt).value_or(1);
  inputs.scale = object.number("scale", 1);
  inputs.tableScale = object.number("table_scale", 1);
  if (auto norm = object.object("norm")) {
    inputs.norm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  } else {
    inputs.norm.kind = NormKind::RMSNorm;
    inputs.norm.bias = false;
    inputs.norm.location = object.getLocation();
  }
  const TensorSpec *ids = streamInput();
  if (!ids || ids->dtype != DType::I64 || ids->shape.size() != 2)
    object.error("needs a stream that starts from ids");
  layerInputs = inputs.width;
  return inputs;
}

Alternating LayerParser::parseAlternating(const Object &block,
                                          const Object &object,
                                          Placement placement) {
  Alternating alternating;
  alternating.location = object.getLocation();
  alternating.copies = object.integer("copies", std::nullopt).value_or(2);
  alternating.active = object.integer("active", 0).value_or(0);
  alternating.inputs = object.integer("inputs", 0).value_or(0);
  alternating.activation = object.choice("activation", Activation::GeluTanh);
  alternating.scaled = object.boolean("scaled", true);
  if (object.get("clip"))
    alternating.clip = object.number("clip", 1);
  if (placement != Placement::Peri)
    block.error("alternating", "belongs to peri blocks");
  if (alternating.active >= alternating.copies)
    object.error("active", "there are " + std::to_string(alternating.copies) +
                               " copies, from 0");
  if (alternating.inputs && alternating.inputs != layerInputs)
    object.error("inputs", layerInputs
                               ? "the stream's layer_inputs have " +
                                     std::to_string(layerInputs) +
                                     " channels for each block"
                               : std::string("needs layer_inputs before it"));
  if (!width)
    return alternating;
  if (*width % alternating.copies)
    object.error("copies",
                 std::to_string(*width) + " channels are not that many copies");
  width = *width / alternating.copies;
  return alternating;
}

/// The block whose keys an attention reads is an earlier one of its stream,
/// alone under its name, with caches that look like its own would.
void LayerParser::parseLender(const Object &object, Attention &attention) {
  attention.keysFrom = object.string("keys_from");
  for (const char *key :
       {"latent", "linear", "sequence_rank", "relative_bias", "disentangled",
        "relative", "source", "value_norm", "clip"})
    if (object.has(key))
      object.error(key, "has no place beside 'keys_from'");
  const Layer *lender = findLender(stream, attention);
  const auto *block = lender ? std::get_if<Block>(&lender->op) : nullptr;
  if (!block || !block->attention || lender->repeat != 1) {
    object.error("keys_from", "there is no single block of attention " +
                                  quote(attention.keysFrom) +
                                  " before this one in its stream");
    return;
  }
  const Attention &other = *block->attention;
  if (!other.keysFrom.empty() || other.latent || other.linear ||
      other.sequenceRank || other.relativeBias || other.relative ||
      other.disentangled)
    object.error("keys_from", quote(attention.keysFrom) +
                                  " has no keys and values of the usual kind");
  if (other.kvHeads != attention.kvHeads ||
      other.headDim != attention.headDim ||
      other.valueDim != attention.valueDim || other.window != attention.window)
    object.error("keys_from",
                 quote(attention.keysFrom) +
                     " has other kv_heads, head_dim, value_dim or window");
}

} // namespace attune::spec
