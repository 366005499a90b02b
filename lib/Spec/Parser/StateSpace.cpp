//===- StateSpace.cpp - Selective state spaces ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

/// The rest of Mamba-2.
void LayerParser::parseHeads(const Object &object, Mamba &mamba) {
  for (const char *key : {"rank", "norm", "bias"})
    if (object.has(key))
      object.error(key, "is not a key of Mamba-2, which 'heads' ask for");
  mamba.convBias = object.boolean("conv_bias", true);
  mamba.groups = object.integer("groups", 1).value_or(1);
  if (mamba.inner && mamba.inner % mamba.heads != 0)
    object.error("heads", std::to_string(mamba.heads) +
                              " heads do not divide the " +
                              std::to_string(mamba.inner) + " channels");
  else if (mamba.heads % mamba.groups != 0)
    object.error("groups", std::to_string(mamba.groups) +
                               " groups do not divide the " +
                               std::to_string(mamba.heads) + " heads");
  auto norm = object.object("out_norm");
  if (!norm)
    return;
  mamba.outNorm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  mamba.outNormParts = norm->integer("parts", 1).value_or(1);
  if (mamba.inner && mamba.inner % mamba.outNormParts != 0)
    norm->error("parts", std::to_string(mamba.outNormParts) +
                             " parts do not divide the " +
                             std::to_string(mamba.inner) + " channels");
}

Mamba LayerParser::parseMamba(const Object &object) {
  Mamba mamba;
  mamba.location = object.getLocation();
  Known twice = width ? Known(2 * *width) : std::nullopt;
  Known part = width ? Known((*width + 15) / 16) : std::nullopt;
  mamba.inner = object.integer("inner", twice).value_or(0);
  mamba.states = object.integer("states", 16).value_or(16);
  mamba.kernel = object.integer("kernel", 4).value_or(4);
  mamba.heads = object.get("heads")
                    ? object.integer("heads", std::nullopt).value_or(0)
                    : 0;
  if (mamba.heads) {
    parseHeads(object, mamba);
    return mamba;
  }
  for (const char *key : {"groups", "out_norm"})
    if (object.has(key))
      object.error(key, "needs 'heads', which make it Mamba-2");
  mamba.rank = object.integer("rank", part).value_or(0);
  mamba.bias = object.boolean("bias", false);
  mamba.convBias = object.boolean("conv_bias", true);
  if (auto norm = object.object("norm"))
    mamba.norm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  return mamba;
}

DeltaRule LayerParser::parseDeltaRule(const Object &object) {
  DeltaRule rule;
  rule.location = object.getLocation();
  rule.heads = object.integer("heads", std::nullopt).value_or(1);
  Known share;
  if (width && *width % rule.heads == 0)
    share = *width / rule.heads;
  else if (width && !object.has("value_dim"))
    object.error("heads", std::to_string(rule.heads) + " heads do not divide " +
                              "the " + std::to_string(*width) +
                              " channels; give value_dim");
  rule.valueDim = object.integer("value_dim", share).value_or(0);
  Known same = rule.valueDim ? Known(rule.valueDim) : std::nullopt;
  rule.keyDim = object.integer("key_dim", same).value_or(0);
  rule.keyHeads = object.integer("key_heads", rule.heads).value_or(1);
  if (rule.heads % rule.keyHeads != 0)
    object.error("key_heads", std::to_string(rule.keyHeads) +
                                  " key heads do not divide the " +
                                  std::to_string(rule.heads) + " heads");
  rule.kernel = object.integer("kernel", 4).value_or(4);
  rule.eps = object.number("eps", rule.eps);
  if (rule.eps < 0)
    object.error("eps", "must not be negative");
  rule.channelSteps = object.boolean("channel_steps", false);
  rule.stepRank = object.get("step_rank")
                      ? object.integer("step_rank", std::nullopt).value_or(0)
                      : 0;
  rule.gateRank = object.get("gate_rank")
                      ? object.integer("gate_rank", std::nullopt).value_or(0)
                      : 0;
  rule.gateActivation = object.choice("gate_activation", rule.gateActivation);
  if (auto norm = object.object("norm")) {
    rule.norm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  } else {
    rule.norm.kind = NormKind::RMSNorm;
    rule.norm.bias = false;
    rule.norm.location = rule.location;
  }
  return rule;
}

TimeMix LayerParser::parseTimeMix(const Object &object) {
  TimeMix mix;
  mix.location = object.getLocation();
  mix.heads = object.integer("heads", std::nullopt).value_or(1);
  Known share;
  if (width && *width % mix.heads == 0)
    share = *width / mix.heads;
  else if (width && !object.has("key_dim"))
    object.error("heads", std::to_string(mix.heads) + " heads do not divide " +
                              "the " + std::to_string(*width) +
                              " channels; give key_dim");
  mix.keyDim = object.integer("key_dim", share).value_or(0);
  Known same = mix.keyDim ? Known(mix.keyDim) : std::nullopt;
  mix.valueDim = object.integer("value_dim", same).value_or(0);
  mix.decayRank = object.integer("decay_rank", std::nullopt).value_or(0);
  mix.rateRank = object.integer("rate_rank", std::nullopt).value_or(0);
  mix.gateRank = object.integer("gate_rank", std::nullopt).value_or(0);
  if (object.get("value_rank")) {
    mix.valueRank = object.integer("value_rank", std::nullopt).value_or(0);
    if (!firstValues)
      object.error("value_rank", "there is no block before this one with a "
                                 "time_mix without value_rank");
    else if (*firstValues != mix.heads * mix.valueDim)
      object.error("value_rank", "mixes the values with " +
                                     std::to_string(*firstValues) +
                                     " channels of a block before");
  } else {
    firstValues = mix.heads * mix.valueDim;
  }
  mix.eps = object.number("eps", mix.eps);
  if (mix.eps <= 0)
    object.error("eps", "must be greater than 0");
  if (auto norm = object.object("norm"))
    mix.norm = parseNorm(*norm, std::nullopt, NormKind::LayerNorm);
  else
    mix.norm.location = mix.location;
  return mix;
}

/// `object` is the block, whose attention was read.
void LayerParser::parseMemory(const Object &object, Block &block) {
  auto options = object.object("memory");
  if (!options)
    return;
  MemoryBlock &memory = block.memory.emplace();
  memory.location = options->getLocation();
  if (auto ffn = options->object("ffn"))
    memory.ffn = parseFFN(*ffn);
  if (memory.ffn.shift)
    options->error("ffn", "cannot read the token before, of which a memory "
                          "keeps nothing");
  if (!object.has("attention") || !object.has("mamba"))
    object.error("memory", "stands between 'attention' and 'mamba'; the block "
                           "needs both");
  if (block.placement != Placement::Pre || block.layerScale ||
      block.residualOfNorm || object.has("modulation") ||
      block.residualScale != 1 || block.inputScale != 1)
    object.error("memory", "belongs to pre-norm blocks whose sublayers add "
                           "what they give to the stream");
  for (const char *key : {"ffn", "moe", "cross"})
    if (object.has(key))
      object.error(key, "has no place beside 'memory'");
  if (width && embedded != *width)
    object.error("memory",
                 embedded ? "reads the embedding, whose width " +
                                std::to_string(embedded) +
                                " is not that of the stream, " +
                                std::to_string(*width)
                          : std::string("reads an embedding that the stream "
                                        "begins with, and there is none"));
}

} // namespace attune::spec
