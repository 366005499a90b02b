//===- GPT2.cpp - config.json of GPT-2 and what its kin share ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GPT2Family.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

std::optional<GPT2Config> readGPT2(ImportContext &context, const char *name,
                                   const GPT2Defaults &defaults) {
  Config &config = context.config;
  GPT2Config gpt;
  gpt.name = name;
  gpt.keys = defaults;
  gpt.width = config.integer(defaults.widthKey, defaults.width);
  gpt.heads = config.integer(defaults.headsKey, defaults.heads);
  gpt.layers = config.layers(defaults.layersKey, defaults.layers);
  gpt.vocab = config.integer("vocab_size", defaults.vocab);
  gpt.length = config.integer(defaults.lengthKey, defaults.length);
  int64_t inner = config.integer(defaults.innerKey, 4 * gpt.width);
  gpt.tied = config.flag("tie_word_embeddings", true);
  std::optional<Activation> activation =
      config.activation("activation_function", defaults.activation);
  gpt.block.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  gpt.block.norm.location = config.locate("layer_norm_epsilon");
  // The keys of a head that summarises a text.
  config.ignore({"summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  config.mustShare(defaults.headsKey, gpt.heads, defaults.widthKey, gpt.width);
  if (config.hasErrors())
    return std::nullopt;

  Attention &attention = gpt.block.attention.emplace();
  attention.heads = attention.kvHeads = gpt.heads;
  attention.headDim = attention.valueDim = gpt.width / gpt.heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.causal = Causal::BottomRight;
  attention.location = config.locate(defaults.headsKey);
  FFN &ffn = gpt.block.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate(
      config.peek(defaults.innerKey) ? defaults.innerKey : defaults.widthKey);
  return gpt;
}

Model buildGPT2(ImportContext &context, const GPT2Config &gpt) {
  Model model;
  model.name = gpt.name;
  model.context = gpt.length;
  StreamBuilder stream(context.config,
                       context.prefixFor("transformer.", "wte.weight"));
  stream.embedding("wte", gpt.vocab, gpt.width);
  stream.learnedPositions("wpe", gpt.length, /*offset=*/0, gpt.keys.lengthKey,
                          gpt.skipPadding);
  if (gpt.kinds.empty())
    stream.blocks("h.{i}", gpt.keys.layersKey, gpt.layers, gpt.block,
                  gpt.tensors);
  else
    stream.blocks("h.{i}", gpt.keys.layersKey, gpt.kinds, gpt.kindOf,
                  gpt.tensors);
  stream.norm("ln_f", gpt.block.norm);
  if (context.languageModel)
    stream.head("lm_head", gpt.vocab, gpt.tied ? "wte" : "");
  model.streams.push_back(stream.take());
  return model;
}

std::optional<Model> importGPT2(ImportContext &context) {
  Config &config = context.config;
  bool scaled = config.flag("scale_attn_weights", true);
  bool byLayer = config.flag("scale_attn_by_inverse_layer_idx", false);
  config.mustBeFalse("add_cross_attention",
                     "cross-attention in GPT-2 is not supported");
  // Dropout acts in training only; n_ctx repeats n_positions; upcasting
  // attention to f32 is what Attune does anyway.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop", "n_ctx",
                 "reorder_and_upcast_attn"});
  std::optional<GPT2Config> gpt = readGPT2(context, "gpt2", {});
  if (!gpt)
    return std::nullopt;
  Attention &attention = *gpt->block.attention;
  if (!scaled)
    attention.scale = 1;
  attention.scaleByLayer = byLayer;
  gpt->tensors = {{"norm1", "ln_1"},
                  {"attention.qkv", "attn.c_attn", Layout::TransposedBlocks},
                  {"attention.o", "attn.c_proj", Layout::Transposed},
                  {"norm2", "ln_2"},
                  {"ffn.up", "mlp.c_fc", Layout::Transposed},
                  {"ffn.down", "mlp.c_proj", Layout::Transposed}};
  return buildGPT2(context, *gpt);
}

/// The first GPT: norms after the sublayers, none at the end.
std::optional<Model> importOpenAIGPT(ImportContext &context) {
  Config &config = context.config;
  GPT2Defaults defaults;
  defaults.vocab = 40478;
  defaults.length = 512;
  std::optional<GPT2Config> gpt = readGPT2(context, "openai-gpt", defaults);
  std::string name = config.text("afn", "gelu");
  // Its "gelu" is the tanh form.
  std::optional<Activation> activation =
      config.activationNamed(name == "gelu" ? "gelu_new" : name, "afn");
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop", "n_ctx",
                 "n_special", "predict_special_tokens"});
  if (!gpt || !activation || config.hasErrors())
    return std::nullopt;
  gpt->block.placement = Placement::Post;
  gpt->block.ffn->activation = *activation;
  Model model;
  model.name = gpt->name;
  model.context = gpt->length;
  StreamBuilder stream(
      config, context.prefixFor("transformer.", "tokens_embed.weight"));
  stream.embedding("tokens_embed", gpt->vocab, gpt->width);
  stream.learnedPositions("positions_embed", gpt->length, /*offset=*/0,
                          gpt->keys.lengthKey);
  stream.blocks("h.{i}", gpt->keys.layersKey, gpt->layers, gpt->block,
                {{"norm1", "ln_1"},
                 {"attention.qkv", "attn.c_attn", Layout::TransposedBlocks},
                 {"attention.o", "attn.c_proj", Layout::Transposed},
                 {"norm2", "ln_2"},
                 {"ffn.up", "mlp.c_fc", Layout::Transposed},
                 {"ffn.down", "mlp.c_proj", Layout::Transposed}});
  if (context.languageModel)
    stream.head("lm_head", gpt->vocab, gpt->tied ? "tokens_embed" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
