//===- HunYuan.cpp - config.json of Hunyuan (dense) -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importHunYuanDense(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 290943;
  defaults.eps = 1e-5;
  defaults.rope.takesAlpha = true;
  std::optional<LlamaConfig> hunyuan =
      readLlama(context, "hunyuan_v1_dense", defaults);
  bool bias = config.flag("attention_bias", false);
  config.ignore({"pretraining_tp"});
  if (!hunyuan || config.hasErrors())
    return std::nullopt;
  Attention &attention = *hunyuan->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = hunyuan->norm;
  attention.qkNormAfterRotary = true;
  for (TensorName &row : hunyuan->tensors) {
    if (std::string_view(row.role) == "attention.q_norm")
      row.tensor = "self_attn.query_layernorm";
    if (std::string_view(row.role) == "attention.k_norm")
      row.tensor = "self_attn.key_layernorm";
  }
  return buildLlama(context, *hunyuan);
}

} // namespace attune::hf
