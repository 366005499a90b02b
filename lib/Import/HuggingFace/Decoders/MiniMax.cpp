//===- MiniMax.cpp - config.json of MiniMax-M2 ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// Queries and keys are normalised before they are cut into heads, and half of
/// each head rotates. Every layer has experts, chosen by sigmoid and a bias.
std::optional<Model> importMiniMaxM2(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 3072;
  defaults.inner = 1536;
  defaults.layers = 62;
  defaults.heads = 48;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 200064;
  defaults.length = 196608;
  defaults.rope.theta = 5e6;
  if (config.get("rotary_dim")) {
    int64_t turned = config.integer("rotary_dim", 128);
    defaults.rope.partial =
        double(turned) / double(config.integer("head_dim", 128));
  }
  std::optional<LlamaConfig> model = readLlama(context, "minimax_m2", defaults);
  MoE moe;
  moe.location = config.locate("num_local_experts");
  moe.experts = config.integer("num_local_experts", 256);
  moe.active = config.integer("num_experts_per_tok", 8);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_local_experts",
               moe.experts);
  readSigmoidRouter(config, moe.router);
  moe.router.renormalise = true;
  config.mustBeTrue("use_routing_bias",
                    "a router without a bias is not supported");
  config.mustBeTrue("use_qk_norm", "attention without norms of queries and "
                                   "keys is not supported");
  if (config.text("qk_norm_type", "per_layer") != "per_layer")
    config.error("qk_norm_type", "expected \"per_layer\"");
  ignoreRouterKeys(config);
  if (!model || config.hasErrors())
    return std::nullopt;
  model->block.attention->qkNorm = model->norm;
  model->block.attention->qkNormScope = NormScope::Projection;
  moe.width = model->block.ffn->width;
  moe.activation = model->block.ffn->activation;
  for (auto [role, tensor] :
       {std::pair("moe.router", "block_sparse_moe.gate"),
        std::pair("moe.router.bias",
                  "block_sparse_moe.e_score_correction_bias"),
        std::pair("moe.experts.{e}.gate", "block_sparse_moe.experts.{e}.w1"),
        std::pair("moe.experts.{e}.up", "block_sparse_moe.experts.{e}.w3"),
        std::pair("moe.experts.{e}.down", "block_sparse_moe.experts.{e}.w2")})
    model->tensors.push_back({role, tensor});
  return buildMixture(context, *model, moe, [](int64_t) { return true; });
}

} // namespace attune::hf
