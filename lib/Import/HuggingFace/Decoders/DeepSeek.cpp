//===- DeepSeek.cpp - DeepSeek, GLM-4.7-Flash and GLM-5 ---------*- C++ -*-===//
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
  LatentDefaults latent;
  /// Heads of the index that chooses the keys that a query sees (V3.2); 0:
  /// there is none.
  int64_t indexHeads = 0;
  bool indexInterleaved = false;
  bool lists = false; ///< "mlp_layer_types" is read
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

/// The index of version 3.2. Scores of bytes and the Hadamard transform before
/// them, which changes no product, are a matter of DeepSeek's kernels.
static void readIndex(Config &config, LlamaConfig &llama,
                      const DeepSeekDefaults &defaults) {
  KeyIndex index;
  index.location = config.locate("index_topk");
  index.heads = config.integer("index_n_heads", defaults.indexHeads);
  index.interleaved = defaults.indexInterleaved;
  index.headDim = config.integer("index_head_dim", 128);
  index.top = config.integer("index_topk", 2048);
  index.norm.eps = 1e-6;
  index.norm.location = index.location;
  Latent &latent = *llama.block.attention->latent;
  int64_t turned = llama.block.attention->rope->channels;
  if (!latent.queryRank)
    config.error("q_lora_rank", "expected a number; the index is asked by "
                                "compressed queries");
  if (index.headDim < turned)
    config.error("index_head_dim",
                 "is less than qk_rope_head_dim, " + std::to_string(turned));
  latent.index = index;
  llama.tensors.insert(
      llama.tensors.end(),
      {{"attention.index.q", "self_attn.indexer.wq_b"},
       {"attention.index.k", "self_attn.indexer.wk"},
       {"attention.index.k_norm", "self_attn.indexer.k_norm"},
       {"attention.index.shares", "self_attn.indexer.weights_proj"}});
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
  readLatent(config, *llama, defaults.latent);
  const Value *kinds = nullptr;
  if (defaults.lists)
    kinds = readKinds(config, "mlp_layer_types", llama->layers,
                      {"dense", "sparse"});
  if (defaults.indexHeads) {
    readIndex(config, *llama, defaults);
    readKinds(config, "layer_types", llama->layers,
              {"deepseek_sparse_attention"});
  }
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
    if (kinds)
      return kinds->elements[size_t(layer)].text == "sparse";
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

/// What the third version and what follows it take for absent keys.
static DeepSeekDefaults thirdVersion() {
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
  return defaults;
}

std::optional<Model> importDeepSeekV3(ImportContext &context) {
  return importDeepSeek(context, thirdVersion(), readSigmoidRouter);
}

std::optional<Model> importDeepSeekV32(ImportContext &context) {
  DeepSeekDefaults defaults = thirdVersion();
  defaults.name = "deepseek_v32";
  defaults.llama.length = 163840;
  defaults.indexHeads = 64;
  defaults.lists = true;
  return importDeepSeek(context, defaults, readSigmoidRouter);
}

/// GLM-4.7-Flash: the third version in other sizes.
std::optional<Model> importGLM4MoELite(ImportContext &context) {
  DeepSeekDefaults defaults = thirdVersion();
  defaults.name = "glm4_moe_lite";
  defaults.lists = true;
  defaults.llama.width = 2048;
  defaults.llama.inner = 10240;
  defaults.llama.layers = 47;
  defaults.llama.heads = 20;
  defaults.llama.vocab = 154880;
  defaults.llama.length = 202752;
  defaults.llama.eps = 1e-5;
  defaults.llama.rope.partial = 1;
  defaults.latent = {/*rank=*/512, /*queryRank=*/768, /*nopeDim=*/192,
                     /*valueDim=*/256};
  defaults.dense = 1;
  defaults.experts.width = 1536;
  defaults.experts.count = 64;
  defaults.experts.active = 4;
  defaults.experts.groups = defaults.experts.activeGroups = 1;
  defaults.experts.scale = 1.8;
  defaults.experts.oneIsLeft = false;
  return importDeepSeek(context, defaults, readSigmoidRouter);
}

/// GLM-5: version 3.2 in other sizes, with an index that turns pairs of
/// neighbours. Layers that take the keys of the one before are refused.
std::optional<Model> importGLMMoEDSA(ImportContext &context) {
  Config &config = context.config;
  DeepSeekDefaults defaults = thirdVersion();
  defaults.name = "glm_moe_dsa";
  defaults.lists = true;
  defaults.llama.width = 6144;
  defaults.llama.inner = 12288;
  defaults.llama.layers = 78;
  defaults.llama.heads = 64;
  defaults.llama.vocab = 154880;
  defaults.llama.length = 202752;
  defaults.llama.eps = 1e-5;
  defaults.latent = {/*rank=*/512, /*queryRank=*/2048, /*nopeDim=*/192,
                     /*valueDim=*/256};
  defaults.experts.groups = defaults.experts.activeGroups = 1;
  defaults.experts.oneIsLeft = false;
  defaults.indexHeads = 32;
  defaults.indexInterleaved = true;
  const char *why = "layers that see the keys which an earlier one chose are "
                    "not supported";
  readKinds(config, "indexer_types",
            config.layers("num_hidden_layers", defaults.llama.layers),
            {"full"});
  if (config.get("index_topk_pattern"))
    config.error("index_topk_pattern", why);
  if (config.integer("index_topk_freq", 1) != 1)
    config.error("index_topk_freq", why);
  config.mustBeTrue("indexer_rope_interleave",
                    "its class turns pairs of neighbours");
  config.ignore({"index_skip_topk_offset"});
  return importDeepSeek(context, defaults, readSigmoidRouter);
}

/// The first version: experts beside LLaMA's attention.
std::optional<Model> importDeepSeek1(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.layers = 30;
  defaults.vocab = 102400;
  std::optional<LlamaConfig> llama = readLlama(context, "deepseek", defaults);
  bool bias = config.flag("attention_bias", false);
  int64_t dense = config.count("first_k_dense_replace", 0);
  int64_t every = config.integer("moe_layer_freq", 1);
  ignoreRouterKeys(config);
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.attention->qkvBias = llama->block.attention->outBias = bias;
  ExpertDefaults experts;
  experts.width = 1407;
  bool sparse = config.peek("n_routed_experts");
  MoE moe;
  if (sparse)
    moe = readRoutedExperts(config, experts, readSoftmaxRouter);
  if (config.hasErrors())
    return std::nullopt;
  moe.activation = llama->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_experts"))
    llama->tensors.push_back(row);
  return buildMixture(context, *llama, moe, [&](int64_t layer) {
    return sparse && layer >= dense && layer % every == 0;
  });
}

} // namespace attune::hf
