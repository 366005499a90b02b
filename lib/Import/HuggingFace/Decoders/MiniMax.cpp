//===- MiniMax.cpp - config.json of MiniMax-Text-01, M1 and M2 --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// "rotary_dim" channels of a head turn.
static void readRotaryPart(Config &config, LlamaDefaults &defaults,
                           int64_t fallback) {
  if (!config.get("rotary_dim"))
    return;
  int64_t turned = config.integer("rotary_dim", fallback);
  defaults.rope.partial =
      double(turned) / double(config.integer("head_dim", fallback));
}

/// Tensors of experts by their numbers: w1 is the gate, w2 leads down.
static void addExpertTensors(TensorNames &tensors) {
  for (auto [role, tensor] :
       {std::pair("moe.router", "block_sparse_moe.gate"),
        std::pair("moe.router.bias",
                  "block_sparse_moe.e_score_correction_bias"),
        std::pair("moe.experts.{e}.gate", "block_sparse_moe.experts.{e}.w1"),
        std::pair("moe.experts.{e}.up", "block_sparse_moe.experts.{e}.w3"),
        std::pair("moe.experts.{e}.down", "block_sparse_moe.experts.{e}.w2")})
    tensors.push_back({role, tensor});
}

/// Queries and keys are normalised before they are cut into heads, and half of
/// each head rotates. Every layer has experts, chosen by sigmoid and a bias.
std::optional<Model> importMiniMaxM2(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 3072;
  defaults.inner = 1536;
  defaults.layers = 62;
  defaults.heads = 48;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 200064;
  defaults.length = 196608;
  defaults.rope.theta = 5e6;
  readRotaryPart(config, defaults, 128);
  std::optional<LlamaConfig> model = readLlama(context, "minimax_m2", defaults);
  MoE moe = readLocalExperts(config, /*experts=*/256, /*active=*/8);
  readSigmoidRouter(config, moe.router);
  moe.router.renormalise = true;
  config.mustBeTrue("use_routing_bias",
                    "a router without a bias is not supported");
  config.mustBeTrue("use_qk_norm", "attention without norms of queries and "
                                   "keys is not supported");
  if (config.text("qk_norm_type", "per_layer") != "per_layer")
    config.error("qk_norm_type", "expected \"per_layer\"");
  ignoreRouterKeys(config);
  if (!model || config.hasErrors())
    return std::nullopt;
  model->block.attention->qkNorm = model->norm;
  model->block.attention->qkNormScope = NormScope::Projection;
  moe.width = model->block.ffn->width;
  moe.activation = model->block.ffn->activation;
  addExpertTensors(model->tensors);
  return buildMixture(context, *model, moe, [](int64_t) { return true; });
}

/// Which layers attend, by "attn_type_list" of the first files: 1 for those
/// that do, which are all without the key.
static std::vector<bool> readAttentionTypes(Config &config, int64_t layers) {
  std::vector<bool> attending;
  if (const Value *list = config.get("attn_type_list")) {
    bool good = list->isArray();
    for (const Value &item : list->elements) {
      good &= item.kind == Value::Kind::Integer && item.integer >= 0 &&
              item.integer <= 1;
      attending.push_back(item.integer == 1);
    }
    if (!good || static_cast<int64_t>(attending.size()) != layers)
      config.error("attn_type_list", "expected an array of " +
                                         std::to_string(layers) +
                                         " numbers, 0 (lightning attention) or "
                                         "1 for each layer");
  }
  attending.resize(size_t(layers), true);
  return attending;
}

static std::vector<bool> readSoftmaxLayers(Config &config, int64_t layers) {
  std::vector<bool> attending;
  std::vector<std::string> types = readLayerTypes(
      config, layers, {"linear_attention", "full_attention"}, "MiniMax");
  for (int64_t i = 0; i < layers; ++i)
    attending.push_back(types.empty() ? i % 2 == 0
                                      : types[size_t(i)] == "full_attention");
  return attending;
}

namespace {
/// A sublayer adds beta times its result to alpha times what it adds to.
struct Factors {
  const char *alpha, *beta;
};
/// What sets the classes apart.
struct Generation {
  bool first; ///< the one that came with MiniMax-Text-01 and M1
  Factors full, lightning, mlp;
};
} // namespace

/// Both sublayers of a block share one pair of factors here.
static void readFactors(Config &config, const Factors &own, const Factors &mlp,
                        Block &block) {
  block.inputScale = config.real(own.alpha, 1);
  block.residualScale = config.real(own.beta, 1);
  for (auto [key, number, other] :
       {std::tuple(own.alpha, block.inputScale, mlp.alpha),
        std::tuple(own.beta, block.residualScale, mlp.beta)})
    if (number != config.real(other, 1))
      config.error(config.peek(key) ? key : other,
                   "a factor of attention (" + std::string(key) +
                       ") that is not the feed-forward layer's (" + other +
                       ") is not supported");
}

