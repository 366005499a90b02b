//===- GLM.cpp - GLM, GLM-4, GLM-4.5 and Solar Open -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <algorithm>

namespace attune::hf {

using namespace spec;

/// Neighbouring channels of the first half of each head turn; queries, keys and
/// values have biases; one matrix for gate and up.
static std::optional<LlamaConfig> readGLM(ImportContext &context,
                                          const char *name) {
  LlamaDefaults defaults;
  defaults.inner = 13696;
  defaults.layers = 40;
  defaults.kvHeads = 2;
  defaults.headDim = 128;
  defaults.vocab = 151552;
  defaults.length = 131072;
  defaults.eps = 1.5625e-7;
  defaults.rope.partial = 0.5;
  std::optional<LlamaConfig> glm = readLlama(context, name, defaults);
  bool bias = context.config.flag("attention_bias", true);
  if (!glm || context.config.hasErrors())
    return std::nullopt;
  Attention &attention = *glm->block.attention;
  attention.qkvBias = bias;
  attention.rope->interleaved = true;
  TensorNames &names = glm->tensors;
  names.erase(std::remove_if(names.begin(), names.end(),
                             [](const TensorName &row) {
                               std::string_view role = row.role;
                               return role == "ffn.gate" || role == "ffn.up";
                             }),
              names.end());
  names.push_back({"ffn.gate_up", "mlp.gate_up_proj", Layout::Blocks});
  return glm;
}

std::optional<Model> importGLM(ImportContext &context) {
  std::optional<LlamaConfig> glm = readGLM(context, "glm");
  if (!glm)
    return std::nullopt;
  return buildLlama(context, *glm);
}

std::optional<Model> importGLM4(ImportContext &context) {
  std::optional<LlamaConfig> glm = readGLM(context, "glm4");
  if (!glm)
    return std::nullopt;
  glm->block.placement = Placement::Peri;
  glm->tensors.push_back({"norm1_post", "post_self_attn_layernorm"});
  glm->tensors.push_back({"norm2_post", "post_mlp_layernorm"});
  return buildLlama(context, *glm);
}

std::optional<Model> importGLM4MoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 10944;
  defaults.layers = 46;
  defaults.heads = 96;
  defaults.kvHeads = 8;
  defaults.vocab = 151552;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.rope.partial = 0.5;
  std::optional<LlamaConfig> glm = readLlama(context, "glm4_moe", defaults);
  bool bias = config.flag("attention_bias", false);
  bool headNorm = config.flag("use_qk_norm", false);
  int64_t dense = config.count("first_k_dense_replace", 1);
  ignoreRouterKeys(config);
  // Layers that predict further tokens are no part of the network.
  config.ignore({"num_nextn_predict_layers"});
  ExpertDefaults experts;
  experts.width = 1408;
  experts.count = 128;
  experts.active = 8;
  experts.shared = 1;
  experts.renormalise = true;
  experts.oneIsLeft = false;
  if (!glm || config.hasErrors())
    return std::nullopt;
  MoE moe = readRoutedExperts(config, experts, readSigmoidRouter);
  if (config.hasErrors())
    return std::nullopt;
  Attention &attention = *glm->block.attention;
  attention.qkvBias = bias;
  if (headNorm)
    attention.qkNorm = glm->norm;
  moe.activation = glm->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_experts"))
    glm->tensors.push_back(row);
  return buildMixture(context, *glm, moe,
                      [&](int64_t layer) { return layer >= dense; });
}

/// Solar Open: experts in every layer, LLaMA's attention.
std::optional<Model> importSolarOpen(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.layers = 48;
  defaults.heads = 64;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 196608;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.rope.theta = 1000000;
  defaults.rope.partial = 1;
  std::optional<LlamaConfig> solar = readLlama(context, "solar_open", defaults);
  bool bias = config.flag("attention_bias", false);
  ignoreRouterKeys(config);
  config.ignore({"num_nextn_predict_layers"});
  config.mustBeFalse("use_qk_norm", "its class norms no queries and keys");
  if (config.count("first_k_dense_replace", 0))
    config.error("first_k_dense_replace",
                 "expected 0, for its class has experts in every layer");
  ExpertDefaults experts;
  experts.width = 1280;
  experts.count = 128;
  experts.active = 8;
  experts.shared = 1;
  experts.renormalise = true;
  experts.oneIsLeft = false;
  if (!solar || config.hasErrors())
    return std::nullopt;
  MoE moe = readRoutedExperts(config, experts, readSigmoidRouter);
  if (config.hasErrors())
    return std::nullopt;
  solar->block.attention->qkvBias = bias;
  moe.activation = solar->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_experts"))
    solar->tensors.push_back(row);
  return buildMixture(context, *solar, moe, [](int64_t) { return true; });
}

/// dots.llm1: Qwen 3's attention, DeepSeek-V3's experts.
std::optional<Model> importDots1(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 4608;
  defaults.inner = 10944;
  defaults.layers = 62;
  defaults.vocab = 152064;
  std::optional<LlamaConfig> dots = readLlama(context, "dots1", defaults);
  bool bias = config.flag("attention_bias", false);
  int64_t dense = config.count("first_k_dense_replace", 0);
  std::optional<int64_t> window = readWindow(config, 4096);
  int64_t whole = config.count("max_window_layers", 62);
  ignoreRouterKeys(config);
  // Its class reads neither; the second one names the first in files.
  config.ignore({"topk_method", "scoring_func", "moe_layer_freq",
                 "num_nextn_predict_layers", "use_sliding_window"});
  if (!dots || config.hasErrors())
    return std::nullopt;
  ExpertDefaults experts;
  experts.oneIsLeft = false;
  MoE moe = readRoutedExperts(config, experts, [](Config &, Router &router) {
    router.scores = RouterScores::Sigmoid;
    router.selectBias = true;
    if (router.groups > 1)
      router.groupScore = GroupScore::TopTwo;
  });
  Attention &attention = *dots->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = dots->norm;
  std::vector<std::string> types;
  for (int64_t i = 0; i < dots->layers; ++i)
    types.push_back(i >= whole ? "sliding_attention" : "full_attention");
  slideLayers(config, *dots, window, std::move(types), "dots.llm1");
  if (config.hasErrors())
    return std::nullopt;
  moe.activation = dots->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_experts"))
    dots->tensors.push_back(row);
  return buildMixture(context, *dots, moe,
                      [&](int64_t layer) { return layer >= dense; });
}

} // namespace attune::hf
