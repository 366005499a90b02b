//===- Gemma3n.cpp - config.json of Gemma 3n's text model -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

#include <cmath>
#include <map>
#include <tuple>

namespace attune::hf {

using namespace spec;

/// A number for each layer: a list of them or, if `single`, one for all.
static std::vector<double> readEach(Config &config, const char *key,
                                    int64_t layers, bool single,
                                    std::vector<double> fallback) {
  const Value *list = config.get(key);
  if (!list)
    return fallback;
  auto numberOf = [](const Value &value) -> double {
    return value.isNumber() ? value.real : -1;
  };
  size_t count = static_cast<size_t>(layers);
  if (single && !list->isArray())
    return std::vector<double>(count, numberOf(*list));
  if (!list->isArray() || list->elements.size() != count) {
    config.error(key, "expected an array of " + std::to_string(layers) +
                          " numbers, one for each layer");
    return fallback;
  }
  std::vector<double> numbers;
  for (const Value &one : list->elements)
    numbers.push_back(numberOf(one));
  return numbers;
}

static std::vector<double> readWidths(Config &config, int64_t layers) {
  std::vector<double> usual(static_cast<size_t>(layers), 16384);
  std::vector<double> widths =
      readEach(config, "intermediate_size", layers, /*single=*/true, usual);
  for (double width : widths)
    if (width < 1 || width > double(maxSize) || width != std::floor(width)) {
      config.error("intermediate_size", "expected whole numbers above 0");
      return usual;
    }
  return widths;
}

static std::vector<double> readSparsity(Config &config, int64_t layers) {
  std::vector<double> usual(static_cast<size_t>(layers), 0);
  if (layers > 10)
    std::fill(usual.begin(), usual.begin() + 10, 0.95);
  std::vector<double> shares = readEach(config, "activation_sparsity_pattern",
                                        layers, /*single=*/false, usual);
  for (double share : shares)
    if (share < 0 || share >= 1) {
      config.error("activation_sparsity_pattern",
                   "expected shares from 0 up to 1, without that");
      return usual;
    }
  return shares;
}

static Alternating readAlternating(Config &config) {
  Alternating form;
  form.location = config.locate("altup_num_inputs");
  form.copies = config.integer("altup_num_inputs", 4, 64);
  form.active = config.count("altup_active_idx", 0);
  form.clip = config.cap("altup_coef_clip", 120);
  form.scaled = config.flag("altup_correct_scale", true);
  form.inputs = config.integer("hidden_size_per_layer_input", 256);
  if (form.copies < 2)
    config.error("altup_num_inputs", "expected a number from 2 on");
  if (form.active >= form.copies)
    config.error("altup_active_idx", "there are " +
                                         std::to_string(form.copies) +
                                         " copies, from 0");
  return form;
}

static Attention readAttention(Config &config, const Norm &norm) {
  Attention attention;
  attention.location = config.locate("num_attention_heads");
  attention.heads = config.integer("num_attention_heads", 8);
  attention.kvHeads = config.integer("num_key_value_heads", 2);
  attention.headDim = attention.valueDim = config.integer("head_dim", 256);
  attention.scale = 1;
  attention.causal = Causal::BottomRight;
  attention.qkNorm = norm;
  attention.valueNorm = norm;
  attention.valueNorm->scale = false;
  attention.qkvBias = attention.outBias = config.flag("attention_bias", false);
  if (attention.heads % attention.kvHeads)
    config.error("num_key_value_heads",
                 std::to_string(attention.kvHeads) + " does not divide the " +
                     std::to_string(attention.heads) + " query heads");
  return attention;
}

/// Which layer's keys each layer reads: its own, or those of the last layer of
/// its kind before the last `shared` ones.
static std::vector<size_t> readLenders(Config &config,
                                       const std::vector<std::string> &types) {
  int64_t shared = config.count("num_kv_shared_layers", 15);
  auto layers = static_cast<int64_t>(types.size());
  std::vector<size_t> lenders(types.size());
  for (size_t i = 0; i < types.size(); ++i)
    lenders[i] = i;
  if (shared > layers)
    config.error("num_kv_shared_layers",
                 "there are " + std::to_string(layers) + " layers");
  if (shared >= layers) // as in the class, where then none shares
    return lenders;
  auto first = static_cast<size_t>(layers - shared);
  for (size_t i = first; i < types.size(); ++i) {
    size_t lender = first;
    while (lender > 0 && types[lender - 1] != types[i])
      --lender;
    if (lender == 0) {
      config.error("num_kv_shared_layers",
                   "no layer before those is a " + types[i] + " layer");
      return lenders;
    }
    lenders[i] = lender - 1;
  }
  return lenders;
}

static const TensorNames &tensorNames() {
  static const TensorNames tensors = {
      {"norm1", "input_layernorm"},
      {"norm1_post", "post_attention_layernorm"},
      {"norm2", "pre_feedforward_layernorm"},
      {"norm2_post", "post_feedforward_layernorm"},
      {"attention.q", "self_attn.q_proj"},
      {"attention.k", "self_attn.k_proj"},
      {"attention.v", "self_attn.v_proj"},
      {"attention.o", "self_attn.o_proj"},
      {"attention.q_norm", "self_attn.q_norm"},
      {"attention.k_norm", "self_attn.k_norm"},
      {"ffn.gate", "mlp.gate_proj"},
      {"ffn.up", "mlp.up_proj"},
      {"ffn.down", "mlp.down_proj"},
      {"laurel_a", "laurel.linear_left"},
      {"laurel_b", "laurel.linear_right"},
      {"laurel_norm", "laurel.post_laurel_norm"},
      {"alternating.norm", "altup.router_norm"},
      {"alternating.predict", "altup.prediction_coefs"},
      {"alternating.correct", "altup.correction_coefs"},
      {"alternating.scale", "altup.correct_output_scale"},
      {"alternating.gate", "per_layer_input_gate"},
      {"alternating.up", "per_layer_projection"},
      {"alternating.up_norm", "post_per_layer_input_norm"}};
  return tensors;
}

/// Every kind of block, and which one each layer is. Layers that lend their
/// keys stand alone.
static void makeKinds(const std::string &prefix, const Block &body,
                      const std::vector<std::string> &types,
                      const std::vector<double> &widths,
                      const std::vector<double> &shares,
                      const std::vector<size_t> &lenders,
                      std::optional<int64_t> window, const Rope &localRope,
                      std::vector<Block> &kinds, std::vector<size_t> &kindOf) {
  using Key = std::tuple<std::string, double, double, size_t, size_t>;
  std::map<Key, size_t> known;
  size_t none = types.size();
  for (size_t i = 0; i < types.size(); ++i) {
    bool borrows = lenders[i] != i, lends = false;
    for (size_t j = i + 1; j < types.size(); ++j)
      lends |= lenders[j] == i;
    Key key(types[i], widths[i], shares[i], borrows ? lenders[i] : none,
            lends ? i : none);
    auto [entry, isNew] = known.emplace(key, kinds.size());
    kindOf.push_back(entry->second);
    if (!isNew)
      continue;
    Block &kind = kinds.emplace_back(body);
    kind.ffn->width = static_cast<int64_t>(widths[i]);
    kind.ffn->sparsity = shares[i];
    if (types[i] == "sliding_attention") {
      kind.attention->window = window;
      kind.attention->rope = localRope;
    }
    if (borrows) {
      kind.attention->keysFrom =
          prefix + "layers." + std::to_string(lenders[i]);
      kind.attention->valueNorm.reset();
    }
  }
}

/// What the first copy's channels come from and what the last ones go to, with
/// a matrix for each copy but the first.
static void nameCopies(Layer &layer, const std::string &name, int64_t copies) {
  for (int64_t i = 1; i < copies; ++i)
    layer.weights[std::to_string(i) + ".weight"] = {
        {name + "." + std::to_string(i - 1) + ".weight"}};
}

std::optional<Model> importGemma3n(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 2048);
  int64_t layers = config.layers("num_hidden_layers", 35);
  int64_t vocab = config.integer("vocab_size", 262400);
  int64_t tableRows = config.integer("vocab_size_per_layer_input", 262144);
  int64_t length = config.integer("max_position_embeddings", 32768);
  bool tied = config.flag("tie_word_embeddings", true);
  std::optional<double> cap = config.cap("final_logit_softcapping", 30);
  std::optional<Activation> activation =
      config.activation("hidden_activation", "gelu_pytorch_tanh");
  Block body;
  body.placement = Placement::Peri;
  body.norm.kind = NormKind::RMSNorm;
  body.norm.bias = false;
  body.norm.eps = config.real("rms_norm_eps", 1e-6);
  body.norm.location = config.locate("rms_norm_eps");
  body.attention = readAttention(config, body.norm);
  body.alternating = readAlternating(config);
  body.laurelRank = config.integer("laurel_rank", 64);
  std::vector<double> widths = readWidths(config, layers);
  std::vector<double> shares = readSparsity(config, layers);
  std::optional<int64_t> window = readWindow(config, 512);
  std::vector<std::string> types = readLayerTypes(
      config, layers, {"full_attention", "sliding_attention"}, "Gemma 3n");
  for (int64_t i = static_cast<int64_t>(types.size()); i < layers; ++i)
    types.push_back((i + 1) % 5 ? "sliding_attention" : "full_attention");
  std::vector<size_t> lenders = readLenders(config, types);
  RopeDefaults whole, local;
  whole.theta = 1000000;
  local.kind = "sliding_attention";
  local.theta = config.real("rope_local_base_freq", 10000);
  int64_t headDim = body.attention->headDim;
  std::optional<RopeSettings> rope = readRope(config, headDim, length, whole);
  std::optional<RopeSettings> localRope = readLocalRope(config, headDim, local);
  // Scores are not scaled, whatever the scalar says; the rest is of training.
  config.ignore(
      {"attention_dropout", "query_pre_attn_scalar", "altup_lr_multiplier"});
  if (config.hasErrors() || !rope || !localRope)
    return std::nullopt;

