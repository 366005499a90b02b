//===- Phi.cpp - config.json of Phi, Phi-3 and Phi-3.5-MoE ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

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

/// Two experts of each token, each weighted among those whose scores are near
/// its own, and layer norms.
std::optional<Model> importPhiMoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 6400;
  defaults.kvHeads = 8;
  defaults.vocab = 32064;
  defaults.length = 4096 * 32;
  defaults.eps = 1e-5;
  defaults.rope.theta = 1e6;
  defaults.rope.takesMscale = true;
  std::optional<LlamaConfig> phi = readLlama(context, "phimoe", defaults);
  MoE moe = readLocalExperts(config, /*experts=*/16, /*active=*/2);
  if (moe.active != 2)
    config.error("num_experts_per_tok", "expected 2, as its class does");
  moe.router.scores = RouterScores::SparseMixer;
  moe.router.eps = config.real("router_jitter_noise", 0.01);
  bool bias = config.flag("attention_bias", false);
  bool headBias = config.flag("lm_head_bias", false);
  std::optional<int64_t> window = readWindow(config, std::nullopt);
  // The noise of inputs is training's.
  config.ignore({"input_jitter_noise", "output_router_logits",
                 "router_aux_loss_coef", "hidden_dropout",
                 "original_max_position_embeddings"});
  if (!phi || config.hasErrors())
    return std::nullopt;
  phi->norm.kind = NormKind::LayerNorm;
  phi->norm.bias = true;
  phi->headBias = headBias;
  Block &block = phi->block;
  block.norm = phi->norm;
  block.attention->qkvBias = block.attention->outBias = bias;
  block.attention->window = window;
  moe.width = block.ffn->width;
  moe.activation = block.ffn->activation;
  for (const TensorName &name : blockSparseTensors())
    phi->tensors.push_back(name);
  return buildMixture(context, *phi, moe, [](int64_t) { return true; });
}

} // namespace attune::hf
