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

} // namespace attune::hf
