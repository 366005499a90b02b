//===- Starcoder2.cpp - config.json of StarCoder 2 --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importStarcoder2(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 3072;
  defaults.inner = 12288;
  defaults.layers = 30;
  defaults.heads = 24;
  defaults.kvHeads = 2;
  defaults.vocab = 49152;
  defaults.length = 4096;
  defaults.epsKey = "norm_epsilon";
  defaults.eps = 1e-5;
  defaults.activation = "gelu_pytorch_tanh";
  defaults.tied = true;
  std::optional<LlamaConfig> coder = readLlama(context, "starcoder2", defaults);
  std::optional<int64_t> window = readWindow(config, std::nullopt);
  bool bias = config.flag("use_bias", true);
  // The first configurations had what the class never read; the activation is
  // that of hidden_act.
  config.ignore({"embedding_dropout", "residual_dropout", "activation_function",
                 "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "scale_attn_weights", "layer_norm_epsilon", "mlp_type",
                 "norm_type"});
  if (!coder || config.hasErrors())
    return std::nullopt;
  coder->norm.kind = NormKind::LayerNorm;
  coder->norm.bias = true;
  Block &block = coder->block;
  block.norm = coder->norm;
  block.attention->qkvBias = block.attention->outBias = bias;
  block.ffn->gated = false;
  block.ffn->bias = bias;
  for (TensorName &row : coder->tensors) {
    if (std::string(row.role) == "ffn.up")
      row.tensor = "mlp.c_fc";
    if (std::string(row.role) == "ffn.down")
      row.tensor = "mlp.c_proj";
  }
  slideLayers(config, *coder, window,
              std::vector<std::string>(coder->layers, "sliding_attention"),
              "StarCoder 2");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *coder);
}

} // namespace attune::hf
