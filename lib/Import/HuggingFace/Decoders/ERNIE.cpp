//===- ERNIE.cpp - config.json of ERNIE 4.5 ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// What dense models and mixtures share: neighbouring channels turn together,
/// and one flag gives biases to all projections.
static std::optional<LlamaConfig>
readERNIE(ImportContext &context, const char *name, LlamaDefaults defaults) {
  Config &config = context.config;
  defaults.vocab = 103424;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.tied = true;
  defaults.rope.theta = 500000;
  std::optional<LlamaConfig> ernie = readLlama(context, name, defaults);
  bool bias = config.flag("use_bias", false);
  if (!ernie || config.hasErrors())
    return std::nullopt;
  Attention &attention = *ernie->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.rope->interleaved = true;
  ernie->block.ffn->bias = bias;
  return ernie;
}

std::optional<Model> importERNIE45(ImportContext &context) {
  LlamaDefaults defaults;
  defaults.width = 1024;
  defaults.inner = 3072;
  defaults.layers = 18;
  defaults.heads = 16;
  defaults.kvHeads = 2;
  defaults.headDim = 128;
  std::optional<LlamaConfig> ernie = readERNIE(context, "ernie4_5", defaults);
  if (!ernie)
    return std::nullopt;
  return buildLlama(context, *ernie);
}

/// Experts are chosen by softmax and a bias for the choice alone; the weights
/// of the chosen ones sum to 1.
std::optional<Model> importERNIE45MoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2560;
  defaults.inner = 12288;
  defaults.layers = 28;
  defaults.heads = 20;
  defaults.kvHeads = 4;
  std::optional<LlamaConfig> ernie =
      readERNIE(context, "ernie4_5_moe", defaults);
  MoE moe;
  moe.location = config.locate("moe_num_experts");
  moe.experts = config.integer("moe_num_experts", 64);
  moe.active = config.integer("moe_k", 6);
  moe.width = config.integer("moe_intermediate_size", 1536);
  if (int64_t shared = config.count("moe_num_shared_experts", 2))
    moe.shared = SharedExpert{shared * moe.width, /*gate=*/false};
  moe.router.selectBias = moe.router.renormalise = true;
  checkExperts(config, "moe_k", moe.active, "moe_num_experts", moe.experts);
  int64_t first = config.count("moe_layer_start_index", 1);
  int64_t every = config.integer("moe_layer_interval", 1);
  int64_t last = INT64_MAX; // -1 in the file
  if (const Value *end = config.peek("moe_layer_end_index");
      end && !(end->isNumber() && end->real == -1))
    last = config.count("moe_layer_end_index", 0);
  if (config.text("moe_gate", "topk") != "topk")
    config.error("moe_gate", "expected \"topk\"");
  // The least sum to divide by, which weights of chosen experts always exceed.
  config.ignore({"moe_layer_end_index", "moe_norm_min"});
  ignoreRouterKeys(config);
  if (!ernie || config.hasErrors())
    return std::nullopt;
  if (ernie->block.ffn->bias) {
    config.error("use_bias", "experts with biases are not supported");
    return std::nullopt;
  }
  moe.activation = ernie->block.ffn->activation;
  for (TensorName row : mixtureTensors("shared_experts")) {
    if (std::string_view(row.role) == "moe.router.bias")
      row.tensor = "mlp.moe_statics.e_score_correction_bias";
    ernie->tensors.push_back(row);
  }
  return buildMixture(context, *ernie, moe, [&](int64_t layer) {
    return (layer + 1) % every == 0 && layer >= first && layer <= last;
  });
}

} // namespace attune::hf
