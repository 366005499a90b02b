//===- Falcon.cpp - config.json of Falcon -----------------------*- C++ -*-===//
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

std::optional<Model> importFalcon(ImportContext &context) {
  Config &config = context.config;
  std::string_view widthKey = config.oneOf({"hidden_size", "n_embed"});
  int64_t width = config.integer(widthKey, 4544);
  int64_t layers =
      config.layers(config.oneOf({"num_hidden_layers", "n_layer"}), 32);
  std::string_view headsKey = config.oneOf({"num_attention_heads", "n_head"});
  int64_t heads = config.integer(headsKey, 71);
  std::string_view kvKey = config.oneOf({"num_kv_heads", "n_head_kv"});
  int64_t kvHeads = config.integer(kvKey, heads);
  int64_t vocab = config.integer("vocab_size", 65024);
  int64_t inner = config.integer("ffn_hidden_size", 4 * width);
  int64_t length = config.integer("max_position_embeddings", 2048);
  std::optional<Activation> activation =
      config.activation("activation", "gelu");
  bool alibi = config.flag("alibi", false);
  bool bias = config.flag("bias", false);
  bool grouped = config.flag("new_decoder_architecture", false);
  bool multiQuery = config.flag("multi_query", true);
  bool parallel = config.flag("parallel_attn", true);
  bool tied = config.flag("tie_word_embeddings", true);
  int64_t norms = config.integer("num_ln_in_parallel_attn", grouped ? 2 : 1, 2);
  Block body;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  body.norm.location = config.locate("layer_norm_epsilon");
  // Dropout acts in training only.
  // A key of BLOOM's that Falcon's first configurations kept and no code reads.
  config.ignore({"attention_dropout", "hidden_dropout",
                 "apply_residual_connection_post_layernorm"});
  if (!grouped)
    kvHeads = multiQuery ? 1 : heads;
  config.mustShare(headsKey, heads, widthKey, width);
  if (heads % kvHeads)
    config.error(kvKey, std::to_string(kvHeads) + " does not divide the " +
                            std::to_string(heads) + " query heads");
  if (grouped && !parallel)
    config.error("parallel_attn", "the new decoder architecture runs attention "
                                  "and FFN side by side");
  if (!grouped && norms == 2 && parallel)
    config.error("num_ln_in_parallel_attn",
                 "two norms belong to the new decoder architecture");
  RopeSettings rope;
  rope.context = length;
  if (alibi)
    config.ignore({"rope_theta", "rope_scaling", "rope_parameters"});
  else if (auto read =
               readRope(config, std::max<int64_t>(width / heads, 1), length))
    rope = *read;
  if (config.hasErrors())
    return std::nullopt;

  body.placement = parallel ? Placement::Parallel : Placement::Pre;
  Attention &attention = body.attention.emplace();
  attention.heads = heads;
  attention.kvHeads = kvHeads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = bias;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  attention.alibi = attention.alibiFalcon = alibi;
  if (!alibi)
    attention.rope = rope.rope;
  attention.location = config.locate(headsKey);
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.bias = bias;
  ffn.location = config.locate("ffn_hidden_size");

  // One norm serves both sublayers, or each has its own.
  bool two = parallel && norms == 2;
  TensorNames tensors = {
      {"norm1", two ? "ln_attn" : "input_layernorm"},
      {"norm2", two        ? "ln_mlp"
                : parallel ? "input_layernorm"
                           : "post_attention_layernorm"},
      {"attention.qkv", "self_attention.query_key_value", Layout::Groups},
      {"attention.o", "self_attention.dense"},
      {"ffn.up", "mlp.dense_h_to_4h"},
      {"ffn.down", "mlp.dense_4h_to_h"}};
  Model model;
  model.name = "falcon";
  model.context = rope.context;
  StreamBuilder stream(
      config, context.prefixFor("transformer.", "word_embeddings.weight"));
  stream.embedding("word_embeddings", vocab, width);
  stream.blocks("h.{i}", "num_hidden_layers", layers, body, tensors);
  stream.norm("ln_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "word_embeddings" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
