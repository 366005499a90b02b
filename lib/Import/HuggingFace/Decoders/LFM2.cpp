//===- LFM2.cpp - config.json of LFM2, with experts or not ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// Which layers attend: "layer_types", else "full_attn_idxs", else all.
static std::vector<bool> readAttending(Config &config, int64_t layers) {
  std::vector<std::string> types =
      readLayerTypes(config, layers, {"conv", "full_attention"}, "LFM2");
  std::vector<bool> attending(layers, true);
  const Value *numbers = config.get("full_attn_idxs");
  for (size_t i = 0; i < types.size(); ++i)
    attending[i] = types[i] == "full_attention";
  if (!types.empty() || !numbers)
    return attending;
  attending.assign(layers, false);
  if (!numbers->isArray()) {
    config.error("full_attn_idxs", "expected an array of layer numbers");
    return attending;
  }
  for (const Value &number : numbers->elements)
    if (number.kind == Value::Kind::Integer && number.integer >= 0 &&
        number.integer < layers)
      attending[static_cast<size_t>(number.integer)] = true;
    else
      config.getReporter().error(number.offset, config.child("full_attn_idxs"),
                                 "expected layer numbers from 0 to " +
                                     std::to_string(layers - 1));
  return attending;
}

/// The width of the feed-forward layers, which the class adjusts unless told
/// not to: two thirds, times a factor, rounded up to a multiple.
static int64_t adjustWidth(Config &config, int64_t width) {
  bool adjusts = config.flag("block_auto_adjust_ff_dim", true);
  int64_t multiple = config.integer("block_multiple_of", 256);
  bool scales = !config.isNull("block_ffn_dim_multiplier");
  double by = config.real("block_ffn_dim_multiplier", 1);
  if (!adjusts || config.hasErrors())
    return width;
  width = 2 * width / 3;
  if (scales)
    width = static_cast<int64_t>(by * static_cast<double>(width));
  return multiple * ((width + multiple - 1) / multiple);
}

/// What dense models and mixtures share: two kinds of layers, of which the
/// first attends and the second convolves.
static std::optional<LlamaConfig>
readLFM2(ImportContext &context, const char *name, LlamaDefaults defaults) {
  Config &config = context.config;
  defaults.kvHeads = 8;
  defaults.vocab = 65536;
  defaults.length = 128000;
  defaults.epsKey = "norm_eps";
  defaults.eps = 1e-5;
  defaults.rope.theta = 1000000;
  defaults.tied = true;
  std::optional<LlamaConfig> llama = readLlama(context, name, defaults);
  if (!llama)
    return std::nullopt;
  // A name of the first files, which counts where it is.
  llama->tied = config.flag("tie_embedding", llama->tied);
  ShortConv conv;
  conv.location = config.locate("conv_L_cache");
  conv.kernel = config.integer("conv_L_cache", 3, 256);
  conv.bias = config.flag("conv_bias", false);
  if (conv.kernel < 2)
    config.error("conv_L_cache", "expected a number from 2 on");
  Block &attends = llama->block;
  attends.attention->qkNorm = llama->norm;
  Block convolves = attends;
  convolves.attention.reset();
  convolves.shortConv = conv;
  llama->kinds = {attends, convolves};
  llama->tensors = {{"norm1", "operator_norm"},
                    {"attention.q", "self_attn.q_proj"},
                    {"attention.k", "self_attn.k_proj"},
                    {"attention.v", "self_attn.v_proj"},
                    {"attention.o", "self_attn.out_proj"},
                    {"attention.q_norm", "self_attn.q_layernorm"},
                    {"attention.k_norm", "self_attn.k_layernorm"},
                    {"short_conv.in_proj", "conv.in_proj"},
                    {"short_conv.conv", "conv.conv"},
                    {"short_conv.out_proj", "conv.out_proj"},
                    {"norm2", "ffn_norm"},
                    {"ffn.gate", "feed_forward.w1"},
                    {"ffn.up", "feed_forward.w3"},
                    {"ffn.down", "feed_forward.w2"}};
  llama->lastNorm = "embedding_norm";
  return llama;
}

std::optional<Model> importLFM2(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2560;
  defaults.inner = 12288;
  defaults.rope.thetaKey = "theta";
  std::optional<LlamaConfig> llama = readLFM2(context, "lfm2", defaults);
  if (!llama)
    return std::nullopt;
  int64_t inner = config.integer("block_ff_dim", llama->block.ffn->width);
  inner = adjustWidth(config, inner);
  for (const char *key : {"block_dim", "conv_dim", "conv_dim_out"})
    if (config.get(key) && config.integer(key, llama->width) != llama->width)
      config.error(key,
                   "expected hidden_size, " + std::to_string(llama->width));
  if (!config.flag("block_use_swiglu", true))
    config.error("block_use_swiglu", "expected true");
  // How weights were started, and keys that the class does not read.
  config.ignore({"block_mlp_init_scale", "block_norm_eps",
                 "block_out_init_scale", "block_use_xavier_init",
                 "conv_use_xavier_init", "num_heads", "use_pos_enc"});
  std::vector<bool> attending = readAttending(config, llama->layers);
  if (config.hasErrors())
    return std::nullopt;
  for (Block &kind : llama->kinds)
    kind.ffn->width = inner;
  for (bool attention : attending)
    llama->kindOf.push_back(attention ? 0 : 1);
  return buildLlama(context, *llama);
}

/// Experts by sigmoid, a bias for the choice alone if there is one.
static MoE readExperts(Config &config, Activation activation) {
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 32);
  moe.active = config.integer("num_experts_per_tok", 4);
  moe.width = config.integer("moe_intermediate_size", 1792);
  moe.activation = activation;
  moe.router.scores = RouterScores::Sigmoid;
  moe.router.selectBias = config.flag("use_expert_bias", true);
  moe.router.renormalise = config.flag("norm_topk_prob", true);
  if (moe.router.renormalise)
    moe.router.eps = 1e-6;
  moe.router.scale = config.real("routed_scaling_factor", 1);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  return moe;
}

/// LFM2 with experts in all but the first layers.
std::optional<Model> importLFM2MoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.inner = 7168;
  std::optional<LlamaConfig> llama = readLFM2(context, "lfm2_moe", defaults);
  if (!llama)
    return std::nullopt;
  MoE moe = readExperts(config, llama->block.ffn->activation);
  int64_t dense = config.count("num_dense_layers", 2);
  std::vector<std::string> types =
      readLayerTypes(config, llama->layers, {"conv", "full_attention"}, "LFM2");
  if (types.empty() && !config.hasErrors())
    config.error("layer_types", "expected \"conv\" or \"full_attention\" for "
                                "each layer");
  if (config.hasErrors())
    return std::nullopt;
  for (size_t i = 0; i < 2; ++i) {
    Block sparse = llama->kinds[i];
    sparse.ffn.reset();
    sparse.moe = moe;
    llama->kinds.push_back(sparse);
  }
  for (int64_t i = 0; i < llama->layers; ++i)
    llama->kindOf.push_back((types[i] == "conv" ? 1 : 0) + (i < dense ? 0 : 2));
  for (const TensorName &row :
       TensorNames{{"moe.router", "feed_forward.gate"},
                   {"moe.router.bias", "feed_forward.expert_bias"},
                   {"moe.experts.{e}.gate", "feed_forward.experts.{e}.w1"},
                   {"moe.experts.{e}.up", "feed_forward.experts.{e}.w3"},
                   {"moe.experts.{e}.down", "feed_forward.experts.{e}.w2"}})
    llama->tensors.push_back(row);
  return buildLlama(context, *llama);
}

} // namespace attune::hf
