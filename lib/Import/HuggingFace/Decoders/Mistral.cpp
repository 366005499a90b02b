//===- Mistral.cpp - config.json of Mistral ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importMistral(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.kvHeads = 8;
  defaults.length = 4096 * 32;
  std::optional<LlamaConfig> llama = readLlama(context, "mistral", defaults);
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

} // namespace attune::hf
