//===- Granite.cpp - config.json of Granite ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// What dense models and mixtures share: factors of embeddings, scores,
/// residuals and logits.
static std::optional<LlamaConfig> readGranite(ImportContext &context,
                                              const char *name) {
  Config &config = context.config;
  std::optional<LlamaConfig> llama = readLlama(context, name, {});
  bool bias = config.flag("attention_bias", false);
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
  llama->block.residualScale = ofResiduals;
  llama->embeddingScale = ofEmbedding;
  llama->logitScale = 1 / ofLogits; // it divides
  return llama;
}

std::optional<Model> importGranite(ImportContext &context) {
  Config &config = context.config;
  bool ffnBias = config.flag("mlp_bias", false);
  std::optional<LlamaConfig> llama = readGranite(context, "granite");
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.ffn->bias = ffnBias;
  return buildLlama(context, *llama);
}

/// Every layer has experts, of which files have two stacks; Checkpoint takes
/// them apart. The softmax is over the chosen ones.
std::optional<Model> importGraniteMoE(ImportContext &context) {
  Config &config = context.config;
  std::optional<LlamaConfig> llama = readGranite(context, "granitemoe");
  MoE moe;
  moe.location = config.locate("num_local_experts");
  moe.experts = config.integer("num_local_experts", 8);
  moe.active = config.integer("num_experts_per_tok", 2);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_local_experts",
               moe.experts);
  ignoreRouterKeys(config);
  if (!llama || config.hasErrors())
    return std::nullopt;
  moe.width = llama->block.ffn->width;
  moe.activation = llama->block.ffn->activation;
  moe.router.softmaxAfter = true;
  llama->block.ffn.reset();
  llama->block.moe = moe;
  for (const TensorName &row : TensorNames{
           {"moe.router", "block_sparse_moe.router.layer"},
           {"moe.experts.{e}.gate_up", "block_sparse_moe.input_linear.{e}",
            Layout::Blocks},
           {"moe.experts.{e}.down", "block_sparse_moe.output_linear.{e}"}})
    llama->tensors.push_back(row);
  return buildLlama(context, *llama);
}

} // namespace attune::hf
