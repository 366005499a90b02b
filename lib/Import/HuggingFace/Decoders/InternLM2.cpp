//===- InternLM2.cpp - config.json of InternLM2 -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// LLaMA with one matrix for queries, keys and values, group by group.
std::optional<Model> importInternLM2(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 103168;
  std::optional<LlamaConfig> intern = readLlama(context, "internlm2", defaults);
  bool bias = config.flag("bias", true);
  if (!intern || config.hasErrors())
    return std::nullopt;
  intern->block.attention->qkvBias = intern->block.attention->outBias = bias;
  intern->table = "tok_embeddings";
  intern->head = "output";
  intern->tensors = {{"norm1", "attention_norm"},
                     {"attention.qkv", "attention.wqkv", Layout::Groups},
                     {"attention.o", "attention.wo"},
                     {"norm2", "ffn_norm"},
                     {"ffn.gate", "feed_forward.w1"},
                     {"ffn.up", "feed_forward.w3"},
                     {"ffn.down", "feed_forward.w2"}};
  return buildLlama(context, *intern);
}

/// InternLM 3: LLaMA with flags of its own for biases.
std::optional<Model> importInternLM3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.vocab = 128512;
  defaults.length = 32768;
  std::optional<LlamaConfig> llama = readLlama(context, "internlm3", defaults);
  bool bias = config.flag("bias", false);
  bool qkvBias = config.flag("qkv_bias", false);
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.attention->qkvBias = qkvBias;
  llama->block.attention->outBias = llama->block.ffn->bias = bias;
  return buildLlama(context, *llama);
}

} // namespace attune::hf
