//===- Bailing.cpp - config.json of Ling and Ring --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// Ling 1 and 1.5: experts by softmax. Ling 2 and Ring 2, whose files have the
/// same type and another class: sigmoid, a bias for the choice and groups.
static MoE readExperts(Config &config, bool second) {
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 16);
  moe.active = config.integer("num_experts_per_tok", 2);
  moe.width = config.integer("moe_intermediate_size", std::nullopt);
  if (int64_t shared = config.count("num_shared_experts", 0))
    moe.shared = SharedExpert{
        shared *
            config.integer("moe_shared_expert_intermediate_size", moe.width),
        /*gate=*/false};
  else
    config.ignore({"moe_shared_expert_intermediate_size"});
  Router &router = moe.router;
  router.renormalise = config.flag("norm_topk_prob", true) && moe.active > 1;
  if (!second) {
    checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
                 moe.experts);
    return moe;
  }
  if (config.text("score_function", "sigmoid") != "sigmoid")
    config.error("score_function", "expected \"sigmoid\"");
  if (!config.flag("norm_topk_prob", true))
    config.error("norm_topk_prob",
                 "expected true, for the class makes weights sum to 1 "
                 "whatever this key says");
  config.mustBeTrue("moe_router_enable_expert_bias",
                    "experts are chosen with a bias");
  router.groups = config.integer("n_group", std::nullopt);
  router.activeGroups = config.integer("topk_group", std::nullopt);
  router.scale = config.real("routed_scaling_factor", std::nullopt);
  finishSigmoidRouter(config, "num_experts", moe);
  return moe;
}

static std::optional<Model> importBailing(ImportContext &context,
                                          const char *name, bool second) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 1024;
  defaults.layers = 24;
  defaults.heads = 16;
  defaults.vocab = 30592;
  defaults.length = 16384;
  defaults.eps = second ? 1e-6 : 1e-5;
  // The classes read nothing for a width that is not said.
  if (!config.peek("intermediate_size"))
    config.error("intermediate_size",
                 "expected the width of the feed-forward layers");
  // Two names of one thing.
  int64_t turned = config.integer("rotary_dim", maxSize);
  if (second)
    defaults.rope.partial = 1;
  std::optional<LlamaConfig> ling = readLlama(context, name, defaults);
  bool qkvBias = config.flag("use_qkv_bias", false);
  bool bias = config.flag("use_bias", !second);
  bool normed = second && config.flag("use_qk_norm", true);
  int64_t dense = config.count("first_k_dense_replace", 0);
  config.mustBeFalse("norm_head",
                     "a head whose columns are normed is not supported");
  config.mustBeFalse("use_sliding_window", "a window is not supported");
  config.mustBeTrue("use_rmsnorm", "other norms are not supported");
  ignoreRouterKeys(config);
  config.ignore({"embedding_dropout", "output_dropout", "norm_softmax",
                 "sliding_window", "max_window_layers", "router_dtype",
                 "num_nextn_predict_layers", "mtp_loss_scaling_factor",
                 "moe_router_enable_shared_expert", "multi_gate",
                 "moe_router_enable_routed_scaling", "topk_method",
                 "scoring_func"});
  if (!ling || config.hasErrors())
    return std::nullopt;
  Attention &attention = *ling->block.attention;
  if (config.peek("rotary_dim") && turned != attention.rope->channels)
    config.error("rotary_dim",
                 "expected " + std::to_string(attention.rope->channels) +
                     ", the part of a head that partial_rotary_factor says");
  MoE moe = readExperts(config, second);
  if (bias)
    config.error("use_bias", "experts with biases are not supported");
  if (config.hasErrors())
    return std::nullopt;
  attention.qkvBias = qkvBias;
  if (normed)
    attention.qkNorm = ling->norm;
  moe.activation = ling->block.ffn->activation;
  ling->table = "word_embeddings";
  ling->tensors = {
      {"norm1", "input_layernorm"},
      {"attention.qkv", "attention.query_key_value", Layout::Blocks},
      {"attention.o", "attention.dense"},
      {"attention.q_norm", "attention.query_layernorm"},
      {"attention.k_norm", "attention.key_layernorm"},
      {"norm2", "post_attention_layernorm"},
      {"ffn.gate", "mlp.gate_proj"},
      {"ffn.up", "mlp.up_proj"},
      {"ffn.down", "mlp.down_proj"}};
  for (TensorName row : mixtureTensors("shared_experts")) {
    if (std::string_view(row.role) == "moe.router.bias")
      row.tensor = "mlp.gate.expert_bias";
    ling->tensors.push_back(row);
  }
  return buildMixture(context, *ling, moe,
                      [&](int64_t layer) { return layer >= dense; });
}

std::optional<Model> importBailingMoE(ImportContext &context) {
  bool second = std::string_view(context.modelClass->name).find("MoeV2") !=
                std::string_view::npos;
  return importBailing(context, "bailing_moe", second);
}

} // namespace attune::hf
