//===- Granite.cpp - config.json of Granite ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importGranite(ImportContext &context) {
  Config &config = context.config;
  std::optional<LlamaConfig> llama = readLlama(context, "granite", {});
  bool bias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  double ofEmbedding = config.real("embedding_multiplier", 1);
  double ofScores = config.real("attention_multiplier", 1);
  double ofResiduals = config.real("residual_multiplier", 1);
  double ofLogits = config.real("logits_scaling", 1);
  config.ignore({"pretraining_tp"});
  if (!llama || config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.scale = ofScores; // in place of 1 / sqrt(head_dim)
  llama->block.ffn->bias = ffnBias;
  llama->block.residualScale = ofResiduals;
  llama->embeddingScale = ofEmbedding;
  llama->logitScale = 1 / ofLogits; // it divides
  return buildLlama(context, *llama);
}

} // namespace attune::hf
