//===- HunYuan.cpp - config.json of Hunyuan, dense and with experts -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// What dense models and mixtures share: queries and keys are normed behind
/// their rotation.
static std::optional<LlamaConfig> readHunYuan(ImportContext &context,
                                              const char *name) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 290943;
  defaults.eps = 1e-5;
  defaults.rope.takesAlpha = true;
  std::optional<LlamaConfig> hunyuan = readLlama(context, name, defaults);
  bool bias = config.flag("attention_bias", false);
  config.ignore({"pretraining_tp"});
  if (!hunyuan || config.hasErrors())
    return std::nullopt;
  Attention &attention = *hunyuan->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = hunyuan->norm;
  attention.qkNormAfterRotary = true;
  for (TensorName &row : hunyuan->tensors) {
    if (std::string_view(row.role) == "attention.q_norm")
      row.tensor = "self_attn.query_layernorm";
    if (std::string_view(row.role) == "attention.k_norm")
      row.tensor = "self_attn.key_layernorm";
  }
  return hunyuan;
}

std::optional<Model> importHunYuanDense(ImportContext &context) {
  std::optional<LlamaConfig> hunyuan = readHunYuan(context, "hunyuan_v1_dense");
  if (!hunyuan)
    return std::nullopt;
  return buildLlama(context, *hunyuan);
}

/// A number, or the same one for each layer.
static int64_t readAlike(Config &config, const char *key, int64_t layers) {
  const Value *value = config.peek(key);
  if (!value || !value->isArray())
    return config.integer(key, 1);
  config.get(key);
  const std::vector<Value> &items = value->elements;
  bool alike = static_cast<int64_t>(items.size()) == layers;
  for (const Value &item : items)
    alike &= item.kind == Value::Kind::Integer && item.integer >= 1 &&
             item.integer <= maxSize && item.integer == items[0].integer;
  if (!alike) {
    config.error(key, "expected a number, or a list of the same number for "
                      "each of the " +
                          std::to_string(layers) + " layers");
    return 1;
  }
  return items[0].integer;
}

/// Experts by softmax whose weights sum to 1, and one that every token goes
/// through; all are as wide as "intermediate_size" says.
std::optional<Model> importHunYuanMoE(ImportContext &context) {
  Config &config = context.config;
  std::optional<LlamaConfig> hunyuan = readHunYuan(context, "hunyuan_v1_moe");
  if (!hunyuan)
    return std::nullopt;
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = readAlike(config, "num_experts", hunyuan->layers);
  moe.active = readAlike(config, "moe_topk", hunyuan->layers);
  moe.width = hunyuan->block.ffn->width;
  if (config.get("moe_intermediate_size") &&
      readAlike(config, "moe_intermediate_size", hunyuan->layers) != moe.width)
    config.error("moe_intermediate_size",
                 "expected intermediate_size, " + std::to_string(moe.width));
  moe.activation = hunyuan->block.ffn->activation;
  moe.router.renormalise = true;
  moe.shared = SharedExpert{moe.width, /*gate=*/false};
  checkExperts(config, "moe_topk", moe.active, "num_experts", moe.experts);
  if (config.get("num_shared_expert") &&
      readAlike(config, "num_shared_expert", hunyuan->layers) != 1)
    config.error("num_shared_expert", "expected 1");
  // The class keeps these and does not read them. The flag says that there is a
  // shared expert, which the class always has.
  config.ignore({"use_mixed_mlp_moe", "moe_drop_tokens",
                 "moe_random_routing_dropped_token", "eod_token_id",
                 "sep_token_id"});
  if (config.hasErrors())
    return std::nullopt;
  hunyuan->block.ffn.reset();
  hunyuan->block.moe = moe;
  for (const TensorName &row :
       TensorNames{{"moe.router", "mlp.gate.wg"},
                   {"moe.experts.{e}.gate", "mlp.experts.{e}.gate_proj"},
                   {"moe.experts.{e}.up", "mlp.experts.{e}.up_proj"},
                   {"moe.experts.{e}.down", "mlp.experts.{e}.down_proj"},
                   {"moe.shared.gate", "mlp.shared_mlp.gate_proj"},
                   {"moe.shared.up", "mlp.shared_mlp.up_proj"},
                   {"moe.shared.down", "mlp.shared_mlp.down_proj"}})
    hunyuan->tensors.push_back(row);
  return buildLlama(context, *hunyuan);
}

/// Hy3: Apertus's attention with Qwen 3's norms, experts by sigmoid with a bias
/// for the choice.
std::optional<Model> importHyV3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 13312;
  defaults.layers = 80;
  defaults.heads = 64;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 120832;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.rope.theta = 11158840;
  std::optional<LlamaConfig> llama = readLlama(context, "hy_v3", defaults);
  bool bias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  int64_t dense = config.count("first_k_dense_replace", 1);
  for (const char *key : {"route_norm", "moe_router_use_sigmoid",
                          "moe_router_enable_expert_bias"})
    config.mustBeTrue(key, "the class computes what true says");
  if (const Value *normed = config.get("qk_norm");
      normed && !(normed->kind == Value::Kind::Boolean && normed->boolean))
    config.error("qk_norm", "expected true, for the class norms queries and "
                            "keys");
  ignoreRouterKeys(config);
  config.ignore({"enable_moe_fp32_combine", "num_nextn_predict_layers",
                 "expert_hidden_dim", "enable_lm_head_fp32",
                 "enable_attention_fp32_softmax"});
  if (!llama)
    return std::nullopt;
  std::function<bool(int64_t)> isSparse =
      readSparseLayers(config, llama->layers, dense);
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 192);
  moe.active = config.integer("num_experts_per_tok", 8);
  moe.width = config.integer("moe_intermediate_size", 1536);
  moe.activation = llama->block.ffn->activation;
  moe.shared = SharedExpert{config.integer("num_shared_experts", 1) * moe.width,
                            /*gate=*/false};
  moe.router.scores = RouterScores::Sigmoid;
  moe.router.selectBias = moe.router.renormalise = true;
  moe.router.eps = 1e-20;
  moe.router.scale = config.real("router_scaling_factor", 2.826);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  if (ffnBias)
    config.error("mlp_bias", "experts with biases are not supported");
  if (config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = llama->norm;
  // Names of published files; the class has others within.
  for (TensorName row : mixtureTensors("shared_experts")) {
    std::string_view role = row.role;
    if (role == "moe.router")
      row.tensor = "mlp.router.gate";
    else if (role == "moe.router.bias")
      row.tensor = "mlp.expert_bias";
    else if (role == "moe.shared.gate")
      row.tensor = "mlp.shared_mlp.gate_proj";
    else if (role == "moe.shared.up")
      row.tensor = "mlp.shared_mlp.up_proj";
    else if (role == "moe.shared.down")
      row.tensor = "mlp.shared_mlp.down_proj";
    llama->tensors.push_back(row);
  }
  return buildMixture(context, *llama, moe, isSparse);
}

} // namespace attune::hf
