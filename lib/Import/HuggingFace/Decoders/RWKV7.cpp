//===- RWKV7.cpp - config.json of RWKV-7 ------------------------*- C++ -*-===//
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

/// Heads by their width, or, where that is null, by their number.
static void readHeads(Config &config, int64_t width, TimeMix &mix) {
  const char *key = config.isNull("head_dim") ? "num_heads" : "head_dim";
  int64_t given = config.isNull("head_dim")
                      ? config.integer("num_heads", std::nullopt)
                      : config.integer("head_dim", 64);
  config.ignore({"head_dim", "num_heads"});
  if (given < 1 || width % given) {
    config.error(key, std::to_string(given) + " does not divide the " +
                          std::to_string(width) + " channels");
    return;
  }
  mix.keyDim = config.isNull("head_dim") ? width / given : given;
  mix.heads = width / mix.keyDim;
  if (mix.keyDim > 512)
    config.error(key, "expected heads of at most 512 channels");
}

/// Channels of the values, the same in all layers: a number, or one for each.
static int64_t readValues(Config &config, int64_t layers, int64_t width) {
  const Value *list = config.get("value_dim");
  if (!list)
    return width;
  if (!list->isArray())
    return config.integer("value_dim", width);
  if (static_cast<int64_t>(list->elements.size()) != layers)
    config.error("value_dim", "lists " + std::to_string(list->elements.size()) +
                                  " layers, but num_hidden_layers is " +
                                  std::to_string(layers));
  int64_t all = 0;
  for (const Value &one : list->elements) {
    bool number = one.kind == Value::Kind::Integer && one.integer > 0 &&
                  one.integer <= maxSize;
    if (!number || (all && one.integer != all)) {
      config.error("value_dim", "expected one number of channels for all "
                                "layers, which mix the values of the first");
      return width;
    }
    all = one.integer;
  }
  return all ? all : width;
}

/// A rank: null stands for one that grows with the root of the channels.
static int64_t readRank(Config &config, const char *key, int64_t fallback,
                        double root) {
  if (!config.isNull(key))
    return config.integer(key, fallback);
  config.ignore({key});
  return std::max<int64_t>(32, std::llrint(std::nearbyint(root / 32)) * 32);
}

static FFN readFFN(Config &config, int64_t width) {
  FFN ffn;
  ffn.location = config.locate("intermediate_size");
  double ratio = config.real("hidden_ratio", 4);
  auto wide = static_cast<int64_t>(
      std::min(ratio * static_cast<double>(width), double(maxSize - 32)));
  ffn.width = config.integer("intermediate_size", (wide + 31) / 32 * 32);
  std::string name = config.text("hidden_act", "sqrelu");
  if (auto activation = config.activationNamed(
          name == "sqrelu" ? "relu2" : name, "hidden_act"))
    ffn.activation = *activation;
  ffn.bias = false;
  ffn.shift = true;
  return ffn;
}

static TensorNames tensorNames() {
  TensorNames tensors = {{"norm1", "attn_norm"},
                         {"norm2", "ffn_norm"},
                         {"time_mix.r", "attn.r_proj"},
                         {"time_mix.k", "attn.k_proj"},
                         {"time_mix.v", "attn.v_proj"},
                         {"time_mix.o", "attn.o_proj"},
                         {"time_mix.w_down", "attn.w_lora.lora.0"},
                         {"time_mix.w", "attn.w_lora.lora.2"},
                         {"time_mix.a_down", "attn.a_lora.lora.0"},
                         {"time_mix.a", "attn.a_lora.lora.2"},
                         {"time_mix.v_down", "attn.v_lora.lora.0"},
                         {"time_mix.v_mix", "attn.v_lora.lora.2"},
                         {"time_mix.g_down", "attn.g_lora.lora.0"},
                         {"time_mix.g", "attn.g_lora.lora.2"},
                         {"time_mix.k_k", "attn.k_k"},
                         {"time_mix.k_a", "attn.k_a"},
                         {"time_mix.r_k", "attn.r_k"},
                         {"time_mix.norm", "attn.g_norm"},
                         {"ffn.x_k", "ffn.x_k"},
                         {"ffn.up", "ffn.key"},
                         {"ffn.down", "ffn.value"}};
  return tensors;
}

