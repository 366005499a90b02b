//===- SmolLM3.cpp - config.json of SmolLM3 ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// Which layers have RoPE: those that "no_rope_layers" lists (1: it has,
/// whatever the name says), or all but every "no_rope_layer_interval"-th.
static std::vector<bool> readTurning(Config &config, int64_t layers) {
  int64_t interval = config.integer("no_rope_layer_interval", 4);
  std::vector<bool> turning;
  const Value *list = config.get("no_rope_layers");
  if (!list) {
    for (int64_t i = 0; i < layers; ++i)
      turning.push_back((i + 1) % interval != 0);
    return turning;
  }
  if (!list->isArray() ||
      static_cast<int64_t>(list->elements.size()) != layers) {
    config.error("no_rope_layers", "expected an array of " +
                                       std::to_string(layers) +
                                       " numbers, 0 or 1 for each layer");
    return turning;
  }
  for (const Value &item : list->elements) {
    if (item.kind != Value::Kind::Integer || item.integer < 0 ||
        item.integer > 1) {
      config.getReporter().error(
          item.offset,
          spec::child(config.child("no_rope_layers"), turning.size()),
          "expected 0 (no rotary embedding) or 1");
      return turning;
    }
    turning.push_back(item.integer == 1);
  }
  return turning;
}

std::optional<Model> importSmolLM3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 11008;
  defaults.layers = 36;
  defaults.heads = 16;
  defaults.kvHeads = 4;
  defaults.vocab = 128256;
  defaults.length = 32768;
  defaults.rope.theta = 2000000;
  defaults.tied = true;
  std::optional<LlamaConfig> llama = readLlama(context, "smollm3", defaults);
  bool attentionBias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  config.mustBeFalse("use_sliding_window", "SmolLM3 with a window is not "
                                           "supported");
  config.ignore({"sliding_window", "max_window_layers", "pretraining_tp"});
  int64_t layers = config.layers("num_hidden_layers", defaults.layers);
  readLayerTypes(config, layers, {"full_attention"}, "SmolLM3");
  std::vector<bool> turning = readTurning(config, layers);
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.attention->qkvBias = llama->block.attention->outBias =
      attentionBias;
  llama->block.ffn->bias = ffnBias;
  Block still = llama->block;
  still.attention->rope.reset();
  llama->kinds = {llama->block, still};
  for (bool turns : turning)
    llama->kindOf.push_back(turns ? 0 : 1);
  return buildLlama(context, *llama);
}

} // namespace attune::hf
