//===- Jamba.cpp - config.json of Jamba -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
/// One in `period` layers, from number `offset` on.
struct Turn {
  int64_t period, offset;
  bool has(int64_t layer) const { return layer % period == offset; }
};
} // namespace

static Turn readTurn(Config &config, const char *periodKey, int64_t period,
                     const char *offsetKey, int64_t offset) {
  Turn turn{config.integer(periodKey, period), config.count(offsetKey, offset)};
  if (turn.offset >= turn.period)
    config.error(offsetKey,
                 std::to_string(turn.offset) + " is not less than the period " +
                     std::to_string(turn.period) + " (" + periodKey + ")");
  return turn;
}

static Mamba readStateSpace(Config &config, int64_t width, const Norm &norm) {
  Mamba mamba;
  mamba.location = config.locate("mamba_d_state");
  mamba.states = config.integer("mamba_d_state", 16, 256);
  mamba.kernel = config.integer("mamba_d_conv", 4, 256);
  mamba.inner = config.integer("mamba_expand", 2, 64) * width;
  mamba.rank = (width + 15) / 16;
  const Value *rank = config.peek("mamba_dt_rank");
  if (rank && rank->isString() && rank->text == "auto")
    config.ignore({"mamba_dt_rank"});
  else
    mamba.rank = config.integer("mamba_dt_rank", mamba.rank);
  mamba.convBias = config.flag("mamba_conv_bias", true);
  mamba.bias = config.flag("mamba_proj_bias", false);
  mamba.norm = norm;
  // The first files' own code had models without these norms.
  if (!config.flag("mamba_inner_layernorms", true))
    config.error("mamba_inner_layernorms", "expected true");
  return mamba;
}

/// Attention without positions.
static Attention readAttention(Config &config, int64_t width) {
  Attention attention;
  attention.location = config.locate("num_attention_heads");
  attention.heads = config.integer("num_attention_heads", 32);
  attention.kvHeads = config.integer(
      "num_key_value_heads",
      config.isNull("num_key_value_heads") ? attention.heads : int64_t(8));
  if (!config.peek("head_dim"))
    config.mustShare("num_attention_heads", attention.heads, "hidden_size",
                     width);
  attention.headDim = attention.valueDim =
      config.integer("head_dim", std::max<int64_t>(width / attention.heads, 1));
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.causal = Causal::BottomRight;
  if (attention.heads % attention.kvHeads)
    config.error("num_key_value_heads",
                 std::to_string(attention.kvHeads) +
                     " key/value heads do not divide the " +
                     std::to_string(attention.heads) + " query heads");
  if (config.get("sliding_window"))
    config.error("sliding_window", "expected null");
  return attention;
}

std::optional<Model> importJamba(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 4096);
  int64_t vocab = config.integer("vocab_size", 65536);
  int64_t layers = config.layers("num_hidden_layers", 32);
  int64_t length = config.integer("max_position_embeddings", 262144);
  bool tied = config.flag("tie_word_embeddings", false);
  Block block;
  block.norm.kind = NormKind::RMSNorm;
  block.norm.bias = false;
  block.norm.eps = config.real("rms_norm_eps", 1e-6);
  block.norm.location = config.locate("rms_norm_eps");
  std::optional<Activation> activation =
      config.activation("hidden_act", "silu");
  if (activation && *activation != Activation::Silu)
    config.error("hidden_act", "state spaces with another activation than "
                               "silu are not supported");
  FFN ffn;
  ffn.location = config.locate("intermediate_size");
  ffn.width = config.integer("intermediate_size", 14336);
  ffn.activation = Activation::Silu;
  ffn.gated = true;
  ffn.bias = false;
  // Weights of the chosen experts stay as the softmax over all gave them.
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 16);
  moe.active = config.integer("num_experts_per_tok", 2);
  moe.width = ffn.width;
  moe.activation = ffn.activation;
  bool routes = moe.experts > 1;
  if (routes)
    checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
                 moe.experts);
  ignoreRouterKeys(config);
  Turn attends =
      readTurn(config, "attn_layer_period", 8, "attn_layer_offset", 4);
  Turn sparse =
      readTurn(config, "expert_layer_period", 2, "expert_layer_offset", 1);
  Mamba mamba = readStateSpace(config, width, block.norm);
  Attention attention = readAttention(config, width);
  config.ignore({"attention_dropout", "use_mamba_kernels", "num_logits_to_keep",
                 "calc_logits_for_entire_prompt", "n_ctx"});
  if (config.hasErrors())
    return std::nullopt;

  // Four kinds: whether they attend, and whether they have experts.
  std::vector<Block> kinds(4, block);
  for (size_t kind = 0; kind < 4; ++kind) {
    if (kind & 1)
      kinds[kind].attention = attention;
    else
      kinds[kind].mamba = mamba;
    if (kind & 2)
      kinds[kind].moe = moe;
    else
      kinds[kind].ffn = ffn;
  }
  std::vector<size_t> kindOf;
  for (int64_t i = 0; i < layers; ++i)
    kindOf.push_back((attends.has(i) ? 1 : 0) +
                     (routes && sparse.has(i) ? 2 : 0));

  Model model;
  model.name = "jamba";
  model.context = length;
  StreamBuilder stream(config,
                       context.prefixFor("model.", "embed_tokens.weight"));
  stream.embedding("embed_tokens", vocab, width);
  stream.blocks(
      "layers.{i}", "num_hidden_layers", kinds, kindOf,
      {{"norm1", "input_layernorm"},
       {"norm2", "pre_ff_layernorm"},
       {"mamba.in_proj", "mamba.in_proj"},
       {"mamba.conv1d", "mamba.conv1d"},
       {"mamba.x_proj", "mamba.x_proj"},
       {"mamba.dt_proj", "mamba.dt_proj"},
       {"mamba.dt_norm", "mamba.dt_layernorm"},
       {"mamba.b_norm", "mamba.b_layernorm"},
       {"mamba.c_norm", "mamba.c_layernorm"},
       {"mamba.A_log", "mamba.A_log"},
       {"mamba.D", "mamba.D"},
       {"mamba.out_proj", "mamba.out_proj"},
       {"attention.q", "self_attn.q_proj"},
       {"attention.k", "self_attn.k_proj"},
       {"attention.v", "self_attn.v_proj"},
       {"attention.o", "self_attn.o_proj"},
       {"ffn.gate", "feed_forward.gate_proj"},
       {"ffn.up", "feed_forward.up_proj"},
       {"ffn.down", "feed_forward.down_proj"},
       {"moe.router", "feed_forward.router"},
       {"moe.experts.{e}.gate", "feed_forward.experts.{e}.gate_proj"},
       {"moe.experts.{e}.up", "feed_forward.experts.{e}.up_proj"},
       {"moe.experts.{e}.down", "feed_forward.experts.{e}.down_proj"}});
  stream.norm("final_layernorm", block.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embed_tokens" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
