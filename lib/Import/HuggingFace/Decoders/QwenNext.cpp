//===- QwenNext.cpp - config.json of Qwen3-Next and Qwen3.5 -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// Which layers attend: "layer_types", or else every n-th.
static std::vector<bool> readFullAttentionLayers(Config &config,
                                                 int64_t layers) {
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
}

/// As Qwen2-MoE's, with other defaults.
static MoE readExperts(Config &config, Activation activation, int64_t count,
                       int64_t active, bool renormalise) {
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", count);
  moe.active = config.integer("num_experts_per_tok", active);
  moe.width = config.integer("moe_intermediate_size", 512);
  moe.activation = activation;
  moe.router.renormalise = renormalise;
  moe.shared =
      SharedExpert{config.integer("shared_expert_intermediate_size", 512),
                   /*gate=*/true};
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  ignoreRouterKeys(config);
  return moe;
}

namespace {
/// What both generations share: attention with gates beside delta rules.
struct NextConfig {
  LlamaConfig llama; ///< `block` attends
  DeltaRule rule;
  std::vector<bool> attending; ///< layer by layer
};
} // namespace

static std::optional<NextConfig>
readNext(ImportContext &context, const char *name, LlamaDefaults defaults) {
  Config &config = context.config;
  defaults.heads = 16;
  defaults.headDim = 256;
  defaults.length = 32768;
  defaults.rope.partial = 0.25;
  std::optional<LlamaConfig> llama = readLlama(context, name, defaults);
  if (!llama)
    return std::nullopt;
  llama->norm.offset = llama->block.norm.offset = 1;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
  attention.qkNorm = llama->norm;
  attention.gate = true;
  if (llama->block.ffn->activation != Activation::Silu)
    config.error("hidden_act", "convolutions and gates with another activation "
                               "than silu are not supported");
  DeltaRule rule = readDeltaRule(config, llama->norm);
  std::vector<bool> attending = readFullAttentionLayers(config, llama->layers);
  for (const TensorName &row :
       TensorNames{{"delta_rule.conv1d", "linear_attn.conv1d"},
                   {"delta_rule.A_log", "linear_attn.A_log"},
                   {"delta_rule.norm", "linear_attn.norm"},
                   {"delta_rule.out_proj", "linear_attn.out_proj"}})
    llama->tensors.push_back(row);
  llama->weights["delta_rule.step.bias"] = {{"linear_attn.dt_bias"}};
  addGate(llama->weights, attention);
  return NextConfig{std::move(*llama), rule, std::move(attending)};
}

std::optional<Model> importQwen3Next(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 5632;
  defaults.layers = 48;
  defaults.kvHeads = 2;
  defaults.vocab = 151936;
  std::optional<NextConfig> next = readNext(context, "qwen3_next", defaults);
  if (!next)
    return std::nullopt;
  LlamaConfig &llama = next->llama;
  MoE moe = readExperts(config, llama.block.ffn->activation, 512, 10,
                        config.flag("norm_topk_prob", true));
  int64_t step = config.integer("decoder_sparse_step", 1);
  std::set<int64_t> dense = readDenseLayers(config);
  if (config.hasErrors())
    return std::nullopt;
  // Four kinds: whether they attend, and whether they have experts.
  llama.kinds.assign(4, llama.block);
  for (size_t kind = 0; kind < 4; ++kind) {
    Block &block = llama.kinds[kind];
    if (kind & 1) {
      block.attention.reset();
      block.deltaRule = next->rule;
    }
    if (kind & 2) {
      block.ffn.reset();
      block.moe = moe;
    }
  }
  for (int64_t i = 0; i < llama.layers; ++i) {
    bool sparse = !dense.count(i) && (i + 1) % step == 0;
    llama.kindOf.push_back((next->attending[static_cast<size_t>(i)] ? 0 : 1) +
                           (sparse ? 2 : 0));
  }
  for (const TensorName &row : mixtureTensors("shared_expert"))
    llama.tensors.push_back(row);
  addDeltaRule(llama.weights, next->rule);
  return buildLlama(context, llama);
}

