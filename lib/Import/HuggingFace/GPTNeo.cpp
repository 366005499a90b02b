//===- GPTNeo.cpp - config.json of GPT-Neo ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

using namespace spec;

/// "global" or "local" for each layer: "attention_types" is a list of
/// [kinds, how many times], so [[["global", "local"], 12]] is 24 layers.
static std::vector<std::string> readKinds(Config &config, int64_t layers) {
  std::vector<std::string> kinds;
  const Value *types = config.get("attention_types");
  // The same, written out.
  config.ignore({"attention_layers"});
  auto wrong = [&](const Value &value) {
    config.getReporter().error(
        value.offset, config.child("attention_types"),
        "expected a list of pairs such as [[\"global\", \"local\"], 12]");
    return std::vector<std::string>();
  };
  if (!types) {
    for (int64_t i = 0; i < layers; ++i)
      kinds.push_back(i % 2 ? "local" : "global");
    return kinds;
  }
  if (!types->isArray())
    return wrong(*types);
  for (const Value &pair : types->elements) {
    if (!pair.isArray() || pair.elements.size() != 2 ||
        !pair.elements[0].isArray() ||
        pair.elements[1].kind != Value::Kind::Integer ||
        pair.elements[1].integer < 0 || pair.elements[1].integer > layers)
      return wrong(pair);
    for (int64_t i = 0; i < pair.elements[1].integer; ++i)
      for (const Value &kind : pair.elements[0].elements) {
        if (!kind.isString() || (kind.text != "global" && kind.text != "local"))
          return wrong(kind);
        if (static_cast<int64_t>(kinds.size()) <= layers)
          kinds.push_back(kind.text);
      }
  }
  if (static_cast<int64_t>(kinds.size()) != layers)
    config.error("attention_types", "does not name the attention of " +
                                        std::to_string(layers) + " layers");
  return kinds;
}

std::optional<Model> importGPTNeo(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 2048);
  int64_t heads = config.integer("num_heads", 16);
  int64_t layers = config.layers("num_layers", 24);
  int64_t vocab = config.integer("vocab_size", 50257);
  int64_t length = config.integer("max_position_embeddings", 2048);
  int64_t inner = config.integer("intermediate_size", 4 * width);
  int64_t window = config.integer("window_size", 256);
  double eps = config.real("layer_norm_epsilon", 1e-5);
  bool tied = config.flag("tie_word_embeddings", true);
  std::optional<Activation> activation =
      config.activation("activation_function", "gelu_new");
  std::vector<std::string> kinds = readKinds(config, layers);
  // Dropout acts in training only; the summary keys belong to another head.
  config.ignore({"attention_dropout", "embed_dropout", "resid_dropout",
                 "classifier_dropout", "gradient_checkpointing",
                 "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj"});
  config.mustShare("num_heads", heads, "hidden_size", width);
  if (config.hasErrors())
    return std::nullopt;

  Block body;
  body.norm.eps = eps;
  body.norm.location = config.locate("layer_norm_epsilon");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = false;
  attention.outBias = true;
  attention.scale = 1; // scores are not scaled
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("num_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("activation_function");
  Block local = body;
  local.attention->window = window;
  std::vector<size_t> kindOf;
  for (const std::string &kind : kinds)
    kindOf.push_back(kind == "local");

  Model model;
  model.name = "gpt_neo";
  model.context = length;
  StreamBuilder stream(config, context.prefixFor("transformer.", "wte.weight"));
  stream.embedding("wte", vocab, width);
  stream.learnedPositions("wpe", length, /*offset=*/0,
                          "max_position_embeddings");
  stream.blocks("h.{i}", "num_layers", {body, local}, kindOf,
                {{"norm1", "ln_1"},
                 {"attention.q", "attn.attention.q_proj"},
                 {"attention.k", "attn.attention.k_proj"},
                 {"attention.v", "attn.attention.v_proj"},
                 {"attention.o", "attn.attention.out_proj"},
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
