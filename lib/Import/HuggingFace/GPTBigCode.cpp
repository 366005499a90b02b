//===- GPTBigCode.cpp - config.json of GPT-BigCode --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

std::optional<Model> importGPTBigCode(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("n_embd", 768);
  int64_t heads = config.integer("n_head", 12);
  int64_t layers = config.layers("n_layer", 12);
  int64_t vocab = config.integer("vocab_size", 50257);
  int64_t length = config.integer("n_positions", 1024);
  int64_t inner = config.integer("n_inner", 4 * width);
  bool scaled = config.flag("scale_attn_weights", true);
  bool multiQuery = config.flag("multi_query", true);
  bool tied = config.flag("tie_word_embeddings", true);
  std::optional<Activation> activation =
      config.activation("activation_function", "gelu_pytorch_tanh");
  Block body;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  body.norm.location = config.locate("layer_norm_epsilon");
  config.mustBeFalse("add_cross_attention",
                     "cross-attention in GPT-BigCode is not supported");
  // Dropout acts in training only; the softmax is in f32 anyway; the rest
  // belongs to other heads and to the inference code of its time.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop",
                 "attention_softmax_in_fp32", "scale_attention_softmax_in_fp32",
                 "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj",
                 "n_ctx", "inference_runner", "validate_runner_input",
                 "pre_allocate_kv_cache", "max_sequence_length",
                 "max_batch_size", "pad_key_length"});
  config.mustShare("n_head", heads, "n_embd", width);
  // Version 5 of transformers writes what multi_query says once more.
  int64_t kvHeads = multiQuery ? 1 : heads;
  if (config.integer("num_key_value_heads", kvHeads) != kvHeads)
    config.error("num_key_value_heads",
                 "expected " + std::to_string(kvHeads) +
                     ", which is what multi_query stands for");
  if (config.hasErrors())
    return std::nullopt;

  Attention &attention = body.attention.emplace();
  attention.heads = heads;
  attention.kvHeads = kvHeads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = scaled ? 1 / std::sqrt(double(width / heads)) : 1;
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("n_head");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("activation_function");

  Model model;
  model.name = "gpt_bigcode";
  model.context = length;
  StreamBuilder stream(config, context.prefixFor("transformer.", "wte.weight"));
  stream.embedding("wte", vocab, width);
  stream.learnedPositions("wpe", length, /*offset=*/0, "n_positions",
                          /*skipPadding=*/true);
  // Names of GPT-2, but [out, in]. With one key/value head the groups of rows
  // are queries, key and value; else each head has its three side by side.
  stream.blocks("h.{i}", "n_layer", layers, body,
                {{"norm1", "ln_1"},
                 {"attention.qkv", "attn.c_attn", Layout::Groups},
                 {"attention.o", "attn.c_proj"},
                 {"norm2", "ln_2"},
                 {"ffn.up", "mlp.c_fc"},
                 {"ffn.down", "mlp.c_proj"}});
  stream.norm("ln_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "wte" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
