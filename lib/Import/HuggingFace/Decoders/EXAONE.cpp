//===- EXAONE.cpp - config.json of EXAONE -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <algorithm>

namespace attune::hf {

using namespace spec;

/// EXAONE 3 and 3.5: LLaMA under other names.
std::optional<Model> importEXAONE(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 2048;
  defaults.vocab = 102400;
  defaults.layersKey = "num_layers";
  defaults.epsKey = "layer_norm_epsilon";
  defaults.eps = 1e-5;
  defaults.activationKey = "activation_function";
  defaults.tied = true;
  // The class takes these whatever the file says.
  int64_t width = config.integer("hidden_size", defaults.width);
  int64_t heads = config.integer("num_attention_heads", defaults.heads);
  defaults.inner = 4 * std::min(width, maxSize / 4);
  if (config.peek("head_dim") &&
      config.integer("head_dim", std::nullopt) * heads != width)
    config.error("head_dim", "expected hidden_size / num_attention_heads, " +
                                 std::to_string(width / heads));
  std::optional<LlamaConfig> exaone = readLlama(context, "exaone", defaults);
  config.ignore({"embed_dropout"});
  if (!exaone || config.hasErrors())
    return std::nullopt;
  exaone->prefix = "transformer.";
  exaone->table = "wte";
  exaone->blockName = "h.{i}";
  exaone->lastNorm = "ln_f";
  exaone->tensors = {{"norm1", "ln_1"},
                     {"attention.q", "attn.attention.q_proj"},
                     {"attention.k", "attn.attention.k_proj"},
                     {"attention.v", "attn.attention.v_proj"},
                     {"attention.o", "attn.attention.out_proj"},
                     {"norm2", "ln_2"},
                     {"ffn.gate", "mlp.c_fc_0"},
                     {"ffn.up", "mlp.c_fc_1"},
                     {"ffn.down", "mlp.c_proj"}};
  return buildLlama(context, *exaone);
}

/// What EXAONE 4 and its mixture share: heads are normed, and beside layers
/// with a window those that see everything have no positions. `place`: of the
/// norms.
static std::optional<LlamaConfig>
readEXAONE4(ImportContext &context, const char *name, Placement place) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 16384;
  defaults.vocab = 102400;
  defaults.eps = 1e-5;
  std::optional<int64_t> window = readWindow(config, 4096);
  std::optional<LlamaConfig> exaone = readLlama(context, name, defaults);
  // "LLLG" says the same in letters. What counts is layer_types, which such
  // files have.
  const Value *pattern = config.peek("sliding_window_pattern");
  int64_t every = 4;
  if (!window || config.peek("layer_types"))
    config.ignore({"sliding_window_pattern"});
  else if (pattern && pattern->isString())
    config.error("sliding_window_pattern",
                 "in letters says nothing without layer_types; expected a "
                 "number");
  else
    every = config.integer("sliding_window_pattern", 4);
  if (!exaone || config.hasErrors())
    return std::nullopt;
  exaone->block.placement = place;
  exaone->block.attention->qkNorm = exaone->norm;
  std::vector<std::string> types;
  for (int64_t i = 0; i < exaone->layers; ++i)
    types.push_back((i + 1) % every ? "sliding_attention" : "full_attention");
  slideLayers(config, *exaone, window, std::move(types), "EXAONE 4");
  if (config.hasErrors())
    return std::nullopt;
  for (Block &kind : exaone->kinds)
    if (window && !kind.attention->window)
      kind.attention->rope.reset();
  return exaone;
}

std::optional<Model> importEXAONE4(ImportContext &context) {
  // Norms of the sublayers' results, within the residual connection.
  std::optional<LlamaConfig> exaone =
      readEXAONE4(context, "exaone4", Placement::Branch);
  if (!exaone)
    return std::nullopt;
  for (TensorName &row : exaone->tensors) {
    if (std::string_view(row.role) == "norm1")
      row.tensor = "post_attention_layernorm";
    if (std::string_view(row.role) == "norm2")
      row.tensor = "post_feedforward_layernorm";
  }
  return buildLlama(context, *exaone);
}

/// K-EXAONE: norms where LLaMA has them, DeepSeek-V3's experts.
std::optional<Model> importEXAONEMoE(ImportContext &context) {
  Config &config = context.config;
  std::optional<LlamaConfig> exaone =
      readEXAONE4(context, "exaone_moe", Placement::Pre);
  int64_t dense = config.count("first_k_dense_replace", 1);
  ignoreRouterKeys(config);
  // Layers that predict further tokens; a number of layers that is_moe_layer
  // spells out.
  config.ignore({"num_nextn_predict_layers", "first_last_k_dense_replace"});
  if (!exaone)
    return std::nullopt;
  std::function<bool(int64_t)> isSparse =
      readSparseLayers(config, exaone->layers, dense);
  if (const Value *listed = config.get("is_moe_layer")) {
    bool same =
        listed->isArray() && listed->elements.size() == size_t(exaone->layers);
    for (size_t i = 0; same && i < listed->elements.size(); ++i)
      same = listed->elements[i].boolean == isSparse(int64_t(i));
    if (!same)
      config.error("is_moe_layer", "expected what mlp_layer_types and "
                                   "first_k_dense_replace say");
  }
  MoE moe;
  moe.location = config.locate("num_experts");
  moe.experts = config.integer("num_experts", 64);
  moe.active = config.integer("num_experts_per_tok", 8);
  moe.width = config.integer("moe_intermediate_size", 1024);
  moe.activation = exaone->block.ffn->activation;
  moe.shared = SharedExpert{config.integer("num_shared_experts", 1) * moe.width,
                            /*gate=*/false};
  moe.router.groups = config.integer("n_group", 1);
  moe.router.activeGroups = config.integer("topk_group", 1);
  moe.router.renormalise = config.flag("norm_topk_prob", true);
  moe.router.scale = config.real("routed_scaling_factor", 2.5);
  finishSigmoidRouter(config, "num_experts", moe);
  if (config.hasErrors())
    return std::nullopt;
  for (TensorName row : mixtureTensors("shared_experts")) {
    // As published; transformers moves it into the gate as it loads files.
    if (std::string_view(row.role) == "moe.router.bias")
      row.tensor = "mlp.e_score_correction_bias";
    exaone->tensors.push_back(row);
  }
  return buildMixture(context, *exaone, moe, isSparse);
}

} // namespace attune::hf
