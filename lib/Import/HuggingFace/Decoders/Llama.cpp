//===- Llama.cpp - config.json of LLaMA -------------------------*- C++ -*-===//
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

} // namespace attune::hf
