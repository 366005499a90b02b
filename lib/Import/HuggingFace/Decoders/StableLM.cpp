//===- StableLM.cpp - config.json of StableLM -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// Each head's gamma is a tensor of its own.
static std::vector<WeightSource> headGammas(const std::string &prefix,
                                            int64_t heads) {
  std::vector<WeightSource> gammas;
  for (int64_t head = 0; head < heads; ++head)
    gammas.push_back({prefix + std::to_string(head) + ".weight"});
  return gammas;
}

std::optional<Model> importStableLM(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2560;
  defaults.inner = 6912;
  defaults.kvHeads = 32;
  defaults.vocab = 50304;
  defaults.length = 4096;
  defaults.epsKey = "layer_norm_eps";
  defaults.eps = 1e-5;
  defaults.rope.partial = 0.25;
  std::optional<LlamaConfig> stable = readLlama(context, "stablelm", defaults);
  bool bias = config.flag("use_qkv_bias", false);
  bool headNorm = config.flag("qk_layernorm", false);
  bool parallel = config.flag("use_parallel_residual", false);
  config.ignore({"hidden_dropout"});
  if (!stable || config.hasErrors())
    return std::nullopt;
  stable->norm.kind = NormKind::LayerNorm;
  stable->norm.bias = true;
  Block &block = stable->block;
  block.norm = stable->norm;
  Attention &attention = *block.attention;
  attention.qkvBias = bias;
  if (headNorm) {
    attention.qkNorm = stable->norm;
    attention.qkNorm->bias = false;
    attention.qkNormScope = NormScope::Heads;
    stable->weights["attention.q_norm.weight"] =
        headGammas("self_attn.q_layernorm.norms.", attention.heads);
    stable->weights["attention.k_norm.weight"] =
        headGammas("self_attn.k_layernorm.norms.", attention.kvHeads);
  }
  if (parallel) {
    block.placement = Placement::Parallel;
    for (TensorName &row : stable->tensors)
      if (std::string(row.role) == "norm2")
        row.tensor = "input_layernorm";
  }
  return buildLlama(context, *stable);
}

} // namespace attune::hf
