//===- Granite.cpp - config.json of Granite ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"
#include "StateSpaces.h"

namespace attune::hf {

using namespace spec;

/// What dense models and mixtures share: factors of embeddings, scores,
/// residuals and logits.
static std::optional<LlamaConfig> readGranite(ImportContext &context,
                                              const char *name) {
  Config &config = context.config;
  std::optional<LlamaConfig> llama = readLlama(context, name, {});
  bool bias = config.flag("attention_bias", false);
  double ofEmbedding = config.real("embedding_multiplier", 1);
  double ofScores = config.real("attention_multiplier", 1);
  double ofResiduals = config.real("residual_multiplier", 1);
  double ofLogits = config.real("logits_scaling", 1);
  config.ignore({"pretraining_tp"});
  if (!llama || config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.scale = ofScores; // in place of 1 / sqrt(head_dim)
  llama->block.residualScale = ofResiduals;
  llama->embeddingScale = ofEmbedding;
  llama->logitScale = 1 / ofLogits; // it divides
  return llama;
}

std::optional<Model> importGranite(ImportContext &context) {
  Config &config = context.config;
  bool ffnBias = config.flag("mlp_bias", false);
  std::optional<LlamaConfig> llama = readGranite(context, "granite");
  if (!llama || config.hasErrors())
    return std::nullopt;
  llama->block.ffn->bias = ffnBias;
  return buildLlama(context, *llama);
}

/// The stacks of experts, which Checkpoint takes apart, and the feed-forward
/// layer that every token goes through.
static const TensorNames &expertTensors() {
  static const TensorNames tensors = {
      {"moe.router", "block_sparse_moe.router.layer"},
      {"moe.experts.{e}.gate_up", "block_sparse_moe.input_linear.{e}",
       Layout::Blocks},
      {"moe.experts.{e}.down", "block_sparse_moe.output_linear.{e}"},
      {"moe.shared.gate_up", "shared_mlp.input_linear", Layout::Blocks},
      {"moe.shared.down", "shared_mlp.output_linear"},
      {"ffn.gate_up", "shared_mlp.input_linear", Layout::Blocks},
      {"ffn.down", "shared_mlp.output_linear"}};
  return tensors;
}

/// `count` experts of the width that the feed-forward layer had; the softmax is
/// over the chosen ones.
static std::optional<MoE> readExperts(Config &config, int64_t count,
                                      const FFN &ffn) {
  MoE moe;
  moe.location = config.locate("num_local_experts");
  moe.experts = count;
  moe.active = config.integer("num_experts_per_tok", 2);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_local_experts",
               moe.experts);
  moe.width = ffn.width;
  moe.activation = ffn.activation;
  moe.router.softmaxAfter = true;
  if (config.hasErrors())
    return std::nullopt;
  return moe;
}

static void addTensors(LlamaConfig &llama, const TensorNames &tensors) {
  for (const TensorName &row : tensors)
    llama.tensors.push_back(row);
}

static std::optional<Model> importMixture(ImportContext &context,
                                          const char *name, bool hasShared) {
  Config &config = context.config;
  std::optional<LlamaConfig> llama = readGranite(context, name);
  int64_t count = config.integer("num_local_experts", 8);
  int64_t shared =
      hasShared ? config.count("shared_intermediate_size", 0) : int64_t(0);
  ignoreRouterKeys(config);
  if (!llama)
    return std::nullopt;
  std::optional<MoE> moe = readExperts(config, count, *llama->block.ffn);
  if (!moe)
    return std::nullopt;
  if (shared)
    moe->shared = SharedExpert{shared, /*gate=*/false};
  llama->block.ffn.reset();
  llama->block.moe = moe;
  addTensors(*llama, expertTensors());
  return buildLlama(context, *llama);
}

std::optional<Model> importGraniteMoE(ImportContext &context) {
  return importMixture(context, "granitemoe", /*hasShared=*/false);
}

std::optional<Model> importGraniteMoEShared(ImportContext &context) {
  return importMixture(context, "granitemoeshared", /*hasShared=*/true);
}

static void nameStateSpace(LlamaConfig &llama, const Mamba &mamba) {
  llama.weights = headWeights(mamba, "mamba.");
  addTensors(llama, {{"mamba.conv1d", "mamba.conv1d"},
                     {"mamba.A_log", "mamba.A_log"},
                     {"mamba.D", "mamba.D"},
                     {"mamba.norm", "mamba.norm"},
                     {"mamba.out_proj", "mamba.out_proj"}});
}

/// Granite 4: layers with attention or a state space, each with a feed-forward
/// layer and, where there are any, experts beside it.
std::optional<Model> importGraniteHybrid(ImportContext &context) {
  Config &config = context.config;
  if (config.text("normalization_function", "rmsnorm") != "rmsnorm")
    config.error("normalization_function", "expected \"rmsnorm\"");
  std::optional<LlamaConfig> llama = readGranite(context, "granitemoehybrid");
  int64_t count = config.count("num_local_experts", 8);
  int64_t shared = config.integer("shared_intermediate_size", 1024);
  // The class takes rotary positions for "rope" alone.
  std::string positions = config.text("position_embedding_type", "none");
  ignoreRouterKeys(config);
  if (!llama)
    return std::nullopt;
  std::vector<std::string> types;
  for (const char *key : {"layer_types", "layers_block_type"}) // two names
    if (types.empty())
      types = readLayerTypes(config, llama->layers, {"mamba", "attention"},
                             "Granite 4", key);
  if (types.empty())
    types.assign(llama->layers, "mamba");
  Mamba mamba = readHeadedStateSpace(config, *llama);
  mamba.outNorm = llama->norm; // of the gated result
  Block &attends = llama->block;
  if (positions != "rope")
    attends.attention->rope.reset();
  if (count == 0) {
    config.ignore({"num_experts_per_tok"});
    attends.ffn->width = shared;
  } else if (std::optional<MoE> moe =
                 readExperts(config, count, *attends.ffn)) {
    moe->shared = SharedExpert{shared, /*gate=*/false};
    attends.ffn.reset();
    attends.moe = moe;
  }
  if (config.hasErrors())
    return std::nullopt;
  addTensors(*llama, expertTensors());
  Block scans = attends;
  scans.attention.reset();
  scans.mamba = mamba;
  llama->kinds = {attends, scans};
  for (const std::string &type : types)
    llama->kindOf.push_back(type == "mamba");
  nameStateSpace(*llama, mamba);
  return buildLlama(context, *llama);
}

/// Bamba, which Granite 4 follows: LLaMA's layers, most with a state space in
/// place of attention, and half of each head turns.
std::optional<Model> importBamba(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.kvHeads = 8;
  defaults.vocab = 128000;
  defaults.length = 262144;
  defaults.eps = 1e-5;
  defaults.rope.partial = 0.5;
  std::optional<LlamaConfig> bamba = readLlama(context, "bamba", defaults);
  config.mustBeFalse("attention_bias", "the class has no such biases");
  config.mustBeFalse("mlp_bias", "the class has no such biases");
  checkStepLimit(config);
  config.ignore({"num_logits_to_keep", "time_step_min", "time_step_max",
                 "z_loss_coefficient"});
  if (!bamba)
    return std::nullopt;
  // The class turns half of a head, which files say in channels.
  int64_t turned = bamba->block.attention->rope->channels;
  if (config.integer("attn_rotary_emb", turned) != turned)
    config.error("attn_rotary_emb", "expected " + std::to_string(turned));
  Mamba mamba = readHeadedStateSpace(config, *bamba);
  mamba.outNorm = bamba->norm;
  bamba->kindOf.assign(static_cast<size_t>(bamba->layers), 1);
  const Value *attending = config.get("attn_layer_indices");
  if (attending && !attending->isArray())
    config.error("attn_layer_indices", "expected an array of layer numbers");
  else if (attending)
    for (const Value &number : attending->elements)
      if (number.kind == Value::Kind::Integer && number.integer >= 0 &&
          number.integer < bamba->layers)
        bamba->kindOf[static_cast<size_t>(number.integer)] = 0;
      else
        config.getReporter().error(number.offset,
                                   config.child("attn_layer_indices"),
                                   "expected layer numbers from 0 to " +
                                       std::to_string(bamba->layers - 1));
  if (config.hasErrors())
    return std::nullopt;
  Block scans = bamba->block;
  scans.attention.reset();
  scans.mamba = mamba;
  bamba->kinds = {bamba->block, scans};
  for (TensorName &row : bamba->tensors) {
    std::string_view role = row.role;
    if (role == "norm2")
      row.tensor = "pre_ff_layernorm";
    else if (role == "ffn.gate")
      row.tensor = "feed_forward.gate_proj";
    else if (role == "ffn.up")
      row.tensor = "feed_forward.up_proj";
    else if (role == "ffn.down")
      row.tensor = "feed_forward.down_proj";
  }
  nameStateSpace(*bamba, mamba);
  bamba->lastNorm = "final_layernorm";
  return buildLlama(context, *bamba);
}

} // namespace attune::hf
