//===- Mistral.cpp - config.json of Mistral, Ministral 3 --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// Mistral, and Ministral, which says layer by layer what has a window.
static std::optional<Model> importSliding(ImportContext &context,
                                          const char *name) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.kvHeads = 8;
  defaults.length = 4096 * 32;
  std::optional<LlamaConfig> llama = readLlama(context, name, defaults);
  std::optional<int64_t> window = readWindow(config, 4096);
  if (!llama || config.hasErrors())
    return std::nullopt;
  slideLayers(config, *llama, window,
              std::vector<std::string>(llama->layers, "sliding_attention"),
              "Mistral");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *llama);
}

std::optional<Model> importMistral(ImportContext &context) {
  return importSliding(context, "mistral");
}

std::optional<Model> importMinistral(ImportContext &context) {
  return importSliding(context, "ministral");
}

/// Ministral 3: every layer sees everything, and queries grow with their place.
std::optional<Model> importMinistral3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.layers = 34;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 131072;
  defaults.length = 262144;
  defaults.eps = 1e-5;
  defaults.rope.theta = 1000000;
  defaults.rope.takesGrowth = true;
  RopeScaling &yarn = defaults.rope.scaling.emplace();
  yarn.type = "yarn";
  yarn.factor = 16;
  yarn.originalLength = 16384;
  yarn.attentionFactor = 1;
  std::optional<LlamaConfig> llama = readLlama(context, "ministral3", defaults);
  std::optional<int64_t> window = readWindow(config, std::nullopt);
  std::optional<QueryGrowth> growth = readGrowth(config, defaults.rope);
  config.ignore({"layer_types"});
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.attention->window = window;
  llama->block.attention->queryGrowth = growth;
  return buildLlama(context, *llama);
}

} // namespace attune::hf