/// What the text models of Qwen3.5 share: projections are tensors of their own.
/// The three positions of a text's token are one and the same.
static std::optional<NextConfig> readNext35(ImportContext &context,
                                            const char *name,
                                            const LlamaDefaults &defaults) {
  Config &config = context.config;
  std::optional<NextConfig> next = readNext(context, name, defaults);
  if (!next)
    return std::nullopt;
  if (!config.flag("attn_output_gate", true))
    config.error("attn_output_gate", "expected true");
  // Layers that predict further tokens are left out; states are f32.
  config.ignore({"mtp_num_hidden_layers", "mtp_use_dedicated_embeddings",
                 "mamba_ssm_dtype"});
  for (const TensorName &row :
       TensorNames{{"delta_rule.in_proj", "linear_attn.in_proj_qkv"},
                   {"delta_rule.gate", "linear_attn.in_proj_z"},
                   {"delta_rule.beta", "linear_attn.in_proj_b"},
                   {"delta_rule.step.weight", "linear_attn.in_proj_a.weight"}})
    next->llama.tensors.push_back(row);
  return next;
}

/// Blocks that attend as `llama.block` does, and others with a delta rule.
static Model buildNext35(ImportContext &context, NextConfig &next) {
  LlamaConfig &llama = next.llama;
  llama.kinds.assign(2, llama.block);
  llama.kinds[1].attention.reset();
  llama.kinds[1].deltaRule = next.rule;
  for (bool attends : next.attending)
    llama.kindOf.push_back(attends ? 0 : 1);
  return buildLlama(context, llama);
}

std::optional<Model> importQwen35(ImportContext &context) {
  LlamaDefaults defaults;
  defaults.width = 4096;
  defaults.inner = 12288;
  defaults.layers = 32;
  defaults.kvHeads = 4;
  defaults.vocab = 248320;
  std::optional<NextConfig> next = readNext35(context, "qwen3_5", defaults);
  if (!next || context.config.hasErrors())
    return std::nullopt;
  return buildNext35(context, *next);
}

/// The tables of experts: one tensor of all, gates above the others, or, where
/// the checkpoint has these, one of each.
static void nameExperts(ImportContext &context, LlamaConfig &llama,
                        int64_t width) {
  for (const TensorName &row : mixtureTensors("shared_expert"))
    llama.tensors.push_back(row);
  std::string first = "layers.0.mlp.experts.0.gate_proj.weight";
  if (context.checkpoint &&
      context.checkpoint->find(
          context.prefixFor("model.", "embed_tokens.weight") + first))
    return;
  auto rows = [&](const std::string &role, const char *tensor, int64_t begin,
                  int64_t end) {
    WeightSource source;
    source.tensor = std::string("mlp.experts.{e}.") + tensor;
    source.begin = begin;
    source.end = end;
    llama.weights["moe.experts.{e}." + role + ".weight"] = {source};
  };
  rows("gate", "gate_up_proj", 0, width);
  rows("up", "gate_up_proj", width, 2 * width);
  rows("down", "down_proj", 0, -1);
}

/// Experts in every layer, whose weights always sum to 1, and a shared one with
/// a gate.
std::optional<Model> importQwen35MoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 5632; // which no layer has
  defaults.layers = 40;
  defaults.kvHeads = 2;
  defaults.vocab = 248320;
  std::optional<NextConfig> next = readNext35(context, "qwen3_5_moe", defaults);
  if (!next)
    return std::nullopt;
  Block &block = next->llama.block;
  MoE moe = readExperts(config, block.ffn->activation, 256, 8,
                        /*renormalise=*/true);
  if (config.hasErrors())
    return std::nullopt;
  block.ffn.reset();
  block.moe = moe;
  nameExperts(context, next->llama, moe.width);
  return buildNext35(context, *next);
}

} // namespace attune::hf
