//===- Olmo.cpp - config.json of OLMo, OLMo 2 and OLMo 3 --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

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
static std::optional<LlamaConfig> readBranches(ImportContext &context,
                                               const char *name) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 50304;
  defaults.eps = 1e-5;
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

} // namespace attune::hf
