//===- FalconH1.cpp - config.json of Falcon-H1 ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"
#include "StateSpaces.h"

namespace attune::hf {

using namespace spec;

/// The state space that stands beside the attention.
static Mamba readStateSpace(Config &config, const LlamaConfig &llama) {
  Mamba mamba = readHeadedStateSpace(config, llama, "mamba_d_ssm", 1024);
  config.mustBeFalse("projectors_bias", "biases of a state space's projections "
                                        "are not supported");
  if (llama.block.ffn->activation != Activation::Silu)
    config.error("hidden_act", "state spaces with another activation than "
                               "silu are not supported");
  bool before = config.flag("mamba_norm_before_gate", true);
  if (config.flag("mamba_rms_norm", false)) {
    mamba.outNorm = llama.norm;
    mamba.outNormParts = mamba.groups;
    if (before)
      config.error("mamba_norm_before_gate",
                   "expected false: a norm before the gate is not supported");
  }
  checkStepLimit(config);
  config.ignore({"time_step_min", "time_step_max", "num_logits_to_keep"});
  return mamba;
}

/// `count` factors; absent or null: all are 1.
static std::vector<double> readMultipliers(Config &config, const char *key,
                                           size_t count) {
  std::vector<double> factors(count, 1);
  const Value *list = config.get(key);
  if (!list)
    return factors;
  bool fits = list->isArray() && list->elements.size() == count;
  for (size_t i = 0; fits && i < count; ++i) {
    fits = list->elements[i].isNumber();
    factors[i] = list->elements[i].real;
  }
  if (!fits)
    config.error(key, "expected " + std::to_string(count) + " numbers");
  return factors;
}

/// Factors of maximal update parametrization. Each stands behind a product, so
/// that its matrix has it.
static WeightMap readScaledWeights(Config &config, const Mamba &mamba) {
  auto factor = [&](const char *key) { return config.real(key, 1); };
  double in = factor("attention_in_multiplier"), key = factor("key_multiplier");
  double out = factor("attention_out_multiplier");
  std::vector<double> ffn = readMultipliers(config, "mlp_multipliers", 2);
  std::vector<double> parts = readMultipliers(config, "ssm_multipliers", 5);
  double intoStates = factor("ssm_in_multiplier");

  WeightMap weights;
  auto add = [&](const std::string &role, const std::string &tensor,
                 double scale, int64_t begin = 0, int64_t end = -1) {
    WeightSource &source = weights[role].emplace_back();
    source.tensor = tensor;
    source.begin = begin;
    source.end = end;
    source.scale = scale;
  };
  // A bias is added to the product: only the factor behind both applies.
  auto projection = [&](const std::string &role, const std::string &tensor,
                        double before, double behind) {
    add(role + ".weight", tensor + ".weight", before * behind);
    add(role + ".bias", tensor + ".bias", behind);
  };
  projection("attention.q", "self_attn.q_proj", in, 1);
  projection("attention.k", "self_attn.k_proj", in, key);
  projection("attention.v", "self_attn.v_proj", in, 1);
  projection("attention.o", "self_attn.o_proj", 1, out);
  projection("ffn.gate", "feed_forward.gate_proj", 1, ffn[0]);
  projection("ffn.down", "feed_forward.down_proj", 1, ffn[1]);
  // The gate, x, what goes into the states, what is read from them, the steps.
  int64_t all = mamba.groups * mamba.states, begin = 0;
  int64_t sizes[] = {mamba.inner, mamba.inner, all, all, mamba.heads};
  for (size_t i = 0; i < 5; ++i) {
    add(i < 4 ? "mamba.in_proj.weight" : "mamba.dt_proj.weight",
        "mamba.in_proj.weight", parts[i] * intoStates, begin, begin + sizes[i]);
    begin += sizes[i];
  }
  add("mamba.dt_proj.bias", "mamba.dt_bias", 1);
  projection("mamba.out_proj", "mamba.out_proj", 1,
             factor("ssm_out_multiplier"));
  return weights;
}

std::optional<Model> importFalconH1(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.kvHeads = 8;
  defaults.vocab = 128000;
  defaults.length = 8192;
  defaults.eps = 1e-5;
  std::optional<LlamaConfig> llama = readLlama(context, "falcon_h1", defaults);
  bool attentionBias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  double ofEmbedding = config.real("embedding_multiplier", 1);
  double ofLogits = config.real("lm_head_multiplier", 1);
  if (!llama)
    return std::nullopt;
  Mamba mamba = readStateSpace(config, *llama);
  llama->weights = readScaledWeights(config, mamba);
  if (config.hasErrors())
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = attentionBias;
  llama->block.ffn->bias = ffnBias;
  llama->block.mamba = mamba;
  llama->embeddingScale = ofEmbedding;
  llama->logitScale = ofLogits;
  llama->lastNorm = "final_layernorm";
  llama->tensors = {
      {"norm1", "input_layernorm"},       {"norm2", "pre_ff_layernorm"},
      {"ffn.up", "feed_forward.up_proj"}, {"mamba.conv1d", "mamba.conv1d"},
      {"mamba.A_log", "mamba.A_log"},     {"mamba.D", "mamba.D"},
      {"mamba.norm", "mamba.norm"}};
  return buildLlama(context, *llama);
}

} // namespace attune::hf
