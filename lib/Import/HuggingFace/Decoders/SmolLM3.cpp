//===- SmolLM3.cpp - config.json of SmolLM3 ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

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
