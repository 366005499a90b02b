//===- AFMoE.cpp - config.json of Arcee's Trinity --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

static MoE readExperts(Config &config, Activation activation) {
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 64);
  moe.active = config.integer("num_experts_per_tok", 6);
  moe.width = config.integer("moe_intermediate_size", 1408);
  moe.activation = activation;
  if (int64_t shared = config.count("num_shared_experts", 2))
    moe.shared = SharedExpert{shared * moe.width, /*gate=*/false};
  moe.router.scores = RouterScores::Sigmoid;
  moe.router.selectBias = moe.router.renormalise = true;
  moe.router.eps = 1e-20;
  moe.router.scale = config.real("route_scale", 1);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  // The class computes what these say in published files, and nothing else.
  if (config.text("score_func", "sigmoid") != "sigmoid")
    config.error("score_func", "expected \"sigmoid\"");
  config.mustBeTrue("route_norm", "weights that do not sum to 1 are not "
                                  "supported");
  for (const char *key :
       {"n_group", "topk_group", "num_expert_groups", "num_limited_groups"})
    if (config.integer(key, 1) != 1)
      config.error(key, "groups of experts are not supported, expected 1");
  config.ignore({"load_balance_coeff", "use_grouped_mm"});
  return moe;
}

/// Norms before and behind each sublayer, gates of what attention gives, and
/// positions in the layers with a window alone.
std::optional<Model> importAFMoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 6144;
  defaults.heads = 16;
  defaults.headDim = 128;
  defaults.vocab = 200192;
  defaults.length = 16384;
  defaults.eps = 1e-5;
  std::optional<LlamaConfig> afmoe = readLlama(context, "afmoe", defaults);
  std::optional<int64_t> window = readWindow(config, 1024);
  int64_t every = config.integer("global_attn_every_n_layers", 4);
  int64_t dense = config.count("num_dense_layers", 1);
  bool scaled = config.flag("mup_enabled", false);
  if (!window)
    config.error("sliding_window", "expected the number of keys that most "
                                   "layers see");
  if (!afmoe || config.hasErrors())
    return std::nullopt;
  MoE moe = readExperts(config, afmoe->block.ffn->activation);
  Block &block = afmoe->block;
  block.placement = Placement::Peri;
  block.attention->qkNorm = afmoe->norm;
  block.attention->gate = true;
  std::vector<std::string> types;
  for (int64_t i = 0; i < afmoe->layers; ++i)
    types.push_back((i + 1) % every ? "sliding_attention" : "full_attention");
  slideLayers(config, *afmoe, window, std::move(types), "AFMoE");
  if (config.hasErrors())
    return std::nullopt;
  for (Block &kind : afmoe->kinds)
    if (!kind.attention->window)
      kind.attention->rope.reset();
  if (scaled)
    afmoe->embeddingScale = std::sqrt(double(afmoe->width));
  for (TensorName &row : afmoe->tensors)
    if (std::string_view(row.role) == "norm2")
      row.tensor = "pre_mlp_layernorm";
  for (TensorName row : TensorNames{{"norm1_post", "post_attention_layernorm"},
                                    {"norm2_post", "post_mlp_layernorm"},
                                    {"attention.gate", "self_attn.gate_proj"}})
    afmoe->tensors.push_back(row);
  for (TensorName row : mixtureTensors("shared_experts")) {
    if (std::string_view(row.role) == "moe.router")
      row.tensor = "mlp.router.gate";
    if (std::string_view(row.role) == "moe.router.bias")
      row.tensor = "mlp.expert_bias";
    afmoe->tensors.push_back(row);
  }
  return buildMixture(context, *afmoe, moe,
                      [&](int64_t layer) { return layer >= dense; });
}

} // namespace attune::hf
