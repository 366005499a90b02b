//===- Olmo2.cpp - config.json of OLMo 2 ------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importOlmo2(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 50304;
  defaults.eps = 1e-5;
  std::optional<LlamaConfig> olmo = readLlama(context, "olmo2", defaults);
  bool bias = config.flag("attention_bias", false);
  if (!olmo || config.hasErrors())
    return std::nullopt;
  // Norms of the sublayers' results, within the residual connection; queries
  // and keys are normalised before they are cut into heads.
  olmo->block.placement = Placement::Branch;
  Attention &attention = *olmo->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = olmo->norm;
  attention.qkNormScope = NormScope::Projection;
  for (TensorName &row : olmo->tensors) {
    if (std::string(row.role) == "norm1")
      row.tensor = "post_attention_layernorm";
    if (std::string(row.role) == "norm2")
      row.tensor = "post_feedforward_layernorm";
  }
  return buildLlama(context, *olmo);
}

} // namespace attune::hf
