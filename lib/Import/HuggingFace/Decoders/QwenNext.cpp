//===- QwenNext.cpp - config.json of Qwen3-Next -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// Which layers attend: "layer_types", else every so many.
static std::vector<bool> readAttending(Config &config, int64_t layers) {
  std::vector<std::string> types = readLayerTypes(
      config, layers, {"linear_attention", "full_attention"}, "Qwen3-Next");
  int64_t interval = config.integer("full_attention_interval", 4);
  std::vector<bool> attending;
  for (int64_t i = 0; i < layers && !config.hasErrors(); ++i)
    attending.push_back(types.empty() ? (i + 1) % interval == 0
                                      : types[static_cast<size_t>(i)] ==
                                            "full_attention");
  return attending;
}

static DeltaRule readDeltaRule(Config &config, const Norm &norm) {
  DeltaRule rule;
  rule.location = config.locate("linear_num_value_heads");
  rule.heads = config.integer("linear_num_value_heads", 32);
  rule.keyHeads = config.integer("linear_num_key_heads", 16);
  rule.keyDim = config.integer("linear_key_head_dim", 128, 512);
  rule.valueDim = config.integer("linear_value_head_dim", 128, 65536);
  rule.kernel = config.integer("linear_conv_kernel_dim", 4, 256);
  if (rule.kernel < 2)
    config.error("linear_conv_kernel_dim", "expected a number from 2 on");
  rule.norm = norm;
  rule.norm.offset = 0;
  if (rule.heads % rule.keyHeads)
    config.error("linear_num_key_heads", std::to_string(rule.keyHeads) +
                                             " key heads do not divide the " +
                                             std::to_string(rule.heads) +
                                             " value heads");
  if (numConvolved(rule) > maxSize)
    config.error("linear_num_value_heads", "is too large for such heads");
  return rule;
}

/// `count` times `size` rows of a tensor, one run in every `stride`.
static WeightSource every(const char *tensor, int64_t begin, int64_t size,
                          int64_t stride, int64_t count) {
  WeightSource source{tensor, /*transposed=*/false, begin, begin + size};
  source.stride = stride;
  source.count = count;
  return source;
}

/// "q_proj" holds each head's queries, then its gate.
static void addGate(WeightMap &weights, const Attention &attention) {
  int64_t dim = attention.headDim, heads = attention.heads;
  for (std::string end : {"weight", "bias"}) {
    std::string tensor = "self_attn.q_proj." + end;
    weights["attention.q." + end] = {
        every(tensor.c_str(), 0, dim, 2 * dim, heads)};
    weights["attention.gate." + end] = {
        every(tensor.c_str(), dim, dim, 2 * dim, heads)};
  }
}

/// "in_proj_qkvz" holds, for each key head, its query, its key, the values that
/// belong to it and their gates; "in_proj_ba" the betas and the steps.
static void addDeltaRule(WeightMap &weights, const DeltaRule &rule) {
  int64_t keys = rule.keyHeads, dim = rule.keyDim, share = rule.heads / keys;
  int64_t values = share * rule.valueDim, stride = 2 * (dim + values);
  const char *wide = "linear_attn.in_proj_qkvz.weight";
  weights["delta_rule.in_proj.weight"] = {
      every(wide, 0, dim, stride, keys), every(wide, dim, dim, stride, keys),
      every(wide, 2 * dim, values, stride, keys)};
  weights["delta_rule.gate.weight"] = {
      every(wide, 2 * dim + values, values, stride, keys)};
  const char *narrow = "linear_attn.in_proj_ba.weight";
  weights["delta_rule.beta.weight"] = {
      every(narrow, 0, share, 2 * share, keys)};
  weights["delta_rule.step.weight"] = {
      every(narrow, share, share, 2 * share, keys)};
  weights["delta_rule.step.bias"] = {{"linear_attn.dt_bias"}};
}

/// As Qwen2-MoE's, with other defaults.
static MoE readExperts(Config &config, Activation activation) {
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 512);
  moe.active = config.integer("num_experts_per_tok", 10);
  moe.width = config.integer("moe_intermediate_size", 512);
  moe.activation = activation;
  moe.router.renormalise = config.flag("norm_topk_prob", true);
  moe.shared =
      SharedExpert{config.integer("shared_expert_intermediate_size", 512),
                   /*gate=*/true};
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  ignoreRouterKeys(config);
  return moe;
}

std::optional<Model> importQwen3Next(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 5632;
  defaults.layers = 48;
  defaults.heads = 16;
  defaults.kvHeads = 2;
  defaults.headDim = 256;
  defaults.vocab = 151936;
  defaults.length = 32768;
  defaults.rope.partial = 0.25;
  std::optional<LlamaConfig> llama = readLlama(context, "qwen3_next", defaults);
  if (!llama)
    return std::nullopt;
  llama->norm.offset = 1;
  Block &attends = llama->block;
  attends.norm.offset = 1;
  Attention &attention = *attends.attention;
  attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
  attention.qkNorm = llama->norm;
  attention.gate = true;
  DeltaRule rule = readDeltaRule(config, llama->norm);
  if (attends.ffn->activation != Activation::Silu)
    config.error("hidden_act", "convolutions and gates with another activation "
                               "than silu are not supported");
  MoE moe = readExperts(config, attends.ffn->activation);
  std::vector<bool> attending = readAttending(config, llama->layers);
  int64_t step = config.integer("decoder_sparse_step", 1);
  std::set<int64_t> dense = readDenseLayers(config);
  if (config.hasErrors())
    return std::nullopt;
  // Four kinds: whether they attend, and whether they have experts.
  llama->kinds.assign(4, attends);
  for (size_t kind = 0; kind < 4; ++kind) {
    Block &block = llama->kinds[kind];
    if (kind & 1) {
      block.attention.reset();
      block.deltaRule = rule;
    }
    if (kind & 2) {
      block.ffn.reset();
      block.moe = moe;
    }
  }
  for (int64_t i = 0; i < llama->layers; ++i) {
    bool sparse = !dense.count(i) && (i + 1) % step == 0;
    llama->kindOf.push_back((attending[static_cast<size_t>(i)] ? 0 : 1) +
                            (sparse ? 2 : 0));
  }
  for (const TensorName &row : mixtureTensors("shared_expert"))
    llama->tensors.push_back(row);
  for (const TensorName &row :
       TensorNames{{"delta_rule.conv1d", "linear_attn.conv1d"},
                   {"delta_rule.A_log", "linear_attn.A_log"},
                   {"delta_rule.norm", "linear_attn.norm"},
                   {"delta_rule.out_proj", "linear_attn.out_proj"}})
    llama->tensors.push_back(row);
  addGate(llama->weights, attention);
  addDeltaRule(llama->weights, rule);
  return buildLlama(context, *llama);
}

} // namespace attune::hf
