//===- OPT.cpp - config.json of OPT and BioGPT ------------------*- C++ -*-===//
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

std::optional<Model> importOPT(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 768);
  int64_t layers = config.layers("num_hidden_layers", 12);
  int64_t heads = config.integer("num_attention_heads", 12);
  int64_t inner = config.integer("ffn_dim", 3072);
  int64_t vocab = config.integer("vocab_size", 50272);
  int64_t length = config.integer("max_position_embeddings", 2048);
  int64_t embedded = config.integer("word_embed_proj_dim", width);
  std::optional<Activation> activation =
      config.activation("activation_function", "relu");
  bool before = config.flag("do_layer_norm_before", true);
  bool noLast = config.flag("_remove_final_layer_norm", false);
  bool bias = config.flag("enable_bias", true);
  bool affine = config.flag("layer_norm_elementwise_affine", true);
  bool tied = config.flag("tie_word_embeddings", true);
  // These act in training only.
  config.ignore({"attention_dropout", "dropout", "activation_dropout",
                 "layerdrop", "init_std"});
  config.mustShare("num_attention_heads", heads, "hidden_size", width);
  if (config.hasErrors())
    return std::nullopt;

  Block body;
  body.placement = before ? Placement::Pre : Placement::Post;
  body.norm.scale = body.norm.bias = affine;
  body.norm.location = config.locate("layer_norm_elementwise_affine");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = bias;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("num_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.bias = bias;
  ffn.location = config.locate("ffn_dim");

  Model model;
  model.name = "opt";
  model.context = length;
  std::string prefix =
      context.prefixFor("model.decoder.", "embed_tokens.weight");
  // The bare network's files start with its only part.
  if (prefix.empty() &&
      !(context.checkpoint && context.checkpoint->find("embed_tokens.weight")))
    prefix = "decoder.";
  StreamBuilder stream(config, prefix);
  stream.embedding("embed_tokens", vocab, embedded);
  auto project = [&](const char *name, int64_t out) {
    Linear linear;
    linear.out = out;
    stream.add(name, "word_embed_proj_dim", linear, out);
  };
  if (embedded != width)
    project("project_in", width);
  // The table has two rows before that of position 0.
  stream.learnedPositions("embed_positions", length + 2, /*offset=*/2,
                          "max_position_embeddings", /*skipPadding=*/true);
  stream.blocks("layers.{i}", "num_hidden_layers", layers, body,
                {{"norm1", "self_attn_layer_norm"},
                 {"attention.q", "self_attn.q_proj"},
                 {"attention.k", "self_attn.k_proj"},
                 {"attention.v", "self_attn.v_proj"},
                 {"attention.o", "self_attn.out_proj"},
                 {"norm2", "final_layer_norm"},
                 {"ffn.up", "fc1"},
                 {"ffn.down", "fc2"}});
  if (before && !noLast)
    stream.norm("final_layer_norm", body.norm);
  if (embedded != width)
    project("project_out", embedded);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embed_tokens" : "");
  model.streams.push_back(stream.take());
  return model;
}

/// OPT's blocks and positions; embeddings are scaled. Norms take no eps of the
/// configuration.
std::optional<Model> importBioGPT(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 1024);
  int64_t layers = config.layers("num_hidden_layers", 24);
  int64_t heads = config.integer("num_attention_heads", 16);
  int64_t inner = config.integer("intermediate_size", 4096);
  int64_t vocab = config.integer("vocab_size", 42384);
  int64_t length = config.integer("max_position_embeddings", 1024);
  std::optional<Activation> activation =
      config.activation("hidden_act", "gelu");
  bool scaled = config.flag("scale_embedding", true);
  bool tied = config.flag("tie_word_embeddings", true);
  // These act in training only, but for the eps.
  config.ignore({"activation_dropout", "attention_probs_dropout_prob",
                 "hidden_dropout_prob", "layer_norm_eps", "layerdrop"});
  config.mustShare("num_attention_heads", heads, "hidden_size", width);
  if (config.hasErrors())
    return std::nullopt;
  Block body;
  body.norm.location = config.locate("hidden_size");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("num_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("intermediate_size");

  Model model;
  model.name = "biogpt";
  model.context = length;
  StreamBuilder stream(config,
                       context.prefixFor("biogpt.", "embed_tokens.weight"));
  stream.embedding("embed_tokens", vocab, width,
                   scaled ? std::sqrt(double(width)) : 1);
  stream.learnedPositions("embed_positions", length + 2, /*offset=*/2,
                          "max_position_embeddings", /*skipPadding=*/true);
  stream.blocks("layers.{i}", "num_hidden_layers", layers, body,
                {{"norm1", "self_attn_layer_norm"},
                 {"attention.q", "self_attn.q_proj"},
                 {"attention.k", "self_attn.k_proj"},
                 {"attention.v", "self_attn.v_proj"},
                 {"attention.o", "self_attn.out_proj"},
                 {"norm2", "final_layer_norm"},
                 {"ffn.up", "fc1"},
                 {"ffn.down", "fc2"}});
  stream.norm("layer_norm", body.norm);
  if (context.languageModel)
    stream.head("output_projection", vocab, tied ? "embed_tokens" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
