//===- EXAONE.cpp - config.json of EXAONE 4 ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importEXAONE4(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 16384;
  defaults.vocab = 102400;
  defaults.eps = 1e-5;
  std::optional<int64_t> window = readWindow(config, 4096);
  std::optional<LlamaConfig> exaone = readLlama(context, "exaone4", defaults);
  // "LLLG" says the same in letters. What counts is layer_types, which such
  // files have.
  const Value *pattern = config.peek("sliding_window_pattern");
  int64_t every = 4;
  if (!window || config.peek("layer_types"))
    config.ignore({"sliding_window_pattern"});
  else if (pattern && pattern->isString())
    config.error("sliding_window_pattern",
                 "in letters says nothing without layer_types; expected a "
                 "number");
  else
    every = config.integer("sliding_window_pattern", 4);
  if (!exaone || config.hasErrors())
    return std::nullopt;
  // Norms of the sublayers' results, within the residual connection.
  exaone->block.placement = Placement::Branch;
  exaone->block.attention->qkNorm = exaone->norm;
  for (TensorName &row : exaone->tensors) {
    if (std::string_view(row.role) == "norm1")
      row.tensor = "post_attention_layernorm";
    if (std::string_view(row.role) == "norm2")
      row.tensor = "post_feedforward_layernorm";
  }
  std::vector<std::string> types;
  for (int64_t i = 0; i < exaone->layers; ++i)
    types.push_back((i + 1) % every ? "sliding_attention" : "full_attention");
  slideLayers(config, *exaone, window, std::move(types), "EXAONE 4");
  if (config.hasErrors())
    return std::nullopt;
  // Beside layers with a window, those that see everything have no positions.
  for (Block &kind : exaone->kinds)
    if (window && !kind.attention->window)
      kind.attention->rope.reset();
  return buildLlama(context, *exaone);
}

} // namespace attune::hf
