//===- Nemotron.cpp - config.json of Nemotron and Arcee ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// What the two share: a feed-forward layer without a gate, of squared relu.
static std::optional<LlamaConfig> readUngated(ImportContext &context,
                                              const char *name,
                                              const LlamaDefaults &defaults) {
  Config &config = context.config;
  std::optional<LlamaConfig> llama = readLlama(context, name, defaults);
  bool attentionBias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  config.ignore({"pretraining_tp"});
  if (!llama || config.hasErrors())
    return std::nullopt;
  Block &block = llama->block;
  block.attention->qkvBias = block.attention->outBias = attentionBias;
  block.ffn->gated = false;
  block.ffn->bias = ffnBias;
  return llama;
}

std::optional<Model> importArcee(ImportContext &context) {
  LlamaDefaults defaults;
  defaults.width = 2560;
  defaults.inner = 18432;
  defaults.length = 4096;
  defaults.eps = 1e-5;
  defaults.activation = "relu2";
  std::optional<LlamaConfig> llama = readUngated(context, "arcee", defaults);
  if (!llama)
    return std::nullopt;
  return buildLlama(context, *llama);
}

/// Minitron and Nemotron-4: layer norms of 1 + gamma, half of a head turns.
std::optional<Model> importNemotron(ImportContext &context) {
  LlamaDefaults defaults;
  defaults.width = 6144;
  defaults.inner = 24576;
  defaults.heads = 48;
  defaults.vocab = 256000;
  defaults.length = 4096;
  defaults.epsKey = "norm_eps";
  defaults.eps = 1e-5;
  defaults.activation = "relu2";
  defaults.rope.partial = 0.5;
  std::optional<LlamaConfig> llama = readUngated(context, "nemotron", defaults);
  if (!llama)
    return std::nullopt;
  llama->norm.kind = NormKind::LayerNorm;
  llama->norm.bias = true;
  llama->norm.offset = 1;
  llama->block.norm = llama->norm;
  return buildLlama(context, *llama);
}

} // namespace attune::hf
