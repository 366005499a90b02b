//===- OpenAIGPT.cpp - config.json of the first GPT -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Radford et al. 2018: a decoder whose norms follow each residual sum, so that
// none stands at the end.

#include "attune/Import/HuggingFace/Architecture.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

using namespace attune;
using namespace attune::spec;
using hf::Layout;

std::optional<Model> importOpenAIGPT(hf::ImportContext &context) {
  hf::Config &config = context.config;
  int64_t width = config.integer("n_embd", 768);
  int64_t heads = config.integer("n_head", 12);
  int64_t layers = config.layers("n_layer", 12);
  int64_t vocab = config.integer("vocab_size", 40478);
  int64_t length = config.integer("n_positions", 512);
  bool tied = config.flag("tie_word_embeddings", true);
  // Their "gelu" is the one that OpenAI used, by tanh.
  std::string name = config.text("afn", "gelu");
  std::optional<Activation> activation =
      config.activationNamed(name == "gelu" ? "gelu_new" : name, "afn");
  Block body;
  body.placement = Placement::Post;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  // Dropout acts in training only; the summary keys belong to another head;
  // n_ctx repeats n_positions.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop", "n_ctx",
                 "predict_special_tokens", "summary_activation",
                 "summary_first_dropout", "summary_proj_to_labels",
                 "summary_type", "summary_use_proj"});
  config.mustShare("n_head", heads, "n_embd", width);
  if (config.hasErrors())
    return std::nullopt;

  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.qkvBias = attention.outBias = true;
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("n_head");
  FFN &ffn = body.ffn.emplace();
  ffn.width = 4 * width;
  ffn.activation = *activation;
  ffn.location = config.locate("n_embd");

  Model model;
  model.name = "openai-gpt";
  model.context = length;
  hf::StreamBuilder stream(
      config, context.prefixFor("transformer.", "tokens_embed.weight"));
  stream.embedding("tokens_embed", vocab, width);
  stream.learnedPositions("positions_embed", length, /*offset=*/0,
                          "n_positions");
  stream.blocks("h.{i}", "n_layer", layers, body,
                {{"norm1", "ln_1"},
                 {"attention.qkv", "attn.c_attn", Layout::TransposedBlocks},
                 {"attention.o", "attn.c_proj", Layout::Transposed},
                 {"norm2", "ln_2"},
                 {"ffn.up", "mlp.c_fc", Layout::Transposed},
                 {"ffn.down", "mlp.c_proj", Layout::Transposed}});
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "tokens_embed" : "");
  model.streams.push_back(stream.take());
  return model;
}