/// Softmax and lightning attention. The norm of the latter's result has its
/// class's default, whatever the configuration says.
static std::optional<Model> importLightning(ImportContext &context,
                                            const Generation &generation) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 14336;
  defaults.kvHeads = 8;
  defaults.length = 4096 * 32;
  defaults.eps = 1e-5;
  defaults.rope.theta = 1e6;
  readRotaryPart(config, defaults, 128);
  std::optional<LlamaConfig> llama = readLlama(context, "minimax", defaults);
  MoE moe = readLocalExperts(config, /*experts=*/8, /*active=*/2);
  ignoreRouterKeys(config);
  if (generation.first && config.count("shared_intermediate_size", 0))
    config.error("shared_intermediate_size",
                 "a shared expert is not supported; expected 0");
  bool ofNorm = generation.first ? config.flag("postnorm", false) : true;
  if (llama && config.get("sliding_window"))
    llama->block.attention->window =
        config.integer("sliding_window", std::nullopt);
  if (!llama || config.hasErrors())
    return std::nullopt;
  std::vector<bool> attending = generation.first
                                    ? readAttentionTypes(config, llama->layers)
                                    : readSoftmaxLayers(config, llama->layers);
  moe.width = llama->block.ffn->width;
  moe.activation = llama->block.ffn->activation;
  moe.router.renormalise = true;
  Block full = llama->block;
  full.residualOfNorm = ofNorm;
  full.ffn.reset();
  full.moe = moe;
  Block lightning = full;
  Attention &sums = *lightning.attention;
  sums.kvHeads = sums.heads;
  sums.rope.reset();
  sums.window.reset();
  sums.gate = true;
  LinearForm &form = sums.linear.emplace();
  form.normalise = false;
  form.location = config.locate("num_attention_heads");
  Fading &fading = form.fading.emplace();
  fading.layers = llama->layers;
  fading.activation = moe.activation;
  fading.norm.kind = NormKind::RMSNorm;
  fading.norm.bias = false;
  fading.norm.eps = 1e-6;
  readFactors(config, generation.full, generation.mlp, full);
  readFactors(config, generation.lightning, generation.mlp, lightning);
  // For others the first class has rates as ALiBi has slopes.
  if (generation.first && (sums.heads & (sums.heads - 1)))
    config.error("num_attention_heads", "expected a power of two");
  if (config.hasErrors())
    return std::nullopt;

  Model model;
  model.name = llama->name;
  model.context = llama->context;
  TensorNames names = llama->tensors;
  addExpertTensors(names);
  TensorNames ofLightning;
  for (const TensorName &row : names)
    if (std::string_view(row.role).substr(0, 9) != "attention")
      ofLightning.push_back(row);
  ofLightning.push_back(
      {"attention.qkv", "self_attn.qkv_proj", Layout::Groups});
  ofLightning.push_back({"attention.out_norm", "self_attn.norm"});
  ofLightning.push_back({"attention.gate", "self_attn.output_gate"});
  ofLightning.push_back({"attention.o", "self_attn.out_proj"});
  StreamBuilder stream(config,
                       context.prefixFor("model.", "embed_tokens.weight"));
  stream.embedding("embed_tokens", llama->vocab, llama->width);
  for (size_t first = 0, end = 0; first < attending.size(); first = end) {
    while (end < attending.size() && attending[end] == attending[first])
      ++end;
    bool attends = attending[first];
    stream
        .blocks("layers.{i}", "num_hidden_layers", int64_t(end - first),
                attends ? full : lightning, attends ? names : ofLightning)
        .first = int64_t(first);
  }
  stream.norm("norm", llama->norm);
  if (context.languageModel)
    stream.head("lm_head", llama->vocab, llama->tied ? "embed_tokens" : "");
  model.streams.push_back(stream.take());
  return model;
}

std::optional<Model> importMiniMax(ImportContext &context) {
  return importLightning(
      context, {/*first=*/false,
                {"full_attn_alpha_factor", "full_attn_beta_factor"},
                {"linear_attn_alpha_factor", "linear_attn_beta_factor"},
                {"mlp_alpha_factor", "mlp_beta_factor"}});
}

std::optional<Model> importMiniMaxText(ImportContext &context) {
  return importLightning(
      context,
      {/*first=*/true,
       {"layernorm_full_attention_alpha", "layernorm_full_attention_beta"},
       {"layernorm_linear_attention_alpha", "layernorm_linear_attention_beta"},
       {"layernorm_mlp_alpha", "layernorm_mlp_beta"}});
}

} // namespace attune::hf
