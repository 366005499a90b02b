//===- GPT2.cpp - config.json of GPT-2 --------------------------*- C++ -*-===//
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

std::optional<Model> importGPT2(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("n_embd", 768);
  int64_t heads = config.integer("n_head", 12);
  int64_t layers = config.layers("n_layer", 12);
  int64_t vocab = config.integer("vocab_size", 50257);
  int64_t length = config.integer("n_positions", 1024);
  int64_t inner = config.integer("n_inner", 4 * width);
  double eps = config.real("layer_norm_epsilon", 1e-5);
  bool scaled = config.flag("scale_attn_weights", true);
  bool tied = config.flag("tie_word_embeddings", true);
  std::optional<Activation> activation =
      config.activation("activation_function", "gelu_new");
  config.mustBeFalse("add_cross_attention",
                     "cross-attention in GPT-2 is not supported");
  // Dropout acts in training only; the summary keys belong to the head of
  // GPT2DoubleHeadsModel; n_ctx repeats n_positions; upcasting attention to f32
  // is what Attune does anyway.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop",
                 "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj",
                 "n_ctx", "reorder_and_upcast_attn"});
  config.mustShare("n_head", heads, "n_embd", width);
  if (config.hasErrors())
    return std::nullopt;

  Model model;
  model.name = "gpt2";
  model.context = length;
  StreamBuilder stream(config, context.prefixFor("transformer.", "wte.weight"));
  stream.embedding("wte", vocab, width);
  stream.learnedPositions("wpe", length, /*offset=*/0, "n_positions");

  Block body;
  body.norm.eps = eps;
  body.norm.location = config.locate("layer_norm_epsilon");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = scaled ? 1 / std::sqrt(double(width / heads)) : 1;
  attention.scaleByLayer =
      config.flag("scale_attn_by_inverse_layer_idx", false);
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("n_head");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("activation_function");
  stream.blocks("h.{i}", "n_layer", layers, body,
                {{"norm1", "ln_1"},
                 {"attention.qkv", "attn.c_attn", Layout::TransposedBlocks},
                 {"attention.o", "attn.c_proj", Layout::Transposed},
                 {"norm2", "ln_2"},
                 {"ffn.up", "mlp.c_fc", Layout::Transposed},
                 {"ffn.down", "mlp.c_proj", Layout::Transposed}});
  stream.norm("ln_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "wte" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
