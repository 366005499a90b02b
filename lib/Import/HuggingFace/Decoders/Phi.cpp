//===- Phi.cpp - config.json of Phi and Phi-3 -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importPhi(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 8192;
  defaults.layers = 24;
  defaults.vocab = 51200;
  defaults.epsKey = "layer_norm_eps";
  defaults.eps = 1e-5;
  defaults.activation = "gelu_new";
  defaults.rope.partial = 0.5;
  std::optional<LlamaConfig> phi = readLlama(context, "phi", defaults);
  bool headNorm = config.flag("qk_layernorm", false);
  config.ignore({"embd_pdrop", "resid_pdrop"});
  if (!phi || config.hasErrors())
    return std::nullopt;
  phi->norm.kind = NormKind::LayerNorm;
  phi->norm.bias = true;
  Block &block = phi->block;
  block.placement = Placement::Parallel;
  block.norm = phi->norm;
  block.attention->qkvBias = block.attention->outBias = true;
  if (headNorm)
    block.attention->qkNorm = phi->norm;
  block.ffn->gated = false;
  block.ffn->bias = true;
  // One norm for both sublayers.
  phi->tensors = {{"norm1", "input_layernorm"},
                  {"norm2", "input_layernorm"},
                  {"attention.q", "self_attn.q_proj"},
                  {"attention.k", "self_attn.k_proj"},
                  {"attention.v", "self_attn.v_proj"},
                  {"attention.o", "self_attn.dense"},
                  {"attention.q_norm", "self_attn.q_layernorm"},
                  {"attention.k_norm", "self_attn.k_layernorm"},
                  {"ffn.up", "mlp.fc1"},
                  {"ffn.down", "mlp.fc2"}};
  phi->lastNorm = "final_layernorm";
  phi->headBias = true;
  return buildLlama(context, *phi);
}

std::optional<Model> importPhi3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 3072;
  defaults.inner = 8192;
  defaults.vocab = 32064;
  defaults.length = 4096;
  defaults.eps = 1e-5;
  defaults.rope.partial = 1;
  std::optional<LlamaConfig> phi = readLlama(context, "phi3", defaults);
  std::optional<int64_t> window = readWindow(config, std::nullopt);
  // It has a meaning for readRope only if there is a scaling.
  config.ignore(
      {"embd_pdrop", "resid_pdrop", "original_max_position_embeddings"});
  config.mustBeFalse("attention_bias", "biases of projections in Phi-3 are not "
                                       "supported");
  if (!phi || config.hasErrors())
    return std::nullopt;
  slideLayers(config, *phi, window,
              std::vector<std::string>(phi->layers, "sliding_attention"),
              "Phi-3");
  if (config.hasErrors())
    return std::nullopt;
  phi->tensors = {{"norm1", "input_layernorm"},
                  {"attention.qkv", "self_attn.qkv_proj", Layout::Blocks},
                  {"attention.o", "self_attn.o_proj"},
                  {"norm2", "post_attention_layernorm"},
                  {"ffn.gate_up", "mlp.gate_up_proj", Layout::Blocks},
                  {"ffn.down", "mlp.down_proj"}};
  return buildLlama(context, *phi);
}

} // namespace attune::hf
