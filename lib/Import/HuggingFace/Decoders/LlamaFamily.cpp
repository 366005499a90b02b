//===- LlamaFamily.cpp - Shared by LLaMA's relatives ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace attune::hf {

using namespace spec;

std::vector<std::string> readLayerTypes(Config &config, int64_t layers,
                                        std::vector<std::string> allowed,
                                        const char *model, const char *key) {
  const Value *types = config.get(key);
  if (!types)
    return {};
  if (!types->isArray()) {
    config.error(key, "expected an array of strings");
    return {};
  }
  if (static_cast<int64_t>(types->elements.size()) != layers)
    config.error(key, "lists " + std::to_string(types->elements.size()) +
                          " layers, but num_hidden_layers is " +
                          std::to_string(layers));
  std::string expected;
  for (size_t i = 0; i < allowed.size(); ++i)
    expected += (i ? " or \"" : "\"") + allowed[i] + "\"";
  std::vector<std::string> kinds;
  for (const Value &type : types->elements) {
    if (!type.isString() ||
        std::find(allowed.begin(), allowed.end(), type.text) == allowed.end()) {
      config.getReporter().error(
          type.offset, spec::child(config.child(key), kinds.size()),
          "expected " + expected + ", found " +
              (type.isString() ? quote(type.text)
                               : std::string(describe(type.kind))) +
              "; " + model + " with other layers is not supported");
      return {};
    }
    kinds.push_back(type.text);
  }
  return kinds;
}

std::vector<bool> readTurning(Config &config, int64_t layers) {
  int64_t interval = config.integer("no_rope_layer_interval", 4);
  std::vector<bool> turning;
  const Value *list = config.get("no_rope_layers");
  if (!list || (list->isArray() && list->elements.empty())) {
    for (int64_t i = 0; i < layers; ++i)
      turning.push_back((i + 1) % interval != 0);
    return turning;
  }
  if (!list->isArray() ||
      static_cast<int64_t>(list->elements.size()) != layers) {
    config.error("no_rope_layers", "expected an array of " +
                                       std::to_string(layers) +
                                       " numbers, 0 or 1 for each layer");
    return turning;
  }
  for (const Value &item : list->elements) {
    if (item.kind != Value::Kind::Integer || item.integer < 0 ||
        item.integer > 1) {
      config.getReporter().error(
          item.offset,
          spec::child(config.child("no_rope_layers"), turning.size()),
          "expected 0 (no rotary embedding) or 1");
      return turning;
    }
    turning.push_back(item.integer == 1);
  }
  return turning;
}

std::optional<int64_t> readWindow(Config &config,
                                  std::optional<int64_t> fallback) {
  if (config.isNull("sliding_window"))
    fallback = std::nullopt;
  if (!config.peek("sliding_window") && !fallback) {
    config.ignore({"sliding_window"});
    return std::nullopt;
  }
  return config.integer("sliding_window", fallback);
}

void slideLayers(Config &config, LlamaConfig &llama,
                 std::optional<int64_t> window, std::vector<std::string> types,
                 const char *model) {
  bool given = config.peek("layer_types");
  std::vector<std::string> read = readLayerTypes(
      config, llama.layers, {"full_attention", "sliding_attention"}, model);
  if (given)
    types = std::move(read);
  types.resize(llama.layers, "full_attention");
  if (!window && given)
    for (const std::string &type : types)
      if (type == "sliding_attention") {
        config.error("layer_types", "has sliding layers, but sliding_window "
                                    "gives no window");
        break;
      }
  // Two kinds, in the order of their first layer.
  Block sliding = llama.block;
  sliding.attention->window = window;
  std::map<std::string, size_t> numbers;
  llama.kinds.clear();
  llama.kindOf.clear();
  for (const std::string &type : types) {
    std::string kind = window ? type : "full_attention";
    auto [entry, isNew] = numbers.emplace(kind, llama.kinds.size());
    if (isNew)
      llama.kinds.push_back(kind == "full_attention" ? llama.block : sliding);
    llama.kindOf.push_back(entry->second);
  }
}

