//===- Llama4.cpp - config.json of Llama 4's text model ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <algorithm>

namespace attune::hf {

using namespace spec;

/// Which layers have experts: those that "moe_layers" lists, or every
/// "interleave_moe_layer_step"-th.
static std::vector<bool> readSparse(Config &config, int64_t layers) {
  std::vector<bool> sparse(layers, false);
  const Value *list = config.get("moe_layers");
  if (!list) {
    int64_t step = config.integer("interleave_moe_layer_step", 1);
    for (int64_t i = step - 1; i < layers; i += step)
      sparse[i] = true;
    return sparse;
  }
  config.ignore({"interleave_moe_layer_step"});
  if (!list->isArray()) {
    config.error("moe_layers", "expected an array of layer numbers");
    return sparse;
  }
  for (const Value &number : list->elements)
    if (number.kind == Value::Kind::Integer && number.integer >= 0 &&
        number.integer < layers)
      sparse[static_cast<size_t>(number.integer)] = true;
    else
      config.getReporter().error(number.offset, config.child("moe_layers"),
                                 "expected layer numbers from 0 to " +
                                     std::to_string(layers - 1));
  return sparse;
}

/// Scores are a sigmoid of the chosen logits and multiply what the experts
/// read. Both matrices of all experts are stacks [in, out], gates first.
static MoE readExperts(Config &config, const FFN &ffn) {
  MoE moe = readLocalExperts(config, /*experts=*/16, /*active=*/1);
  moe.width = ffn.width;
  moe.activation = ffn.activation;
  moe.router.scores = RouterScores::Sigmoid;
  moe.scaleInput = true;
  moe.shared = SharedExpert{ffn.width, /*gate=*/false};
  if (moe.active != 1)
    config.error("num_experts_per_tok",
                 "expected 1; more experts that each read a token in a scale "
                 "of its own are not supported");
  return moe;
}

static void nameExperts(LlamaConfig &llama, int64_t width) {
  auto stack = [&](const std::string &role, const std::string &tensor,
                   int64_t first, int64_t end) {
    llama.weights["moe.experts.{e}." + role + ".weight"] = {
        {"feed_forward.experts.{e}." + tensor, /*transposed=*/true, first,
         end}};
  };
  stack("gate", "gate_up_proj", 0, width);
  stack("up", "gate_up_proj", width, 2 * width);
  stack("down", "down_proj", 0, -1);
}

std::optional<Model> importLlama4(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 5120;
  defaults.inner = 8192;
  defaults.layers = 48;
  defaults.heads = 40;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 202048;
  defaults.length = 4096 * 32;
  defaults.eps = 1e-5;
  defaults.rope.theta = 500000;
  std::optional<LlamaConfig> llama =
      readLlama(context, "llama4_text", defaults);
  bool bias = config.flag("attention_bias", false);
  bool norms = config.flag("use_qk_norm", true);
  bool grows = config.flag("attn_temperature_tuning", true);
  QueryGrowth growth;
  growth.location = config.locate("attn_temperature_tuning");
  growth.by = config.real("attn_scale", 0.1);
  growth.length = config.integer("floor_scale", 8192);
  growth.shift = 1;
  int64_t chunk = config.integer("attention_chunk_size", 8192);
  int64_t dense = config.integer("intermediate_size_mlp", 16384);
  ignoreRouterKeys(config);
  config.ignore({"for_llm_compressor"});
  if (!llama)
    return std::nullopt;
  std::vector<bool> turning = readTurning(config, llama->layers);
  std::vector<bool> sparse = readSparse(config, llama->layers);
  std::vector<std::string> types =
      readLayerTypes(config, llama->layers,
                     {"chunked_attention", "full_attention"}, "Llama 4");
  if (config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.rope->interleaved = true;
  attention.qkvBias = attention.outBias = bias;
  const FFN inner = *llama->block.ffn;
  std::optional<MoE> moe;
  if (std::find(sparse.begin(), sparse.end(), true) != sparse.end())
    moe = readExperts(config, inner);
  else
    config.ignore({"num_local_experts", "num_experts_per_tok"});
  if (config.hasErrors())
    return std::nullopt;

  // Kinds in the order of their first layer.
  std::map<std::tuple<bool, bool, bool>, size_t> numbers;
  for (int64_t i = 0; i < llama->layers; ++i) {
    bool chunked = types.empty() ? turning[i] : types[i] == "chunked_attention";
    auto [entry, isNew] =
        numbers.emplace(std::tuple(bool(turning[i]), chunked, bool(sparse[i])),
                        llama->kinds.size());
    llama->kindOf.push_back(entry->second);
    if (!isNew)
      continue;
    Block &kind = llama->kinds.emplace_back(llama->block);
    if (turning[i] && norms) {
      // Without gammas, behind the turn.
      kind.attention->qkNorm = llama->norm;
      kind.attention->qkNorm->scale = false;
      kind.attention->qkNormAfterRotary = true;
    } else if (!turning[i]) {
      kind.attention->rope.reset();
      if (grows)
        kind.attention->queryGrowth = growth;
    }
    // A text that fits into one chunk sees all of itself.
    if (chunked && llama->context > chunk) {
      BlockSparse &blocks = kind.attention->blockSparse.emplace();
      blocks.block = chunk;
      blocks.local = 0;
      blocks.location = config.locate("attention_chunk_size");
    }
    if (sparse[i]) {
      kind.ffn.reset();
      kind.moe = moe;
    } else {
      kind.ffn->width = dense;
    }
  }
  for (TensorName row :
       TensorNames{{"ffn.gate", "feed_forward.gate_proj"},
                   {"ffn.up", "feed_forward.up_proj"},
                   {"ffn.down", "feed_forward.down_proj"},
                   {"moe.router", "feed_forward.router"},
                   {"moe.shared.gate", "feed_forward.shared_expert.gate_proj"},
                   {"moe.shared.up", "feed_forward.shared_expert.up_proj"},
                   {"moe.shared.down", "feed_forward.shared_expert.down_proj"}})
    llama->tensors.push_back(row);
  if (moe)
    nameExperts(*llama, inner.width);
  return buildLlama(context, *llama);
}

} // namespace attune::hf
