//===- Llama.cpp - config.json of LLaMA, CWM and Helium ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importLlama(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.readsCausal = true;
  std::optional<LlamaConfig> llama = readLlama(context, "llama", defaults);
  bool attentionBias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  // pretraining_tp splits matmuls into slices that add up to the same.
  config.ignore({"pretraining_tp"});
  // The class reads no window; one that shows the whole context is none.
  int64_t length = config.integer("max_position_embeddings", 2048);
  if (const Value *window = config.get("sliding_window"))
    if (!window->isNumber() || window->real < double(length))
      config.error("sliding_window",
                   "LLaMA with a window is not supported; transformers' class "
                   "does not read it, as --ignore-config-key=sliding_window "
                   "makes Attune do");
  readLayerTypes(config, config.layers("num_hidden_layers", 32),
                 {"full_attention"}, "LLaMA");
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.attention->qkvBias = llama->block.attention->outBias =
      attentionBias;
  llama->block.ffn->bias = ffnBias;
  return buildLlama(context, *llama);
}

/// LLaMA of which three layers in four have a window.
std::optional<Model> importCWM(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 6144;
  defaults.inner = 21504;
  defaults.layers = 64;
  defaults.heads = 48;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 128256;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.rope.theta = 1e6;
  RopeScaling &scaling = defaults.rope.scaling.emplace();
  scaling.type = "llama3";
  scaling.factor = 16;
  scaling.originalLength = 8192;
  std::optional<LlamaConfig> llama = readLlama(context, "cwm", defaults);
  bool ffnBias = config.flag("mlp_bias", false);
  config.mustBeFalse("attention_bias", "its class has no such biases");
  config.ignore({"pretraining_tp"});
  std::optional<int64_t> window = readWindow(config, 8192);
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.ffn->bias = ffnBias;
  std::vector<std::string> types;
  for (int64_t layer = 0; layer < llama->layers; ++layer)
    types.push_back(layer % 4 ? "sliding_attention" : "full_attention");
  slideLayers(config, *llama, window, types, "CWM");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *llama);
}

/// LLaMA whose heads turn pairs of neighbours.
std::optional<Model> importHelium(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2560;
  defaults.inner = 7040;
  defaults.layers = 24;
  defaults.heads = 20;
  defaults.kvHeads = 20;
  defaults.headDim = 128;
  defaults.vocab = 48000;
  defaults.length = 4096;
  defaults.eps = 1e-8;
  defaults.rope.theta = 1e5;
  std::optional<LlamaConfig> llama = readLlama(context, "helium", defaults);
  bool bias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  config.ignore({"pretraining_tp"});
  if (!llama || config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = bias;
  attention.rope->interleaved = true;
  llama->block.ffn->bias = ffnBias;
  if (attention.heads * attention.headDim != llama->width)
    config.error("head_dim", "expected hidden_size / num_attention_heads, as "
                             "the class's last matrix has it");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *llama);
}

} // namespace attune::hf
