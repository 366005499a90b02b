//===- KimiLinear.cpp - config.json of Kimi Linear --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// Which of "kda_layers" and "full_attn_layers", whose numbers count from 1,
/// every layer is in.
static std::vector<bool> readLayerLists(Config &config, int64_t layers) {
  std::vector<int> found(static_cast<size_t>(layers), -1);
  for (auto [key, attends] :
       {std::pair("kda_layers", 0), std::pair("full_attn_layers", 1)}) {
    const Value *list = config.get(key);
    if (!list || !list->isArray()) {
      config.error(key, "expected an array of layer numbers");
      return {};
    }
    for (const Value &number : list->elements) {
      if (number.kind != Value::Kind::Integer || number.integer < 1 ||
          number.integer > layers ||
          found[static_cast<size_t>(number.integer) - 1] >= 0) {
        config.getReporter().error(number.offset, config.child(key),
                                   "expected layer numbers from 1 to " +
                                       std::to_string(layers) +
                                       ", each in one list");
        return {};
      }
      found[static_cast<size_t>(number.integer) - 1] = attends;
    }
  }
  std::vector<bool> attending;
  for (int kind : found) {
    if (kind < 0) {
      config.error("kda_layers", "some layers are in neither list");
      return {};
    }
    attending.push_back(kind == 1);
  }
  return attending;
}

/// A memory whose channels forget each by a step of its own. The steps and the
/// gate go through a width of one head.
static DeltaRule readKimiDelta(Config &config, const Norm &norm) {
  DeltaRule rule;
  rule.location = config.locate("num_heads");
  rule.heads = rule.keyHeads = config.integer("num_heads", std::nullopt);
  rule.keyDim = rule.valueDim = config.integer("head_dim", std::nullopt, 512);
  rule.kernel = config.integer("short_conv_kernel_size", 4, 256);
  if (rule.kernel < 2)
    config.error("short_conv_kernel_size", "expected a number from 2 on");
  rule.channelSteps = true;
  rule.stepRank = rule.gateRank = rule.valueDim;
  rule.gateActivation = Activation::Sigmoid;
  rule.norm = norm;
  if (numConvolved(rule) > maxSize)
    config.error("num_heads", "is too large for such heads");
  return rule;
}

/// Latent attention in which nothing turns.
static Attention readLatentAttention(Config &config, const Norm &norm) {
  Attention attention;
  attention.location = config.locate("kv_lora_rank");
  attention.heads = config.integer("num_attention_heads", 32);
  attention.kvHeads = attention.heads;
  Latent latent;
  latent.location = attention.location;
  latent.rank = config.integer("kv_lora_rank", std::nullopt);
  if (config.get("q_lora_rank"))
    config.error("q_lora_rank", "expected null");
  latent.nopeDim = config.integer("qk_nope_head_dim", std::nullopt);
  latent.norm = norm;
  latent.norm.eps = 1e-6; // which takes none of the configuration
  attention.headDim =
      latent.nopeDim + config.integer("qk_rope_head_dim", std::nullopt);
  attention.valueDim = config.integer("v_head_dim", std::nullopt);
  attention.latent = latent;
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.causal = Causal::BottomRight;
  if (!config.flag("mla_use_nope", false))
    config.error("mla_use_nope", "expected true, as the published class does");
  return attention;
}

/// As DeepSeek-V3 chooses, under other names.
static MoE readExperts(Config &config) {
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", std::nullopt);
  moe.active = config.integer("num_experts_per_token", std::nullopt);
  moe.width = config.integer("moe_intermediate_size", std::nullopt);
  if (int64_t shared = config.count("num_shared_experts", 0))
    moe.shared = SharedExpert{shared * moe.width, /*gate=*/false};
  Router &router = moe.router;
  std::string scores = config.text("moe_router_activation_func", "sigmoid");
  if (scores != "sigmoid")
    config.error("moe_router_activation_func", "expected \"sigmoid\"");
  router.scores = RouterScores::Sigmoid;
  router.selectBias = true;
  if (config.flag("use_grouped_topk", true)) {
    router.groups = config.integer("num_expert_group", 1);
    router.activeGroups = config.integer("topk_group", 1);
    if (router.groups > 1)
      router.groupScore = GroupScore::TopTwo;
  } else {
    config.ignore({"num_expert_group", "topk_group"});
  }
  router.renormalise = config.flag("moe_renormalize", true) && moe.active > 1;
  router.scale = config.real("routed_scaling_factor", 1);
  if (router.renormalise)
    router.eps = 1e-20;
  checkExperts(config, "num_experts_per_token", moe.active, "num_experts",
               moe.experts);
  if (moe.experts % router.groups)
    config.error("num_expert_group", std::to_string(moe.experts) +
                                         " experts cannot be divided into " +
                                         std::to_string(router.groups) +
                                         " groups");
  else if (router.activeGroups > router.groups)
    config.error("topk_group", std::to_string(router.activeGroups) +
                                   " is more than the " +
                                   std::to_string(router.groups) + " groups");
  return moe;
}

