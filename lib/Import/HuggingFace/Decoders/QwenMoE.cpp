//===- QwenMoE.cpp - Qwen2-MoE and Qwen3-MoE --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// The text model of Qwen3-VL, whose matrices of all experts are stacks [in,
/// out], gates first.
static bool hasStacks(Config &config) {
  const Value *type = config.peek("model_type");
  return type && type->text == "qwen3_vl_moe_text";
}

static void nameStacks(LlamaConfig &llama, int64_t width) {
  auto stack = [&](const std::string &role, const std::string &tensor,
                   int64_t first, int64_t end) {
    llama.weights["moe.experts.{e}." + role + ".weight"] = {
        {"mlp.experts.{e}." + tensor, /*transposed=*/true, first, end}};
  };
  stack("gate", "gate_up_proj", 0, width);
  stack("up", "gate_up_proj", width, 2 * width);
  stack("down", "down_proj", 0, -1);
}

/// Shared by both: which layers have experts, and how these are chosen.
static std::optional<Model> importQwenMoE(ImportContext &context,
                                          std::optional<LlamaConfig> llama,
                                          MoE moe, int64_t experts,
                                          int64_t active, int64_t inner) {
  Config &config = context.config;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", experts);
  moe.active = config.integer("num_experts_per_tok", active);
  moe.width = config.integer("moe_intermediate_size", inner);
  moe.router.renormalise = config.flag("norm_topk_prob", false);
  // Its class knows no others, whatever the file says.
  moe.router.renormalise |= hasStacks(config);
  int64_t step = config.integer("decoder_sparse_step", 1);
  std::set<int64_t> dense = readDenseLayers(config);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  ignoreRouterKeys(config);
  config.mustBeFalse("use_sliding_window",
                     "mixtures whose layers have windows are not supported");
  // These have no effect without use_sliding_window.
  config.ignore({"sliding_window", "max_window_layers"});
  if (llama)
    readLayerTypes(config, llama->layers, {"full_attention"}, "Qwen-MoE");
  if (!llama || config.hasErrors())
    return std::nullopt;
  moe.activation = llama->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_expert"))
    llama->tensors.push_back(row);
  if (hasStacks(config))
    nameStacks(*llama, moe.width);
  return buildMixture(context, *llama, moe, [&](int64_t layer) {
    return !dense.count(layer) && (layer + 1) % step == 0;
  });
}

std::optional<Model> importQwen2MoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 5632;
  defaults.layers = 24;
  defaults.heads = defaults.kvHeads.emplace(16);
  defaults.vocab = 151936;
  defaults.length = 32768;
  std::optional<LlamaConfig> llama = readLlama(context, "qwen2_moe", defaults);
  bool bias = config.flag("qkv_bias", true);
  MoE moe;
  SharedExpert &shared = moe.shared.emplace();
  shared.width = config.integer("shared_expert_intermediate_size", 5632);
  shared.gate = true;
  if (llama)
    llama->block.attention->qkvBias = bias;
  return importQwenMoE(context, std::move(llama), moe, 60, 4, 1408);
}

std::optional<Model> importQwen3MoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 6144;
  defaults.layers = 24;
  defaults.kvHeads = 4;
  defaults.vocab = 151936;
  defaults.length = 32768;
  std::optional<LlamaConfig> llama = readLlama(context, "qwen3_moe", defaults);
  bool bias = config.flag("attention_bias", false);
  if (llama) {
    Attention &attention = *llama->block.attention;
    attention.qkvBias = attention.outBias = bias;
    attention.qkNorm = llama->norm;
  }
  return importQwenMoE(context, std::move(llama), MoE(), 128, 8, 768);
}

} // namespace attune::hf
