//===- MiniCPM.cpp - config.json of MiniCPM ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

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

} // namespace attune::hf
