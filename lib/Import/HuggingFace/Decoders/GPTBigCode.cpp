//===- GPTBigCode.cpp - config.json of GPT-BigCode --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPT2Family.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importGPTBigCode(ImportContext &context) {
  Config &config = context.config;
  bool scaled = config.flag("scale_attn_weights", true);
  bool multiQuery = config.flag("multi_query", true);
  config.mustBeFalse("add_cross_attention",
                     "cross-attention in GPT-BigCode is not supported");
  // Dropout acts in training only; the softmax is in f32 anyway; the rest
  // belongs to the inference code of its time.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop",
                 "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "n_ctx", "inference_runner", "validate_runner_input",
                 "pre_allocate_kv_cache", "max_sequence_length",
                 "max_batch_size", "pad_key_length"});
  GPT2Defaults defaults;
  defaults.activation = "gelu_pytorch_tanh";
  std::optional<GPT2Config> gpt = readGPT2(context, "gpt_bigcode", defaults);
  if (!gpt)
    return std::nullopt;
  Attention &attention = *gpt->block.attention;
  attention.kvHeads = multiQuery ? 1 : gpt->heads;
  // Version 5 of transformers writes what multi_query says once more.
  if (config.integer("num_key_value_heads", attention.kvHeads) !=
      attention.kvHeads)
    config.error("num_key_value_heads",
                 "expected " + std::to_string(attention.kvHeads) +
                     ", which is what multi_query stands for");
  if (config.hasErrors())
    return std::nullopt;
  if (!scaled)
    attention.scale = 1;
  gpt->skipPadding = true;
  // Names of GPT-2, but [out, in]. With one key/value head the groups of rows
  // are queries, key and value; else each head has its three side by side.
  gpt->tensors = {{"norm1", "ln_1"},
                  {"attention.qkv", "attn.c_attn", Layout::Groups},
                  {"attention.o", "attn.c_proj"},
                  {"norm2", "ln_2"},
                  {"ffn.up", "mlp.c_fc"},
                  {"ffn.down", "mlp.c_proj"}};
  return buildGPT2(context, *gpt);
}

} // namespace attune::hf
