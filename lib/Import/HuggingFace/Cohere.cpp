//===- Cohere.cpp - config.json of Command R --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importCohere(ImportContext &context) {
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
  std::optional<LlamaConfig> cohere = readLlama(context, "cohere", defaults);
  double ofLogits = config.real("logit_scale", 0.0625);
  bool bias = config.flag("attention_bias", false);
  bool headNorm = config.flag("use_qk_norm", false);
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
  if (headNorm) {
    attention.qkNorm = cohere->norm;
    attention.qkNormScope = NormScope::Heads;
  }
  for (TensorName &row : cohere->tensors)
    if (std::string(row.role) == "norm2")
      row.tensor = "input_layernorm";
  cohere->logitScale = ofLogits;
  return buildLlama(context, *cohere);
}

} // namespace attune::hf
