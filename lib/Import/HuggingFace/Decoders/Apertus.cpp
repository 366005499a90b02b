//===- Apertus.cpp - config.json of Apertus ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// LLaMA with norms of heads and a feed-forward layer without a gate, whose
/// activation has two learned numbers a layer.
std::optional<Model> importApertus(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.vocab = 131072;
  defaults.length = 65536;
  defaults.eps = 1e-5;
  defaults.activationKey = nullptr;
  defaults.rope.theta = 12e6;
  RopeScaling &scaling = defaults.rope.scaling.emplace();
  scaling.type = "llama3";
  scaling.factor = 8;
  scaling.originalLength = 8192;
  std::optional<LlamaConfig> apertus = readLlama(context, "apertus", defaults);
  if (config.text("hidden_act", "xielu") != "xielu")
    config.error("hidden_act", "expected \"xielu\"");
  bool bias = config.flag("attention_bias", false);
  if (!apertus || config.hasErrors())
    return std::nullopt;
  Block &block = apertus->block;
  block.attention->qkvBias = block.attention->outBias = bias;
  block.attention->qkNorm = apertus->norm;
  block.ffn->gated = false;
  block.ffn->xielu = true;
  apertus->tensors = {{"norm1", "attention_layernorm"},
                      {"attention.q", "self_attn.q_proj"},
                      {"attention.k", "self_attn.k_proj"},
                      {"attention.v", "self_attn.v_proj"},
                      {"attention.o", "self_attn.o_proj"},
                      {"attention.q_norm", "self_attn.q_norm"},
                      {"attention.k_norm", "self_attn.k_norm"},
                      {"norm2", "feedforward_layernorm"},
                      {"ffn.up", "mlp.up_proj"},
                      {"ffn.alpha_p", "mlp.act_fn.alpha_p"},
                      {"ffn.alpha_n", "mlp.act_fn.alpha_n"},
                      {"ffn.down", "mlp.down_proj"}};
  return buildLlama(context, *apertus);
}

} // namespace attune::hf