/// How much of the token before each projection reads: a tensor for each, or,
/// in the first files, one for all.
static WeightMap mixWeights(const ImportContext &context,
                            const std::string &prefix, int64_t width) {
  bool together = context.checkpoint &&
                  context.checkpoint->find(prefix + "layers.0.attn.x_x");
  WeightMap weights;
  int64_t first = 0;
  for (const char *part : {"r", "w", "k", "v", "a", "g"}) {
    WeightSource source;
    source.tensor = std::string("attn.x_") + (together ? "x" : part);
    if (together) {
      source.begin = first;
      source.end = first += width;
    }
    weights[std::string("time_mix.x_") + part] = {source};
  }
  return weights;
}

std::optional<Model> importRWKV7(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 2048);
  int64_t layers = config.layers("num_hidden_layers", 24);
  int64_t vocab = config.integer("vocab_size", 32000);
  bool tied = config.flag("tie_word_embeddings", false);
  Block body;
  body.norm.bias = config.flag("norm_bias", true);
  body.norm.eps = config.real("norm_eps", 1e-5);
  body.norm.location = config.locate("norm_eps");
  TimeMix &mix = body.timeMix.emplace();
  mix.location = config.locate("head_dim");
  readHeads(config, width, mix);
  int64_t values = readValues(config, layers, width);
  double root = std::sqrt(static_cast<double>(width));
  double factor = static_cast<double>(mix.keyDim) / 64;
  mix.decayRank =
      readRank(config, "decay_low_rank_dim", 64, 2.5 * root * factor);
  mix.rateRank = readRank(config, "a_low_rank_dim", 64, 2.5 * root * factor);
  mix.gateRank = readRank(config, "gate_low_rank_dim", 128, 5 * root);
  int64_t valueRank =
      readRank(config, "v_low_rank_dim", 16, 1.7 * root * factor);
  if (values % mix.heads)
    config.error("value_dim", std::to_string(mix.heads) + " heads do not " +
                                  "divide the " + std::to_string(values) +
                                  " channels");
  mix.valueDim = values / mix.heads;
  // The fused norm adds its eps to the sum of squares; the other one bounds
  // the root from below, by 1e-12.
  mix.eps = config.flag("fuse_norm", true) ? 1e-6 : 1e-24;
  mix.norm.eps = static_cast<double>(mix.keyDim) * body.norm.eps;
  mix.norm.location = body.norm.location;
  body.ffn = readFFN(config, width);
  bool normed = config.flag("norm_first", true);
  if (config.get("attn"))
    config.error("attn", "layers of attention among the others are not "
                         "supported");
  // Kernels, losses, and positions, which nothing counts.
  config.ignore({"attn_mode", "fuse_cross_entropy", "use_l2warp",
                 "max_position_embeddings"});
  if (config.hasErrors())
    return std::nullopt;

  // The first layer gives the values that the others mix theirs with.
  std::vector<Block> kinds = {body, body};
  kinds[1].timeMix->valueRank = valueRank;
  std::vector<size_t> kindOf(static_cast<size_t>(layers), 1);
  kindOf[0] = 0;
  Model model;
  model.name = "rwkv7";
  std::string prefix = context.prefixFor("model.", "embeddings.weight");
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings", vocab, width);
  if (normed)
    stream.norm("layers.0.pre_norm", body.norm);
  stream.blocks("layers.{i}", "num_hidden_layers", kinds, kindOf, tensorNames(),
                mixWeights(context, prefix, width));
  stream.norm("norm", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embeddings" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
