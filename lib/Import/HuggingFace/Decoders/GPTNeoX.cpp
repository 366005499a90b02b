//===- GPTNeoX.cpp - config.json of GPT-NeoX --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Architectures.h"
#include "../Rope.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

std::optional<Model> importGPTNeoX(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 6144);
  int64_t layers = config.layers("num_hidden_layers", 44);
  int64_t heads = config.integer("num_attention_heads", 64);
  int64_t vocab = config.integer("vocab_size", 50432);
  int64_t inner = config.integer("intermediate_size", 24576);
  int64_t length = config.integer("max_position_embeddings", 2048);
  std::optional<Activation> activation =
      config.activation("hidden_act", "gelu");
  bool parallel = config.flag("use_parallel_residual", true);
  bool bias = config.flag("attention_bias", true);
  bool tied = config.flag("tie_word_embeddings", false);
  Block body;
  body.norm.eps = config.real("layer_norm_eps", 1e-5);
  body.norm.location = config.locate("layer_norm_eps");
  // Dropout acts in training only.
  config.ignore({"attention_dropout", "hidden_dropout", "classifier_dropout"});
  config.mustShare("num_attention_heads", heads, "hidden_size", width);
  RopeDefaults defaults;
  defaults.thetaKey = "rotary_emb_base";
  defaults.partialKey = "rotary_pct";
  defaults.partial = 0.25;
  std::optional<RopeSettings> rope =
      readRope(config, std::max<int64_t>(width / heads, 1), length, defaults);
  if (config.hasErrors() || !rope)
    return std::nullopt;

  body.placement = parallel ? Placement::Parallel : Placement::Pre;
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = bias;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  attention.rope = rope->rope;
  attention.location = config.locate("num_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("intermediate_size");

  Model model;
  model.name = "gpt_neox";
  model.context = rope->context;
  StreamBuilder stream(config,
                       context.prefixFor("gpt_neox.", "embed_in.weight"));
  stream.embedding("embed_in", vocab, width);
  stream.blocks("layers.{i}", "num_hidden_layers", layers, body,
                {{"norm1", "input_layernorm"},
                 {"attention.qkv", "attention.query_key_value", Layout::Groups},
                 {"attention.o", "attention.dense"},
                 {"norm2", "post_attention_layernorm"},
                 {"ffn.up", "mlp.dense_h_to_4h"},
                 {"ffn.down", "mlp.dense_4h_to_h"}});
  stream.norm("final_layer_norm", body.norm);
  if (context.languageModel)
    stream.head("embed_out", vocab, tied ? "embed_in" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
