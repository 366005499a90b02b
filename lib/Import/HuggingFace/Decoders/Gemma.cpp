//===- Gemma.cpp - config.json of Gemma 1 to 3 ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// Shared by all three: (1 + gamma) norms, embeddings times sqrt(width), a
/// gated GELU. The factor is rounded to the type that the model runs in.
static std::optional<LlamaConfig>
readGemma(ImportContext &context, const char *name, LlamaDefaults defaults) {
  Config &config = context.config;
  defaults.tied = true;
  // The first files say "gelu" in hidden_act, which meant the tanh form; what
  // counts is hidden_activation.
  defaults.activationKey = "hidden_activation";
  defaults.activation = "gelu_pytorch_tanh";
  config.ignore({"hidden_act"});
  if (std::string_view(name) != "gemma3_text")
    config.mustBeFalse("use_bidirectional_attention",
                       "attention to later tokens is not supported");
  std::optional<LlamaConfig> gemma = readLlama(context, name, defaults);
  bool bias = config.flag("attention_bias", false);
  if (!gemma)
    return std::nullopt;
  gemma->norm.offset = 1;
  gemma->block.norm = gemma->norm;
  gemma->block.attention->qkvBias = gemma->block.attention->outBias = bias;
  gemma->embeddingScale =
      roundTo(context.dtype, std::sqrt(double(gemma->width)));
  return gemma;
}

std::optional<Model> importGemma(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 3072;
  defaults.inner = 24576;
  defaults.layers = 28;
  defaults.heads = 16;
  defaults.kvHeads = 16;
  defaults.headDim = 256;
  defaults.vocab = 256000;
  defaults.length = 8192;
  std::optional<LlamaConfig> gemma = readGemma(context, "gemma", defaults);
  if (!gemma || config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *gemma);
}

/// Norms before and after each sublayer, scores scaled by a width of their own.
static void makePeri(LlamaConfig &gemma, double scalar) {
  gemma.block.placement = Placement::Peri;
  gemma.block.attention->scale = 1 / std::sqrt(scalar);
  gemma.tensors.insert(gemma.tensors.begin(),
                       {{"norm1_post", "post_attention_layernorm"},
                        {"norm2_post", "post_feedforward_layernorm"}});
  for (TensorName &row : gemma.tensors)
    if (std::string(row.role) == "norm2")
      row.tensor = "pre_feedforward_layernorm";
}

/// Gemma 2, or VaultGemma, which lacks the norms of what sublayers give.
static std::optional<Model> importCapped(ImportContext &context,
                                         const char *name, bool peri) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2304;
  defaults.inner = 9216;
  defaults.layers = 26;
  defaults.heads = 8;
  defaults.kvHeads = 4;
  defaults.headDim = 256;
  defaults.vocab = 256000;
  defaults.length = 8192;
  std::optional<LlamaConfig> gemma = readGemma(context, name, defaults);
  config.ignore({"cache_implementation"});
  double scalar = config.real("query_pre_attn_scalar", 256);
  std::optional<int64_t> window = readWindow(config, 4096);
  std::optional<double> scoreCap = config.cap("attn_logit_softcapping", 50);
  std::optional<double> logitCap = config.cap("final_logit_softcapping", 30);
  if (!gemma || config.hasErrors())
    return std::nullopt;
  makePeri(*gemma, scalar);
  if (!peri)
    gemma->block.placement = Placement::Pre;
  gemma->block.attention->softcap = scoreCap;
  gemma->logitCap = logitCap;
  std::vector<std::string> types;
  for (int64_t i = 0; i < gemma->layers; ++i)
    types.push_back(i % 2 ? "full_attention" : "sliding_attention");
  slideLayers(config, *gemma, window, std::move(types), "Gemma 2");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *gemma);
}

std::optional<Model> importGemma2(ImportContext &context) {
  return importCapped(context, "gemma2", /*peri=*/true);
}

std::optional<Model> importVaultGemma(ImportContext &context) {
  return importCapped(context, "vaultgemma", /*peri=*/false);
}

std::optional<Model> importGemma3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2304;
  defaults.inner = 9216;
  defaults.layers = 26;
  defaults.heads = 8;
  defaults.kvHeads = 4;
  defaults.headDim = 256;
  defaults.vocab = 262208;
  defaults.length = 131072;
  defaults.rope.theta = 1000000;
  defaults.rope.kind = "full_attention";
  // Layers with a window have a rotary embedding of their own, which no scaling
  // touches.
  double localTheta = config.real("rope_local_base_freq", 10000);
  std::optional<LlamaConfig> gemma =
      readGemma(context, "gemma3_text", defaults);
  config.ignore({"cache_implementation"});
  double scalar = config.real("query_pre_attn_scalar", 256);
  std::optional<int64_t> window = readWindow(config, 4096);
  int64_t pattern =
      config.oneOf({"sliding_window_pattern", "_sliding_window_pattern"}) ==
              "sliding_window_pattern"
          ? config.integer("sliding_window_pattern", 6)
          : config.integer("_sliding_window_pattern", 6);
  // A bidirectional window is the whole span around a query.
  bool bothSides = config.flag("use_bidirectional_attention", false);
  if (bothSides && window)
    window = *window / 2 + 1;
  if (bothSides && context.languageModel)
    config.error("use_bidirectional_attention",
                 "what sees the tokens behind it cannot predict them; expected "
                 "false for " +
                     std::string(context.modelClass->name));
  // The class has the key and passes it to nothing.
  if (config.cap("attn_logit_softcapping", std::nullopt))
    config.error("attn_logit_softcapping",
                 "the class of Gemma 3 caps no scores, whatever is said here; "
                 "expected null, or "
                 "--ignore-config-key=attn_logit_softcapping");
  std::optional<double> logitCap =
      config.cap("final_logit_softcapping", std::nullopt);
  if (!gemma || config.hasErrors())
    return std::nullopt;
  makePeri(*gemma, scalar);
  Attention &attention = *gemma->block.attention;
  if (bothSides)
    attention.causal = Causal::None;
  attention.qkNorm = gemma->norm;
  gemma->logitCap = logitCap;
  std::vector<std::string> types;
  for (int64_t i = 0; i < gemma->layers; ++i)
    types.push_back((i + 1) % pattern ? "sliding_attention" : "full_attention");
  RopeDefaults local;
  local.kind = "sliding_attention";
  local.theta = localTheta;
  std::optional<RopeSettings> localRope =
      readLocalRope(config, attention.headDim, local);
  slideLayers(config, *gemma, window, std::move(types), "Gemma 3");
  if (config.hasErrors() || !localRope)
    return std::nullopt;
  for (Block &kind : gemma->kinds)
    if (kind.attention->window)
      kind.attention->rope = localRope->rope;
  return buildLlama(context, *gemma);
}

} // namespace attune::hf
