//===- Zamba2.cpp - config.json of Zamba2 -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateSpaces.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// "layers_block_type"; without it what the class has for 54 layers.
static std::vector<std::string> readTypes(Config &config, int64_t layers) {
  std::vector<std::string> types = readLayerTypes(
      config, layers, {"mamba", "hybrid"}, "Zamba2", "layers_block_type");
  if (!types.empty() || config.hasErrors())
    return types;
  if (layers != 54) {
    config.error("layers_block_type",
                 "expected the kind of each layer; it may be left out for 54 "
                 "layers alone");
    return {};
  }
  types.assign(54, "mamba");
  for (size_t hybrid : {6, 12, 18, 24, 30, 36, 42, 47, 51})
    types[hybrid] = "hybrid";
  return types;
}

/// A state space whose result is normed group by group.
static Mamba readMamba2(Config &config, const LlamaConfig &llama) {
  Mamba mamba;
  mamba.location = config.locate("n_mamba_heads");
  mamba.heads = config.integer("n_mamba_heads", 8);
  mamba.groups = config.integer("mamba_ngroups", 1);
  mamba.states = config.integer("mamba_d_state", 64, 256);
  mamba.kernel = config.integer("mamba_d_conv", 4, 256);
  mamba.inner = config.integer("mamba_expand", 2) * llama.width;
  Norm norm = llama.norm;
  norm.eps = 1e-5; // whatever "rms_norm_eps" says
  mamba.outNorm = norm;
  mamba.outNormParts = mamba.groups;
  config.mustShare("n_mamba_heads", mamba.heads, "mamba_expand", mamba.inner);
  checkGroups(config, "mamba_ngroups", mamba);
  config.mustBeTrue("use_conv_bias",
                    "a convolution without a bias is not supported");
  // Only the class's slow path for machines without kernels lifts steps to
  // "time_step_min".
  checkStepLimit(config);
  config.ignore({"chunk_size", "time_step_min", "time_step_max",
                 "time_step_floor", "mamba_headdim", "use_mem_eff_path"});
  return mamba;
}

/// The attention of a shared transformer, which reads two streams.
static Attention readAttention(Config &config, const LlamaConfig &llama) {
  Attention attention;
  attention.location = config.locate("num_attention_heads");
  attention.heads = config.integer("num_attention_heads", 32);
  attention.kvHeads = config.integer("num_key_value_heads", attention.heads);
  config.mustShare("num_attention_heads", attention.heads, "hidden_size",
                   2 * llama.width);
  attention.headDim = attention.valueDim =
      std::max<int64_t>(2 * llama.width / attention.heads, 1);
  attention.scale = 1 / std::sqrt(double(attention.headDim) / 2);
  attention.causal = Causal::BottomRight;
  // Adapters give as many rows for keys as for queries.
  if (attention.kvHeads != attention.heads)
    config.error("num_key_value_heads", "expected num_attention_heads, " +
                                            std::to_string(attention.heads));
  return attention;
}

/// Positions, if there are any; a long context turns them more slowly.
static void readPositions(Config &config, LlamaConfig &llama,
                          Attention &attention) {
  bool turns = config.flag("use_mem_rope", false);
  bool longer = config.flag("use_long_context", false);
  llama.context = config.integer("max_position_embeddings", 4096);
  if (longer)
    llama.context = 16384;
  std::optional<RopeSettings> rope =
      readRope(config, attention.headDim, llama.context, {});
  if (!rope || !turns)
    return;
  attention.rope = rope->rope;
  double dim = double(attention.headDim);
  if (longer && dim > 2)
    attention.rope->theta *= std::pow(8.0, dim / (dim - 2));
}

/// Weights that no table can say: what a transformer shares has the name of the
/// first layer that calls it, and adapters are numbered by calls.
static void nameShared(Layer &layer, const std::string &first, size_t call,
                       bool attends, int64_t inner) {
  std::string at = first + "shared_transformer.";
  auto name = [&](const std::string &role, const std::string &tensor,
                  int64_t begin = 0, int64_t end = -1) {
    layer.weights[role + ".weight"] = {
        {at + tensor + ".weight", false, begin, end}};
  };
  name("memory.norm", "input_layernorm");
  name("memory.ffn_norm", "pre_ff_layernorm");
  for (const char *part : {"q", "k", "v", "o"})
    name(std::string("attention.") + part,
         std::string("self_attn.") + part + "_proj");
  name("memory.ffn.gate", "feed_forward.gate_up_proj", 0, inner);
  name("memory.ffn.up", "feed_forward.gate_up_proj", inner, 2 * inner);
  name("memory.ffn.down", "feed_forward.down_proj");
  std::string number = std::to_string(call) + ".";
  std::string list = "feed_forward.gate_up_proj_adapter_list." + number;
  name("memory.ffn.adapter_down", list + "0");
  name("memory.ffn.adapter_gate", list + "1", 0, inner);
  name("memory.ffn.adapter_up", list + "1", inner, 2 * inner);
  for (const char *part : {"q", "k", "v"}) {
    if (!attends)
      break;
    std::string of = std::string("self_attn.linear_") + part + "_adapter_list.";
    name(std::string("attention.") + part + "_down", of + number + "0");
    name(std::string("attention.") + part + "_up", of + number + "1");
  }
}

