//===- NemotronH.cpp - config.json of Nemotron-H ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"
#include "StateSpaces.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
/// What a layer is: one sublayer, with a norm before it.
enum LayerKind : size_t { Scans, Attends, Feeds, Routes };
} // namespace

/// "layers_block_type" if it is there, else the letters of
/// "hybrid_override_pattern". The list says how many layers there are.
static std::vector<size_t> readKinds(Config &config) {
  static const std::pair<const char *, size_t> names[] = {
      {"mamba", Scans},       {"linear_attention", Scans},
      {"attention", Attends}, {"full_attention", Attends},
      {"mlp", Feeds},         {"moe", Routes}};
  std::vector<size_t> kinds;
  std::string key = "layers_block_type";
  if (const Value *list = config.peek(key); list && list->isArray()) {
    std::vector<std::string> allowed;
    for (auto [name, kind] : names)
      allowed.push_back(name);
    for (const std::string &type :
         readLayerTypes(config, static_cast<int64_t>(list->elements.size()),
                        allowed, "Nemotron-H", key.c_str()))
      for (auto [name, kind] : names)
        if (type == name)
          kinds.push_back(kind);
    config.ignore({"hybrid_override_pattern"});
  } else {
    key = "hybrid_override_pattern";
    for (char letter : config.text(key, "")) {
      size_t kind = std::string_view("M*-E").find(letter);
      if (kind == std::string_view::npos) {
        config.error(key, "expected M (state space), * (attention), - "
                          "(feed-forward layer) or E (experts) for each layer");
        return {};
      }
      kinds.push_back(kind);
    }
  }
  if (kinds.empty() && !config.hasErrors())
    config.error(key, "expected the kind of each layer here or in "
                      "layers_block_type");
  int64_t layers = static_cast<int64_t>(kinds.size());
  if (config.layers("num_hidden_layers", std::max(layers, int64_t(1))) !=
          layers &&
      !config.hasErrors())
    config.error("num_hidden_layers",
                 key + " lists " + std::to_string(layers) + " layers");
  return kinds;
}

/// A state space whose result is normed group by group.
static Mamba readStateSpace(Config &config, const Norm &norm) {
  Mamba mamba;
  mamba.location = config.locate("mamba_num_heads");
  mamba.heads = config.integer("mamba_num_heads", 128);
  mamba.groups = config.integer("n_groups", 8);
  mamba.states = config.integer("ssm_state_size", 128, 256);
  mamba.kernel = config.integer("conv_kernel", 4, 256);
  mamba.inner = mamba.heads * config.integer("mamba_head_dim", 64, 65536);
  mamba.convBias = config.flag("use_conv_bias", true);
  mamba.outNorm = norm;
  mamba.outNormParts = mamba.groups;
  if (mamba.inner > maxSize)
    config.error("mamba_head_dim", "is too large for so many heads");
  checkGroups(config, "n_groups", mamba);
  config.mustBeFalse("use_bias", "biases of a state space's projections are "
                                 "not supported");
  config.mustBeFalse("mamba_proj_bias", "biases of a state space's projections "
                                        "are not supported");
  if (config.activation("mamba_hidden_act", "silu") != Activation::Silu)
    config.error("mamba_hidden_act", "state spaces with another activation "
                                     "than silu are not supported");
  // Kernels keep to this limit alone; only the class's slow path for machines
  // without them lifts steps to "time_step_min".
  checkStepLimit(config);
  config.ignore({"expand", "chunk_size", "time_step_min", "time_step_max",
                 "time_step_floor", "mamba_ssm_cache_dtype",
                 "use_mamba_kernels", "rescale_prenorm_residual",
                 "residual_in_fp32", "rms_norm_eps"});
  return mamba;
}

/// Attention without positions.
static Attention readAttention(Config &config) {
  Attention attention;
  attention.location = config.locate("num_attention_heads");
  attention.heads = config.integer("num_attention_heads", 32);
  attention.kvHeads = config.integer(
      "num_key_value_heads",
      config.isNull("num_key_value_heads") ? attention.heads : int64_t(8));
  // The first files have another name.
  int64_t dim = config.integer("attention_head_dim", 128);
  attention.headDim = attention.valueDim = config.integer("head_dim", dim);
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  attention.causal = Causal::BottomRight;
  if (attention.heads % attention.kvHeads)
    config.error("num_key_value_heads",
                 std::to_string(attention.kvHeads) +
                     " key/value heads do not divide the " +
                     std::to_string(attention.heads) + " query heads");
  config.mustBeFalse("attention_bias", "expected false");
  if (config.get("sliding_window"))
    config.error("sliding_window", "expected null");
  return attention;
}

