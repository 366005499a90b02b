//===- OLMoE.cpp - config.json of OLMoE -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importOLMoE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 50304;
  defaults.width = 2048;
  defaults.inner = 2048;
  defaults.layers = 16;
  defaults.heads = 16;
  defaults.length = 4096;
  defaults.eps = 1e-5;
  std::optional<LlamaConfig> llama = readLlama(context, "olmoe", defaults);
  bool bias = config.flag("attention_bias", false);
  std::optional<double> clip = config.cap("clip_qkv", std::nullopt);
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 64);
  moe.active = config.integer("num_experts_per_tok", 8);
  moe.router.renormalise = config.flag("norm_topk_prob", false);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_experts",
               moe.experts);
  ignoreRouterKeys(config);
  if (!llama || config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = llama->norm;
  attention.qkNormScope = NormScope::Projection;
  attention.clip = clip;
  moe.width = llama->block.ffn->width;
  moe.activation = llama->block.ffn->activation;
  // OLMoE has no shared expert; the rows of one would match no weight.
  for (const TensorName &row : mixtureTensors("shared_expert"))
    llama->tensors.push_back(row);
  return buildMixture(context, *llama, moe, [](int64_t) { return true; });
}

} // namespace attune::hf