/// Names the weights of layers that call a transformer, one of `shared` after
/// the other.
static void nameCalls(Stream &stream, int64_t shared, bool attends,
                      int64_t inner) {
  std::vector<std::string> firsts;
  size_t call = 0;
  for (Layer &layer : stream.layers) {
    const auto *block = std::get_if<Block>(&layer.op);
    if (!block || !block->memory)
      continue;
    std::string own = layer.name + ".";
    for (auto &[role, sources] : layer.weights)
      for (WeightSource &source : sources)
        source.tensor.insert(own.size(), "mamba_decoder.");
    layer.weights["memory.out.weight"] = {
        {own + "linear.weight", false, 0, -1}};
    if (firsts.size() < size_t(shared))
      firsts.push_back(nameOf(layer) + ".");
    nameShared(layer, firsts[call % size_t(shared)], call, attends, inner);
    ++call;
  }
}

std::optional<Model> importZamba2(ImportContext &context) {
  Config &config = context.config;
  LlamaConfig llama;
  llama.name = "zamba2";
  llama.width = config.integer("hidden_size", 2560);
  llama.layers = config.layers("num_hidden_layers", 54);
  llama.vocab = config.integer("vocab_size", 32000);
  llama.norm.kind = NormKind::RMSNorm;
  llama.norm.bias = false;
  llama.norm.eps = config.real("rms_norm_eps", 1e-5);
  llama.norm.location = config.locate("rms_norm_eps");
  llama.tied = config.flag("tie_word_embeddings", true);
  llama.lastNorm = "final_layernorm";
  std::vector<std::string> types = readTypes(config, llama.layers);
  Mamba mamba = readMamba2(config, llama);
  Attention attention = readAttention(config, llama);
  readPositions(config, llama, attention);
  int64_t inner = config.integer("intermediate_size", 4 * llama.width);
  std::optional<Activation> activation =
      config.activation("hidden_act", "gelu");
  int64_t rank = config.integer("adapter_rank", 128);
  bool attends = config.flag("use_shared_attention_adapter", false);
  int64_t shared = config.integer("num_mem_blocks", 1);
  config.mustBeFalse("add_bias_linear", "biases are not supported");
  // The class has these adapters whatever the flag says.
  config.ignore({"use_shared_mlp_adapter", "attention_dropout",
                 "attention_head_dim", "attention_hidden_size", "kv_channels",
                 "num_query_groups", "hybrid_layer_ids", "num_logits_to_keep"});
  if (config.hasErrors())
    return std::nullopt;

  Block scans;
  scans.norm = llama.norm;
  scans.mamba = mamba;
  Block remembers = scans;
  if (attends)
    attention.adapterRank = rank;
  remembers.attention = attention;
  MemoryBlock &memory = remembers.memory.emplace();
  memory.location = config.locate("num_mem_blocks");
  memory.ffn.location = config.locate("hidden_act");
  memory.ffn.width = inner;
  memory.ffn.activation = *activation;
  memory.ffn.gated = true;
  memory.ffn.bias = false;
  memory.ffn.adapterRank = rank;
  // Each call has adapters of its own, so that none of them are one layer.
  llama.kinds = {scans};
  for (const std::string &type : types) {
    llama.kindOf.push_back(type == "hybrid" ? llama.kinds.size() : 0);
    if (type == "hybrid")
      llama.kinds.push_back(remembers);
  }
  llama.weights = headWeights(mamba, "mamba.");
  llama.tensors = {
      {"norm1", "input_layernorm"},   {"mamba.conv1d", "mamba.conv1d"},
      {"mamba.A_log", "mamba.A_log"}, {"mamba.D", "mamba.D"},
      {"mamba.norm", "mamba.norm"},   {"mamba.out_proj", "mamba.out_proj"}};
  Model model = buildLlama(context, llama);
  nameCalls(model.streams.front(), shared, attends, inner);
  return model;
}

} // namespace attune::hf