  body.attention->rope = rope->rope;
  body.alternating->activation = *activation;
  FFN &ffn = body.ffn.emplace();
  ffn.location = config.locate("intermediate_size");
  ffn.activation = *activation;
  ffn.gated = true;
  ffn.bias = false;

  Model model;
  model.name = "gemma3n";
  model.context = rope->context;
  std::string prefix = context.prefixFor("model.", "embed_tokens.weight");
  StreamBuilder stream(config, prefix);
  stream.embedding("embed_tokens", vocab, width,
                   roundTo(context.dtype, std::sqrt(double(width))));
  LayerInputs inputs;
  inputs.vocab = tableRows;
  inputs.width = body.alternating->inputs;
  inputs.blocks = layers;
  inputs.scale = 1 / std::sqrt(double(width));
  inputs.tableScale = roundTo(context.dtype, std::sqrt(double(inputs.width)));
  inputs.norm = body.norm;
  Layer &own = stream.add("embed_tokens_per_layer",
                          "hidden_size_per_layer_input", inputs);
  own.weights["projection.weight"] = {
      {prefix + "per_layer_model_projection.weight"}};
  own.weights["norm.weight"] = {{prefix + "per_layer_projection_norm.weight"}};
  int64_t copies = body.alternating->copies;
  Layer &spread = stream.add("altup_projections", "altup_num_inputs",
                             Spread{copies}, copies * width);
  nameCopies(spread, spread.name, copies);
  std::vector<Block> kinds;
  std::vector<size_t> kindOf;
  makeKinds(prefix, body, types, widths, shares, lenders, window,
            localRope->rope, kinds, kindOf);
  // The router reads a norm that is divided by the width.
  WeightSource router;
  router.tensor = "altup.modality_router.weight";
  router.scale = 1 / double(width);
  stream.blocks("layers.{i}", "num_hidden_layers", kinds, kindOf, tensorNames(),
                {{"alternating.router.weight", {router}}});
  Layer &unite = stream.add("altup_unembed_projections", "altup_num_inputs",
                            Unite{copies}, width);
  nameCopies(unite, unite.name, copies);
  stream.norm("norm", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embed_tokens" : "").softcap = cap;
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
