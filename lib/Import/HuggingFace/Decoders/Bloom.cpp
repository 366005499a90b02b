//===- Bloom.cpp - config.json of BLOOM -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

std::optional<Model> importBloom(ImportContext &context) {
  Config &config = context.config;
  std::string_view widthKey = config.oneOf({"hidden_size", "n_embed"});
  int64_t width = config.integer(widthKey, 64);
  int64_t layers =
      config.layers(config.oneOf({"n_layer", "num_hidden_layers"}), 2);
  std::string_view headsKey = config.oneOf({"n_head", "num_attention_heads"});
  int64_t heads = config.integer(headsKey, 8);
  int64_t vocab = config.integer("vocab_size", 250880);
  int64_t inner = config.integer("n_inner", 4 * width);
  Block body;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  body.norm.location = config.locate("layer_norm_epsilon");
  body.residualOfNorm =
      config.flag("apply_residual_connection_post_layernorm", false);
  bool tied = config.flag("tie_word_embeddings", true);
  // Dropout acts in training; slices of matmuls (pretraining_tp,
  // slow_but_exact) add up to the same; ALiBi has no longest sequence; the rest
  // chooses among kernels of the training code.
  config.ignore({"attention_dropout", "hidden_dropout", "pretraining_tp",
                 "slow_but_exact", "seq_length", "unk_token_id",
                 "masked_softmax_fusion", "bias_dropout_fusion",
                 "attention_softmax_in_fp32", "offset_alibi", "skip_bias_add",
                 "skip_bias_add_qkv"});
  config.mustShare(headsKey, heads, widthKey, width);
  if (config.hasErrors())
    return std::nullopt;

  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  attention.alibi = true;
  attention.location = config.locate(headsKey);
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = Activation::GeluTanh;
  ffn.location = config.locate("hidden_size");

  Model model;
  model.name = "bloom";
  StreamBuilder stream(
      config, context.prefixFor("transformer.", "word_embeddings.weight"));
  stream.embedding("word_embeddings", vocab, width);
  stream.norm("word_embeddings_layernorm", body.norm);
  stream.blocks(
      "h.{i}", "n_layer", layers, body,
      {{"norm1", "input_layernorm"},
       {"attention.qkv", "self_attention.query_key_value", Layout::Groups},
       {"attention.o", "self_attention.dense"},
       {"norm2", "post_attention_layernorm"},
       {"ffn.up", "mlp.dense_h_to_4h"},
       {"ffn.down", "mlp.dense_4h_to_h"}});
  stream.norm("ln_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "word_embeddings" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
