//===- MiniCPM.cpp - config.json of MiniCPM 1 to 4 --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

#include <algorithm>
#include <cmath>

namespace attune::hf {

using namespace spec;

/// LLaMA with factors of embeddings, residuals and logits, by which small
/// models told the settings of large ones.
std::optional<Model> importMiniCPM(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.tied = true;
  std::optional<LlamaConfig> mini = readLlama(context, "minicpm", defaults);
  bool bias = config.flag("attention_bias", false);
  double ofEmbedding = config.real("scale_emb", 1);
  double depth = config.real("scale_depth", 1);
  int64_t base = config.integer("dim_model_base", 1);
  // The trained length has a meaning for readRope only if there is a scaling;
  // mup_denominator is of the small model that drafts.
  config.ignore({"original_max_position_embeddings", "mup_denominator"});
  if (config.get("sparse_config"))
    config.error("sparse_config",
                 "attention to chosen blocks (InfLLM v2) is not supported; "
                 "without this key the model attends to everything, as "
                 "--ignore-config-key=sparse_config makes it do");
  if (!mini || config.hasErrors())
    return std::nullopt;
  mini->block.attention->qkvBias = mini->block.attention->outBias = bias;
  mini->block.residualScale = depth / std::sqrt(double(mini->layers));
  mini->embeddingScale = ofEmbedding;
  mini->logitScale = double(base) / double(mini->width);
  return buildLlama(context, *mini);
}

/// MiniCPM 3: the same factors, and attention through compressed rows.
std::optional<Model> importMiniCPM3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2560;
  defaults.inner = 6400;
  defaults.layers = 62;
  defaults.heads = defaults.kvHeads.emplace(40);
  defaults.vocab = 73448;
  defaults.length = 32768;
  defaults.eps = 1e-5;
  defaults.tied = true;
  // The class turns so many channels of a head, whatever head_dim says.
  defaults.headDim = config.integer("qk_rope_head_dim", 32);
  if (config.peek("head_dim") &&
      config.integer("head_dim", std::nullopt) != *defaults.headDim)
    config.error("head_dim", "expected qk_rope_head_dim, " +
                                 std::to_string(*defaults.headDim));
  std::optional<LlamaConfig> mini = readLlama(context, "minicpm3", defaults);
  bool ffnBias = config.flag("mlp_bias", false);
  double ofEmbedding = config.real("scale_emb", 12);
  std::optional<double> depth = config.cap("scale_depth", 1.4);
  config.ignore({"original_max_position_embeddings", "pretraining_tp",
                 "qk_head_dim", "mup_denominator"});
  if (!mini || config.hasErrors())
    return std::nullopt;
  int64_t base = config.integer("dim_model_base",
                                config.isNull("dim_model_base") ? mini->width
                                                                : int64_t(256));
  LatentDefaults latent = {/*rank=*/256, /*queryRank=*/768, /*nopeDim=*/64,
                           /*valueDim=*/0, /*interleaved=*/false};
  latent.valueDim =
      std::max<int64_t>(mini->width / mini->block.attention->heads, 1);
  readLatent(config, *mini, latent);
  if (config.hasErrors())
    return std::nullopt;
  mini->block.ffn->bias = ffnBias;
  mini->block.residualScale =
      depth ? *depth / std::sqrt(double(mini->layers)) : 1;
  mini->embeddingScale = ofEmbedding;
  mini->logitScale = double(base) / double(mini->width);
  return buildLlama(context, *mini);
}

} // namespace attune::hf