/// Experts without gates, chosen as DeepSeek-V3's are, and a shared one with a
/// width of its own.
static MoE readRoutedExperts(Config &config, Activation activation) {
  ExpertDefaults defaults;
  defaults.width = 7688;
  defaults.count = 8;
  defaults.active = 2;
  defaults.shared = 1;
  defaults.renormalise = true;
  defaults.oneIsLeft = false;
  MoE moe = readRoutedExperts(config, defaults, readSigmoidRouter);
  moe.gated = false;
  moe.activation = activation;
  moe.shared =
      SharedExpert{config.integer("moe_shared_expert_intermediate_size", 7688),
                   /*gate=*/false};
  if (config.get("moe_latent_size"))
    config.error("moe_latent_size", "experts of another width than the "
                                    "stream's are not supported");
  config.ignore({"moe_shared_expert_overlap"});
  return moe;
}

std::optional<Model> importNemotronH(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 4096);
  int64_t vocab = config.integer("vocab_size", 131072);
  int64_t length = config.integer("max_position_embeddings", 4096);
  std::vector<size_t> kindOf = readKinds(config);
  bool tied = config.flag("tie_word_embeddings", false);
  Block block;
  block.norm.kind = NormKind::RMSNorm;
  block.norm.bias = false;
  block.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  block.norm.location = config.locate("layer_norm_epsilon");
  std::vector<Block> kinds(4, block);
  kinds[Scans].mamba = readStateSpace(config, block.norm);
  kinds[Attends].attention = readAttention(config);
  std::optional<Activation> activation =
      config.activation("mlp_hidden_act", "relu2");
  FFN &ffn = kinds[Feeds].ffn.emplace();
  ffn.location = config.locate("intermediate_size");
  ffn.width = config.integer("intermediate_size", 21504);
  ffn.activation = activation.value_or(Activation::ReluSquared);
  ffn.bias = config.flag("mlp_bias", false);
  kinds[Routes].moe = readRoutedExperts(config, ffn.activation);
  // Layers that predict further tokens are left out, and nothing turns.
  config.ignore({"rope_theta", "partial_rotary_factor", "num_logits_to_keep",
                 "hidden_dropout", "num_nextn_predict_layers",
                 "mtp_layers_block_type", "mtp_hybrid_override_pattern"});
  bool routes = false;
  for (size_t kind : kindOf)
    routes |= kind == Routes;
  if (ffn.bias && routes)
    config.error("mlp_bias", "experts with biases are not supported");
  if (config.hasErrors())
    return std::nullopt;

  Model model;
  model.name = "nemotron_h";
  model.context = length;
  StreamBuilder stream(config,
                       context.prefixFor("backbone.", "embeddings.weight"));
  stream.embedding("embeddings", vocab, width);
  stream.blocks("layers.{i}", "layers_block_type", kinds, kindOf,
                {{"norm1", "norm"},
                 {"norm2", "norm"},
                 {"mamba.conv1d", "mixer.conv1d"},
                 {"mamba.A_log", "mixer.A_log"},
                 {"mamba.D", "mixer.D"},
                 {"mamba.norm", "mixer.norm"},
                 {"mamba.out_proj", "mixer.out_proj"},
                 {"attention.q", "mixer.q_proj"},
                 {"attention.k", "mixer.k_proj"},
                 {"attention.v", "mixer.v_proj"},
                 {"attention.o", "mixer.o_proj"},
                 {"ffn.up", "mixer.up_proj"},
                 {"ffn.down", "mixer.down_proj"},
                 {"moe.router", "mixer.gate"},
                 {"moe.router.bias", "mixer.gate.e_score_correction_bias"},
                 {"moe.experts.{e}.up", "mixer.experts.{e}.up_proj"},
                 {"moe.experts.{e}.down", "mixer.experts.{e}.down_proj"},
                 {"moe.shared.up", "mixer.shared_experts.up_proj"},
                 {"moe.shared.down", "mixer.shared_experts.down_proj"}},
                headWeights(*kinds[Scans].mamba, "mixer."));
  stream.norm("norm_f", block.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embeddings" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
