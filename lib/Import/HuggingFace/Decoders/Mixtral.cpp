//===- Mixtral.cpp - config.json of Mixtral ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importMixtral(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.kvHeads = 8;
  defaults.length = 4096 * 32;
  defaults.eps = 1e-5;
  defaults.rope.theta = 1e6;
  std::optional<LlamaConfig> llama = readLlama(context, "mixtral", defaults);
  MoE moe = readLocalExperts(config, /*experts=*/8, /*active=*/2);
  ignoreRouterKeys(config);
  if (llama && config.get("sliding_window"))
    llama->block.attention->window =
        config.integer("sliding_window", std::nullopt);
  if (!llama || config.hasErrors())
    return std::nullopt;
  moe.width = llama->block.ffn->width;
  moe.activation = llama->block.ffn->activation;
  moe.router.renormalise = true;
  for (const TensorName &name : blockSparseTensors())
    llama->tensors.push_back(name);
  return buildMixture(context, *llama, moe, [](int64_t) { return true; });
}

} // namespace attune::hf
