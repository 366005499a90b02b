//===- GPT2.cpp - config.json of GPT-2 --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Config.h"

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
  config.mustBeFalse("scale_attn_by_inverse_layer_idx",
                     "scores divided by the number of their layer are not "
                     "supported");
  config.mustBeFalse("add_cross_attention",
                     "cross-attention in GPT-2 is not supported");
  // Dropout acts in training only; the summary keys belong to the head of
  // GPT2DoubleHeadsModel; n_ctx repeats n_positions; upcasting attention to f32
  // is what Attune does anyway.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop",
                 "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj",
                 "n_ctx", "reorder_and_upcast_attn"});
  if (width % heads)
    config.error("n_head", std::to_string(heads) +
                               " heads cannot share a width of " +
                               std::to_string(width) + " (n_embd) evenly");
  if (config.hasErrors())
    return std::nullopt;

  Model model;
  model.name = "gpt2";
  model.context = length;
  std::string prefix = context.prefixFor("transformer.", "wte.weight");
  std::string block = prefix + "h.{i}";

  Stream stream;
  auto add = [&](std::string name, const char *key) -> Layer & {
    Layer &layer = stream.layers.emplace_back();
    layer.name = std::move(name);
    layer.width = width;
    layer.inputWidth = width;
    layer.location = config.locate(key);
    return layer;
  };

  Layer &tokens = add(prefix + "wte", "vocab_size");
  tokens.op = Embedding{vocab, width, 1, ""};
  tokens.inputWidth = 0;

  Positions positions;
  positions.length = length;
  add(prefix + "wpe", "n_positions").op = positions;

  Layer &blocks = add(block, "n_layer");
  blocks.repeat = layers;
  Block body;
  body.norm.eps = eps;
  body.norm.location = config.locate("layer_norm_epsilon");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = scaled ? 1 / std::sqrt(double(width / heads)) : 1;
  attention.causal = Causal::BottomRight;
  attention.sourceWidth = width;
  attention.location = config.locate("n_head");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("activation_function");
  blocks.op = std::move(body);

  // Conv1D holds [in, out]; c_attn is queries, keys and values side by side.
  auto whole = [&](const char *role, const char *tensor, bool transposed) {
    blocks.weights[role] = {{block + "." + tensor, transposed, 0, -1}};
  };
  auto third = [&](const char *role, int64_t which) {
    int64_t begin = which * width, end = begin + width;
    std::string name = std::string("attention.") + role;
    std::string tensor = block + ".attn.c_attn.";
    blocks.weights[name + ".weight"] = {{tensor + "weight", true, begin, end}};
    blocks.weights[name + ".bias"] = {{tensor + "bias", false, begin, end}};
  };
  whole("norm1.weight", "ln_1.weight", false);
  whole("norm1.bias", "ln_1.bias", false);
  third("q", 0);
  third("k", 1);
  third("v", 2);
  whole("attention.o.weight", "attn.c_proj.weight", true);
  whole("attention.o.bias", "attn.c_proj.bias", false);
  whole("norm2.weight", "ln_2.weight", false);
  whole("norm2.bias", "ln_2.bias", false);
  whole("ffn.up.weight", "mlp.c_fc.weight", true);
  whole("ffn.up.bias", "mlp.c_fc.bias", false);
  whole("ffn.down.weight", "mlp.c_proj.weight", true);
  whole("ffn.down.bias", "mlp.c_proj.bias", false);

  Norm last;
  last.eps = eps;
  last.location = config.locate("layer_norm_epsilon");
  add(prefix + "ln_f", "layer_norm_epsilon").op = last;

  if (context.languageModel) {
    Linear head;
    head.out = vocab;
    if (tied)
      head.tied = prefix + "wte";
    Layer &layer = add("lm_head", config.peek("tie_word_embeddings")
                                      ? "tie_word_embeddings"
                                      : "vocab_size");
    layer.op = head;
    layer.width = vocab;
  }
  model.streams.push_back(std::move(stream));
  return model;
}

} // namespace attune::hf
