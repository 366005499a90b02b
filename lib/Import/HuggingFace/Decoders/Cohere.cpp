//===- Cohere.cpp - config.json of Command R and R7B ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// Shared by both: norms of the layer kind without beta, attention and FFN side
/// by side after one norm, logits scaled.
static std::optional<LlamaConfig> readCohere(ImportContext &context,
                                             const char *name) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 8192;
  defaults.inner = 22528;
  defaults.layers = 40;
  defaults.heads = 64;
  defaults.vocab = 256000;
  defaults.length = 8192;
  defaults.epsKey = "layer_norm_eps";
  defaults.eps = 1e-5;
  defaults.tied = true;
  std::optional<LlamaConfig> cohere = readLlama(context, name, defaults);
  double ofLogits = config.real("logit_scale", 0.0625);
  bool bias = config.flag("attention_bias", false);
  // How training was split, and what the tokenizer warns of.
  config.ignore({"pretraining_tp", "model_max_length"});
  if (!cohere || config.hasErrors())
    return std::nullopt;
  cohere->norm.kind = NormKind::LayerNorm; // without beta
  Block &block = cohere->block;
  block.placement = Placement::Parallel;
  block.norm = cohere->norm;
  Attention &attention = *block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.rope->interleaved = true;
  for (TensorName &row : cohere->tensors)
    if (std::string(row.role) == "norm2")
      row.tensor = "input_layernorm";
  cohere->logitScale = ofLogits;
  return cohere;
}

std::optional<Model> importCohere(ImportContext &context) {
  bool headNorm = context.config.flag("use_qk_norm", false);
  std::optional<LlamaConfig> cohere = readCohere(context, "cohere");
  if (!cohere)
    return std::nullopt;
  if (headNorm) {
    cohere->block.attention->qkNorm = cohere->norm;
    cohere->block.attention->qkNormScope = NormScope::Heads;
  }
  return buildLlama(context, *cohere);
}

std::optional<Model> importCohere2(ImportContext &context) {
  Config &config = context.config;
  std::optional<int64_t> window = readWindow(config, 4096);
  int64_t pattern = config.integer(
      config.oneOf({"sliding_window_pattern", "_sliding_window_pattern"}), 4);
  // Files tell more of how the model was trained than its class reads.
  config.ignore({"cache_implementation", "layer_switch",
                 "order_of_interleaved_layers", "position_embedding_type",
                 "rotary_pct", "use_embedding_sharing",
                 "use_parallel_embedding"});
  config.mustBeTrue("use_gated_activation", "the class always gates");
  config.mustBeTrue("use_parallel_block",
                    "the class runs attention and FFN side by side");
  config.mustBeFalse("use_qk_norm", "the class normalises no heads");
  std::optional<LlamaConfig> cohere = readCohere(context, "cohere2");
  if (!cohere)
    return std::nullopt;
  std::vector<std::string> types;
  for (int64_t i = 0; i < cohere->layers; ++i)
    types.push_back((i + 1) % pattern ? "sliding_attention" : "full_attention");
  slideLayers(config, *cohere, window, std::move(types), "Cohere 2");
  if (config.hasErrors())
    return std::nullopt;
  // Layers that see everything have no positions.
  for (Block &kind : cohere->kinds)
    if (!kind.attention->window)
      kind.attention->rope.reset();
  return buildLlama(context, *cohere);
}

} // namespace attune::hf
