//===- Olmo.cpp - config.json of OLMo 1 to 3 and FlexOlmo -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importOlmo(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 50304;
  std::optional<LlamaConfig> olmo = readLlama(context, "olmo", defaults);
  bool bias = config.flag("attention_bias", false);
  std::optional<double> clip = config.cap("clip_qkv", std::nullopt);
  if (!olmo || config.hasErrors())
    return std::nullopt;
  // Layer norms of no parameters; their eps is in no configuration.
  olmo->norm.kind = NormKind::LayerNorm;
  olmo->norm.scale = false;
  olmo->norm.eps = 1e-5;
  olmo->block.norm = olmo->norm;
  Attention &attention = *olmo->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.clip = clip;
  return buildLlama(context, *olmo);
}

/// Shared by versions 2 and 3: norms of the sublayers' results, within the
/// residual connection; queries and keys are normalised before they are cut
/// into heads.
static LlamaDefaults ofBranches() {
  LlamaDefaults defaults;
  defaults.vocab = 50304;
  defaults.eps = 1e-5;
  return defaults;
}

static std::optional<LlamaConfig>
readBranches(ImportContext &context, const char *name,
             const LlamaDefaults &defaults = ofBranches()) {
  Config &config = context.config;
  std::optional<LlamaConfig> olmo = readLlama(context, name, defaults);
  bool bias = config.flag("attention_bias", false);
  if (!olmo || config.hasErrors())
    return std::nullopt;
  olmo->block.placement = Placement::Branch;
  Attention &attention = *olmo->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = olmo->norm;
  attention.qkNormScope = NormScope::Projection;
  for (TensorName &row : olmo->tensors) {
    if (std::string(row.role) == "norm1")
      row.tensor = "post_attention_layernorm";
    if (std::string(row.role) == "norm2")
      row.tensor = "post_feedforward_layernorm";
  }
  return olmo;
}

std::optional<Model> importOlmo2(ImportContext &context) {
  std::optional<LlamaConfig> olmo = readBranches(context, "olmo2");
  if (!olmo)
    return std::nullopt;
  return buildLlama(context, *olmo);
}

std::optional<Model> importOlmo3(ImportContext &context) {
  Config &config = context.config;
  std::optional<int64_t> window = readWindow(config, 4096);
  std::optional<LlamaConfig> olmo = readBranches(context, "olmo3");
  if (!olmo)
    return std::nullopt;
  std::vector<std::string> types;
  for (int64_t i = 0; i < olmo->layers; ++i)
    types.push_back((i + 1) % 4 ? "sliding_attention" : "full_attention");
  slideLayers(config, *olmo, window, std::move(types), "OLMo 3");
  if (config.hasErrors())
    return std::nullopt;
  // The scaling that reaches beyond the trained length is for the layers that
  // see that far.
  for (Block &kind : olmo->kinds)
    if (kind.attention->window)
      kind.attention->rope->scaling = {};
  return buildLlama(context, *olmo);
}

/// FlexOlmo: OLMo 2 with OLMoE's experts in every layer.
std::optional<Model> importFlexOlmo(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 100352;
  defaults.length = 4096;
  defaults.rope.theta = 500000;
  std::optional<LlamaConfig> olmo =
      readBranches(context, "flex_olmo", defaults);
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 7);
  moe.active = config.integer("num_experts_per_tok", 5);
  moe.router.renormalise = config.flag("norm_topk_prob", false);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  ignoreRouterKeys(config);
  if (!olmo || config.hasErrors())
    return std::nullopt;
  moe.width = olmo->block.ffn->width;
  moe.activation = olmo->block.ffn->activation;
  for (const TensorName &row : mixtureTensors("shared_expert"))
    olmo->tensors.push_back(row);
  return buildMixture(context, *olmo, moe, [](int64_t) { return true; });
}

} // namespace attune::hf