std::optional<LlamaConfig> readLlama(ImportContext &context, const char *name,
                                     const LlamaDefaults &defaults) {
  Config &config = context.config;
  LlamaConfig llama;
  llama.name = name;
  llama.width = config.integer("hidden_size", defaults.width);
  int64_t inner = config.integer("intermediate_size", defaults.inner);
  llama.layers = config.layers(
      config.oneOf({"num_hidden_layers", defaults.layersKey}), defaults.layers);
  int64_t heads = config.integer("num_attention_heads", defaults.heads);
  // Null stands for as many as query heads; an absent key for the default.
  int64_t kvHeads = config.integer("num_key_value_heads",
                                   config.isNull("num_key_value_heads")
                                       ? heads
                                       : defaults.kvHeads.value_or(heads));
  llama.vocab = config.integer("vocab_size", defaults.vocab);
  int64_t length = config.integer("max_position_embeddings", defaults.length);
  llama.norm.kind = NormKind::RMSNorm;
  llama.norm.bias = false;
  llama.norm.eps = config.real(defaults.epsKey, defaults.eps);
  llama.norm.location = config.locate(defaults.epsKey);
  llama.tied = config.flag("tie_word_embeddings", defaults.tied);
  std::optional<Activation> activation =
      defaults.activationKey
          ? config.activation(defaults.activationKey, defaults.activation)
          : Activation::Identity;
  bool explicitDim = config.peek("head_dim") || defaults.headDim;
  int64_t headDim = config.integer(
      "head_dim",
      defaults.headDim.value_or(std::max<int64_t>(llama.width / heads, 1)));
  // Acts in training only.
  config.ignore({"attention_dropout"});
  if (!explicitDim)
    config.mustShare("num_attention_heads", heads, "hidden_size", llama.width);
  if (heads % kvHeads)
    config.error("num_key_value_heads",
                 std::to_string(kvHeads) + " does not divide the " +
                     std::to_string(heads) + " query heads");
  std::optional<RopeSettings> rope =
      readRope(config, headDim, length, defaults.rope);
  if (config.hasErrors() || !rope)
    return std::nullopt;
  llama.context = rope->context;

  Block &body = llama.block;
  body.norm = llama.norm;
  Attention &attention = body.attention.emplace();
  attention.heads = heads;
  attention.kvHeads = kvHeads;
  attention.headDim = attention.valueDim = headDim;
  attention.scale = 1 / std::sqrt(double(headDim));
  attention.causal = Causal::BottomRight;
  if (defaults.readsCausal && !config.flag("is_causal", true)) {
    // It embeds texts (gte-Qwen2, llama-nemotron-embed), whatever head its
    // class has.
    attention.causal = Causal::None;
    context.languageModel = false;
  }
  attention.rope = rope->rope;
  attention.location = config.locate("num_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.gated = true;
  ffn.bias = false;
  ffn.location = config.locate("intermediate_size");
  llama.tensors = {{"norm1", "input_layernorm"},
                   {"attention.q", "self_attn.q_proj"},
                   {"attention.k", "self_attn.k_proj"},
                   {"attention.v", "self_attn.v_proj"},
                   {"attention.o", "self_attn.o_proj"},
                   {"attention.q_norm", "self_attn.q_norm"},
                   {"attention.k_norm", "self_attn.k_norm"},
                   {"norm2", "post_attention_layernorm"},
                   {"ffn.gate", "mlp.gate_proj"},
                   {"ffn.up", "mlp.up_proj"},
                   {"ffn.down", "mlp.down_proj"}};
  return llama;
}

void readLatent(Config &config, LlamaConfig &llama,
                const LatentDefaults &defaults) {
  Attention &attention = *llama.block.attention;
  Latent latent;
  latent.location = config.locate("kv_lora_rank");
  latent.rank = config.integer("kv_lora_rank", defaults.rank);
  if (!config.isNull("q_lora_rank"))
    latent.queryRank = config.integer("q_lora_rank", defaults.queryRank);
  else
    config.ignore({"q_lora_rank"});
  latent.nopeDim = config.integer("qk_nope_head_dim", defaults.nopeDim);
  // These norms take no eps of the configuration.
  latent.norm = llama.norm;
  latent.norm.eps = 1e-6;
  attention.kvHeads = attention.heads;
  attention.headDim = latent.nopeDim + attention.rope->channels;
  attention.valueDim = config.integer("v_head_dim", defaults.valueDim);
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.rope->interleaved =
      defaults.interleaved && config.flag("rope_interleave", true);
  attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
  attention.latent = latent;
  llama.tensors.insert(llama.tensors.end(),
                       {{"attention.q_a", "self_attn.q_a_proj"},
                        {"attention.q_norm", "self_attn.q_a_layernorm"},
                        {"attention.q_b", "self_attn.q_b_proj"},
                        {"attention.kv_a", "self_attn.kv_a_proj_with_mqa"},
                        {"attention.kv_norm", "self_attn.kv_a_layernorm"},
                        {"attention.kv_b", "self_attn.kv_b_proj"}});
}

Model buildLlama(ImportContext &context, const LlamaConfig &llama) {
  Model model;
  model.name = llama.name;
  model.context = llama.context;
  StreamBuilder stream(
      context.config,
      context.prefixFor(llama.prefix, llama.table + std::string(".weight")));
  stream.embedding(llama.table, llama.vocab, llama.width, llama.embeddingScale);
  std::vector<Block> kinds = llama.kinds;
  std::vector<size_t> kindOf = llama.kindOf;
  if (kinds.empty()) {
    kinds = {llama.block};
    kindOf.assign(llama.layers, 0);
  }
  stream.blocks(llama.blockName, "num_hidden_layers", kinds, kindOf,
                llama.tensors, llama.weights);
  stream.norm(llama.lastNorm, llama.norm);
  if (context.languageModel) {
    Linear &head =
        stream.head(llama.head, llama.vocab, llama.tied ? llama.table : "");
    head.bias = llama.headBias;
    head.scale = llama.logitScale;
    head.softcap = llama.logitCap;
  }
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