/// Queries, keys and values have a projection and a convolution each.
static void nameDeltaRule(LlamaConfig &llama) {
  for (auto [role, end] : {std::pair("in_proj", "_proj.weight"),
                           std::pair("conv1d", "_conv1d.weight")})
    for (const char *part : {"q", "k", "v"})
      llama.weights[std::string("delta_rule.") + role + ".weight"].push_back(
          {std::string("self_attn.") + part + end});
  llama.weights["delta_rule.step.bias"] = {{"self_attn.dt_bias"}};
}

static const TensorNames &kimiTensorNames() {
  static const TensorNames tensors = {
      {"norm1", "input_layernorm"},
      {"norm2", "post_attention_layernorm"},
      {"attention.q", "self_attn.q_proj"},
      {"attention.kv_a", "self_attn.kv_a_proj_with_mqa"},
      {"attention.kv_norm", "self_attn.kv_a_layernorm"},
      {"attention.kv_b", "self_attn.kv_b_proj"},
      {"attention.o", "self_attn.o_proj"},
      {"delta_rule.step_down", "self_attn.f_a_proj"},
      {"delta_rule.step.weight", "self_attn.f_b_proj.weight"},
      {"delta_rule.gate_down", "self_attn.g_a_proj"},
      {"delta_rule.gate", "self_attn.g_b_proj"},
      {"delta_rule.beta", "self_attn.b_proj"},
      {"delta_rule.A_log", "self_attn.A_log"},
      {"delta_rule.norm", "self_attn.o_norm"},
      {"delta_rule.out_proj", "self_attn.o_proj"},
      {"ffn.gate", "mlp.gate_proj"},
      {"ffn.up", "mlp.up_proj"},
      {"ffn.down", "mlp.down_proj"},
      {"moe.router", "block_sparse_moe.gate"},
      {"moe.router.bias", "block_sparse_moe.gate.e_score_correction_bias"},
      {"moe.experts.{e}.gate", "block_sparse_moe.experts.{e}.w1"},
      {"moe.experts.{e}.up", "block_sparse_moe.experts.{e}.w3"},
      {"moe.experts.{e}.down", "block_sparse_moe.experts.{e}.w2"},
      {"moe.shared.gate", "block_sparse_moe.shared_experts.gate_proj"},
      {"moe.shared.up", "block_sparse_moe.shared_experts.up_proj"},
      {"moe.shared.down", "block_sparse_moe.shared_experts.down_proj"}};
  return tensors;
}

std::optional<Model> importKimiLinear(ImportContext &context) {
  Config &config = context.config;
  LlamaConfig llama;
  llama.name = "kimi_linear";
  llama.width = config.integer("hidden_size", 4096);
  llama.layers = config.layers("num_hidden_layers", 32);
  llama.vocab = config.integer("vocab_size", 163840);
  llama.context = config.get("model_max_length")
                      ? config.integer("model_max_length", std::nullopt)
                      : 0;
  llama.norm.kind = NormKind::RMSNorm;
  llama.norm.bias = false;
  llama.norm.eps = config.real("rms_norm_eps", 1e-6);
  llama.norm.location = config.locate("rms_norm_eps");
  llama.tied = config.flag("tie_word_embeddings", false);
  std::optional<Activation> activation =
      config.activation("hidden_act", "silu");
  int64_t inner = config.integer("intermediate_size", 11008);
  int64_t dense = config.count("first_k_dense_replace", 0);
  int64_t every = config.integer("moe_layer_freq", 1);
  Attention attention = readLatentAttention(config, llama.norm);
  bool sparse = config.get("num_experts");
  MoE moe;
  if (sparse)
    moe = readExperts(config);
  // Nothing turns, and each latent head has a key of its own.
  config.ignore({"head_dim", "num_key_value_heads", "rope_theta",
                 "rope_scaling", "rope_parameters", "max_position_embeddings",
                 "num_nextn_predict_layers"});
  const Value *keys = config.get("linear_attn_config");
  if (!keys || !keys->isObject()) {
    config.error("linear_attn_config", "expected an object");
    return std::nullopt;
  }
  Config linear = config.inner(*keys, "linear_attn_config");
  DeltaRule rule = readKimiDelta(linear, llama.norm);
  std::vector<bool> attending = readLayerLists(linear, llama.layers);
  linear.finish("the delta rule of Kimi Linear");
  if (config.hasErrors())
    return std::nullopt;

  Block &body = llama.block;
  body.norm = llama.norm;
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = moe.activation = *activation;
  ffn.gated = true;
  ffn.bias = false;
  ffn.location = config.locate("intermediate_size");
  // Four kinds: whether they attend, and whether they have experts.
  llama.kinds.assign(4, body);
  for (size_t kind = 0; kind < 4; ++kind) {
    Block &block = llama.kinds[kind];
    if (kind & 1)
      block.deltaRule = rule;
    else
      block.attention = attention;
    if (kind & 2) {
      block.ffn.reset();
      block.moe = moe;
    }
  }
  for (int64_t i = 0; i < llama.layers; ++i) {
    bool routes = sparse && i >= dense && i % every == 0;
    llama.kindOf.push_back((attending[static_cast<size_t>(i)] ? 0 : 1) +
                           (routes ? 2 : 0));
  }
  llama.tensors = kimiTensorNames();
  nameDeltaRule(llama);
  return buildLlama(context, llama);
}

} // namespace attune::hf
