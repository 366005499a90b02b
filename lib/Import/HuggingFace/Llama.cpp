//===- Llama.cpp - config.json of LLaMA -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Config.h"
#include "Rope.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// "layer_types" lists one kind per layer; LLaMA has no sliding layers.
static void checkLayerTypes(Config &config, int64_t layers) {
  const Value *types = config.get("layer_types");
  if (!types)
    return;
  if (!types->isArray()) {
    config.error("layer_types", "expected an array of strings");
    return;
  }
  if (static_cast<int64_t>(types->elements.size()) != layers)
    config.error("layer_types", "lists " +
                                    std::to_string(types->elements.size()) +
                                    " layers, but num_hidden_layers is " +
                                    std::to_string(layers));
  size_t index = 0;
  for (const Value &type : types->elements) {
    if (!type.isString() || type.text != "full_attention") {
      config.getReporter().error(
          type.offset, spec::child(config.child("layer_types"), index),
          "expected \"full_attention\", found " +
              (type.isString() ? quote(type.text)
                               : std::string(describe(type.kind))) +
              "; LLaMA with other layers is not supported");
      return;
    }
    ++index;
  }
}

std::optional<Model> importLlama(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 4096);
  int64_t inner = config.integer("intermediate_size", 11008);
  int64_t layers = config.layers("num_hidden_layers", 32);
  int64_t heads = config.integer("num_attention_heads", 32);
  int64_t kvHeads = config.integer("num_key_value_heads", heads);
  int64_t vocab = config.integer("vocab_size", 32000);
  int64_t length = config.integer("max_position_embeddings", 2048);
  double eps = config.real("rms_norm_eps", 1e-6);
  bool attentionBias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  bool tied = config.flag("tie_word_embeddings", false);
  std::optional<Activation> activation =
      config.activation("hidden_act", "silu");
  bool explicitDim = config.peek("head_dim");
  int64_t headDim =
      config.integer("head_dim", std::max<int64_t>(width / heads, 1));
  // Dropout acts in training only; pretraining_tp splits matmuls into slices
  // that add up to the same.
  config.ignore({"attention_dropout", "pretraining_tp"});
  if (config.peek("sliding_window"))
    config.error("sliding_window", "LLaMA with a window is not supported");
  config.ignore({"sliding_window"});
  checkLayerTypes(config, layers);
  if (!explicitDim && width % heads)
    config.error("num_attention_heads",
                 std::to_string(heads) + " heads cannot share a width of " +
                     std::to_string(width) + " (hidden_size) evenly");
  if (heads % kvHeads)
    config.error("num_key_value_heads",
                 std::to_string(kvHeads) + " does not divide the " +
                     std::to_string(heads) + " query heads");
  if (headDim % 2)
    config.error(explicitDim ? "head_dim" : "hidden_size",
                 "rotary embedding turns pairs of channels, but heads have " +
                     std::to_string(headDim));
  std::optional<RopeSettings> rope = readRope(config, headDim, length);
  if (config.hasErrors() || !rope)
    return std::nullopt;

  Model model;
  model.name = "llama";
  model.context = rope->context;
  std::string prefix = context.prefixFor("model.", "embed_tokens.weight");
  std::string block = prefix + "layers.{i}";

  Norm norm;
  norm.kind = NormKind::RMSNorm;
  norm.eps = eps;
  norm.bias = false;
  norm.location = config.locate("rms_norm_eps");

  Stream stream;
  auto add = [&](std::string name, const char *key) -> Layer & {
    Layer &layer = stream.layers.emplace_back();
    layer.name = std::move(name);
    layer.width = width;
    layer.inputWidth = width;
    layer.location = config.locate(key);
    return layer;
  };

  Layer &tokens = add(prefix + "embed_tokens", "vocab_size");
  tokens.op = Embedding{vocab, width, 1, ""};
  tokens.inputWidth = 0;

  Layer &blocks = add(block, "num_hidden_layers");
  blocks.repeat = layers;
  Block body;
  body.norm = norm;
  Attention &attention = body.attention.emplace();
  attention.heads = heads;
  attention.kvHeads = kvHeads;
  attention.headDim = attention.valueDim = headDim;
  attention.qkvBias = attention.outBias = attentionBias;
  attention.scale = 1 / std::sqrt(double(headDim));
  attention.causal = Causal::BottomRight;
  attention.rope = rope->rope;
  attention.sourceWidth = width;
  attention.location = config.locate("num_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.gated = true;
  ffn.bias = ffnBias;
  ffn.location = config.locate("intermediate_size");
  blocks.op = std::move(body);

  auto tensor = [&](const std::string &role, const std::string &name) {
    blocks.weights[role] = {{block + "." + name, false, 0, -1}};
  };
  auto linear = [&](const std::string &role, const std::string &name,
                    bool bias) {
    tensor(role + ".weight", name + ".weight");
    if (bias)
      tensor(role + ".bias", name + ".bias");
  };
  tensor("norm1.weight", "input_layernorm.weight");
  linear("attention.q", "self_attn.q_proj", attentionBias);
  linear("attention.k", "self_attn.k_proj", attentionBias);
  linear("attention.v", "self_attn.v_proj", attentionBias);
  linear("attention.o", "self_attn.o_proj", attentionBias);
  tensor("norm2.weight", "post_attention_layernorm.weight");
  linear("ffn.gate", "mlp.gate_proj", ffnBias);
  linear("ffn.up", "mlp.up_proj", ffnBias);
  linear("ffn.down", "mlp.down_proj", ffnBias);

  add(prefix + "norm", "rms_norm_eps").op = norm;

  if (context.languageModel) {
    Linear head;
    head.out = vocab;
    if (tied)
      head.tied = prefix + "embed_tokens";
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
