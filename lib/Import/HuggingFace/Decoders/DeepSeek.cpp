//===- DeepSeek.cpp - DeepSeek-V2 and DeepSeek-V3 ---------------*- C++ -*-===//
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
/// Where the two versions' configuration classes differ.
struct DeepSeekDefaults {
  const char *name = "";
  LlamaDefaults llama;
  int64_t dense = 0;
  ExpertDefaults experts;
};
} // namespace

/// YaRN's temperature, which here multiplies scores, both queries and keys.
static double scoreFactor(Config &config) {
  const Value *scaling = config.peek("rope_parameters");
  if (!scaling)
    scaling = config.peek("rope_scaling");
  const Value *all = scaling ? scaling->find("mscale_all_dim") : nullptr;
  const Value *factor = scaling ? scaling->find("factor") : nullptr;
  if (!all || !factor || factor->real <= 1)
    return 1;
  double temperature = 0.1 * all->real * std::log(factor->real) + 1;
  return temperature * temperature;
}

/// Queries, keys and values through compressed rows. `llama` has what its own
/// keys say; its head_dim is that of the turned channels.
static void readLatent(Config &config, LlamaConfig &llama) {
  Attention &attention = *llama.block.attention;
  Latent latent;
  latent.location = config.locate("kv_lora_rank");
  latent.rank = config.integer("kv_lora_rank", 512);
  if (!config.isNull("q_lora_rank"))
    latent.queryRank = config.integer("q_lora_rank", 1536);
  else
    config.ignore({"q_lora_rank"});
  latent.nopeDim = config.integer("qk_nope_head_dim", 128);
  // These norms take no eps of the configuration.
  latent.norm = llama.norm;
  latent.norm.eps = 1e-6;
  attention.kvHeads = attention.heads;
  attention.headDim = latent.nopeDim + attention.rope->channels;
  attention.valueDim = config.integer("v_head_dim", 128);
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.rope->interleaved = config.flag("rope_interleave", true);
  attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
  attention.latent = latent;
  llama.tensors.insert(llama.tensors.end(),
                       {{"attention.q_a", "self_attn.q_a_proj"},
                        {"attention.q_norm", "self_attn.q_a_layernorm"},
                        {"attention.q_b", "self_attn.q_b_proj"},
                        {"attention.kv_a", "self_attn.kv_a_proj_with_mqa"},
                        {"attention.kv_norm", "self_attn.kv_a_layernorm"},
                        {"attention.kv_b", "self_attn.kv_b_proj"}});
}

/// How version 2 chooses: softmax; groups by their best expert; weights are
/// renormalised or scaled, never both.
static void readSoftmaxRouter(Config &config, Router &router) {
  std::string method = config.text("topk_method", "greedy");
  bool grouped = method == "group_limited_greedy";
  // The published class default has a slip in its spelling.
  if (!grouped && method != "greedy" && method != "gready")
    config.error("topk_method", "expected \"greedy\" or "
                                "\"group_limited_greedy\", found " +
                                    quote(method));
  if (config.text("scoring_func", "softmax") != "softmax")
    config.error("scoring_func", "expected \"softmax\"");
  if (!grouped)
    router.groups = router.activeGroups = 1;
  if (router.renormalise)
    router.scale = 1;
}

static std::optional<Model>
importDeepSeek(ImportContext &context, DeepSeekDefaults defaults,
               void (*readRouter)(Config &, Router &)) {
  Config &config = context.config;
  int64_t turned = config.integer("qk_rope_head_dim", 64);
  if (config.peek("head_dim") && config.integer("head_dim", turned) != turned)
    config.error("head_dim",
                 "expected qk_rope_head_dim, " + std::to_string(turned));
  defaults.llama.headDim = turned;
  std::optional<LlamaConfig> llama =
      readLlama(context, defaults.name, defaults.llama);
  config.mustBeFalse("mlp_bias", "feed-forward layers with biases are not "
                                 "supported here");
  ignoreRouterKeys(config);
  // Layers that predict further tokens are no part of the network.
  config.ignore(
      {"num_nextn_predict_layers", "num_key_value_heads", "qk_head_dim"});
  int64_t dense = config.count("first_k_dense_replace", defaults.dense);
  int64_t every = config.integer("moe_layer_freq", 1);
  if (!llama || config.hasErrors())
    return std::nullopt;
  readLatent(config, *llama);
  Attention &attention = *llama->block.attention;
  attention.scale *= scoreFactor(config);
  bool sparse = defaults.experts.count || config.peek("n_routed_experts");
  MoE moe;
  if (sparse)
    moe = readRoutedExperts(config, defaults.experts, readRouter);
  if (config.hasErrors())
    return std::nullopt;
  moe.activation = llama->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_experts"))
    llama->tensors.push_back(row);
  return buildMixture(context, *llama, moe, [&](int64_t layer) {
    return sparse && layer >= dense && layer % every == 0;
  });
}

std::optional<Model> importDeepSeekV2(ImportContext &context) {
  DeepSeekDefaults defaults;
  defaults.name = "deepseek_v2";
  defaults.llama.inner = 11008;
  defaults.llama.layers = 30;
  defaults.llama.vocab = 102400;
  defaults.experts.width = 1407;
  return importDeepSeek(context, defaults, readSoftmaxRouter);
}

std::optional<Model> importDeepSeekV3(ImportContext &context) {
  DeepSeekDefaults defaults;
  defaults.name = "deepseek_v3";
  defaults.llama.width = 7168;
  defaults.llama.inner = 18432;
  defaults.llama.layers = 61;
  defaults.llama.heads = 128;
  defaults.llama.vocab = 129280;
  defaults.llama.length = 4096;
  defaults.experts.width = 2048;
  defaults.dense = 3;
  defaults.experts.count = 256;
  defaults.experts.active = 8;
  defaults.experts.shared = 1;
  defaults.experts.groups = 8;
  defaults.experts.activeGroups = 4;
  defaults.experts.renormalise = true;
  defaults.experts.scale = 2.5;
  return importDeepSeek(context, defaults, readSigmoidRouter);
}

} // namespace attune::hf
