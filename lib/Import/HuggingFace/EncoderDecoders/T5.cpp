//===- T5.cpp - config.json of T5 and mT5 -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Architectures.h"
#include "EncoderDecoder.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {

/// The values that the classes of T5 and mT5 take for absent keys.
struct Defaults {
  int64_t vocab, width, inner, layers, heads;
  const char *feedForward;
  bool tied;
  bool ownBiases = false; ///< each block has a table of its own (UMT5)
};

/// The feed-forward layer: "relu", "gated-gelu" or the like, which newer files
/// take apart into two more keys.
struct FeedForward {
  std::string activation;
  bool gated = false;
};

} // namespace

static FeedForward readFeedForward(Config &config, const char *fallback) {
  FeedForward result;
  std::string name = config.text("feed_forward_proj", fallback);
  result.gated = name.rfind("gated-", 0) == 0;
  result.activation = result.gated ? name.substr(6) : name;
  // "gelu" of a gated layer has always meant the tanh form.
  if (name == "gated-gelu")
    result.activation = "gelu_new";
  result.activation = config.text("dense_act_fn", result.activation);
  result.gated = config.flag("is_gated_act", result.gated);
  return result;
}

/// The names of the tensors of a block.
static TensorNames namesOf(bool decoder, bool gated) {
  TensorNames names = {{"norm1", "layer.0.layer_norm"},
                       {"attention.q", "layer.0.SelfAttention.q"},
                       {"attention.k", "layer.0.SelfAttention.k"},
                       {"attention.v", "layer.0.SelfAttention.v"},
                       {"attention.o", "layer.0.SelfAttention.o"}};
  if (decoder)
    names.insert(names.end(), {{"norm_cross", "layer.1.layer_norm"},
                               {"cross.q", "layer.1.EncDecAttention.q"},
                               {"cross.k", "layer.1.EncDecAttention.k"},
                               {"cross.v", "layer.1.EncDecAttention.v"},
                               {"cross.o", "layer.1.EncDecAttention.o"},
                               {"norm2", "layer.2.layer_norm"},
                               {"ffn.gate", "layer.2.DenseReluDense.wi_0"},
                               {"ffn.up", gated ? "layer.2.DenseReluDense.wi_1"
                                                : "layer.2.DenseReluDense.wi"},
                               {"ffn.down", "layer.2.DenseReluDense.wo"}});
  else
    names.insert(names.end(), {{"norm2", "layer.1.layer_norm"},
                               {"ffn.gate", "layer.1.DenseReluDense.wi_0"},
                               {"ffn.up", gated ? "layer.1.DenseReluDense.wi_1"
                                                : "layer.1.DenseReluDense.wi"},
                               {"ffn.down", "layer.1.DenseReluDense.wo"}});
  return names;
}

namespace {
/// Reads the sizes of both stacks, and makes them.
class T5Importer {
public:
  /// Tensors' names begin with `prefix`.
  T5Importer(Config &config, const std::string &prefix)
      : config(config), prefix(prefix) {}
  /// False after an error was reported.
  bool read(const Defaults &defaults);
  Stream stack(bool decoder, bool hasHead);

private:
  Config &config;
  std::string prefix;
  Block body;
  Attention attention;
  RelativeBias bias;
  int64_t width = 0, vocab = 0, layers = 0, decoderLayers = 0;
  bool gated = false, tied = true, scaled = true, ownBiases = false;
};
} // namespace

bool T5Importer::read(const Defaults &defaults) {
  width =
      config.integer(config.oneOf({"d_model", "hidden_size"}), defaults.width);
  int64_t headDim = config.integer("d_kv", 64);
  int64_t inner = config.integer("d_ff", defaults.inner);
  std::string_view layersKey =
      config.oneOf({"num_layers", "num_hidden_layers"});
  layers = config.layers(layersKey, defaults.layers);
  decoderLayers = config.layers("num_decoder_layers", layers);
  std::string_view headsKey =
      config.oneOf({"num_heads", "num_attention_heads"});
  int64_t heads = config.integer(headsKey, defaults.heads);
  vocab = config.integer("vocab_size", defaults.vocab);
  double eps = config.real("layer_norm_epsilon", 1e-6);
  bias.buckets = config.integer("relative_attention_num_buckets", 32);
  bias.maxDistance = config.integer("relative_attention_max_distance", 128);
  bias.location = config.locate("relative_attention_num_buckets");
  FeedForward feedForward = readFeedForward(config, defaults.feedForward);
  gated = feedForward.gated;
  tied = config.flag("tie_word_embeddings", defaults.tied);
  scaled = config.flag("scale_decoder_outputs", tied);
  ownBiases = defaults.ownBiases;
  // Dropout acts in training only; n_positions limits nothing, as positions are
  // distances; output_past is older bookkeeping.
  config.ignore({"dropout_rate", "classifier_dropout", "initializer_factor",
                 "n_positions", "output_past", "gradient_checkpointing"});
  if (config.hasErrors())
    return false;
  // The name was read already; its place is where it stands in the file.
  const char *activationKey =
      config.peek("dense_act_fn") ? "dense_act_fn" : "feed_forward_proj";
  std::optional<Activation> activation =
      config.activationNamed(feedForward.activation, activationKey);
  if (!activation)
    return false;

  body.norm.kind = NormKind::RMSNorm;
  body.norm.eps = eps;
  body.norm.bias = false;
  body.norm.location = config.locate("layer_norm_epsilon");
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = headDim;
  attention.scale = 1;
  attention.sourceWidth = width;
  attention.location = config.locate(headsKey);
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.gated = gated;
  ffn.bias = false;
  ffn.location = config.locate("d_ff");
  return true;
}

Stream T5Importer::stack(bool decoder, bool hasHead) {
  const std::string name = decoder ? "decoder" : "encoder";
  StreamBuilder stream(config, prefix);
  stream.embedding(name + ".embed_tokens", vocab, width);
  Block block = body;
  block.attention = attention;
  block.attention->relativeBias = bias;
  block.attention->relativeBias->bidirectional = !decoder;
  if (decoder) {
    block.attention->causal = Causal::BottomRight;
    block.cross = attention;
    block.cross->source = "encoder";
  }
  Layer &blocks = stream.blocks(
      name + ".block.{i}", decoder ? "num_decoder_layers" : "num_layers",
      decoder ? decoderLayers : layers, block, namesOf(decoder, gated));
  // The table of the first block serves all of them, but UMT5's.
  blocks.weights["attention.relative_bias.weight"] = {
      {prefix + name + (ownBiases ? ".block.{i}" : ".block.0") +
           ".layer.0.SelfAttention.relative_attention_bias.weight",
       false, 0, -1}};
  stream.norm(name + ".final_layer_norm", body.norm);
  if (hasHead) {
    Linear &head =
        stream.head("lm_head", vocab, tied ? name + ".embed_tokens" : "");
    head.scale = scaled ? 1 / std::sqrt(double(width)) : 1;
  }
  Stream result = stream.take();
  result.name = name;
  result.layers.front().weights["weight"] = {
      {prefix + "shared.weight", false, 0, -1}};
  return result;
}

static std::optional<Model> import(ImportContext &context,
                                   const Defaults &defaults) {
  T5Importer importer(context.config, "");
  if (!importer.read(defaults))
    return std::nullopt;
  bool decodes = std::string(context.modelClass->name).find("EncoderModel") ==
                 std::string::npos;
  Model model;
  model.name = context.config.text("model_type", "t5");
  model.generation.eos = {1};
  model.generation.pad = 0;
  model.generation.decoderStart = 0;
  model.streams.push_back(importer.stack(/*decoder=*/false, false));
  if (decodes)
    model.streams.push_back(
        importer.stack(/*decoder=*/true, context.languageModel));
  declareTextInputs(context, model);
  return model;
}

static constexpr Defaults ofT5 = {32128, 512, 2048, 6, 8, "relu", true};

std::optional<Stream> readT5Encoder(Config &config,
                                    const Checkpoint *checkpoint,
                                    const std::string &prefix) {
  T5Importer importer(config, prefix);
  if (!importer.read(ofT5))
    return std::nullopt;
  Stream stream = importer.stack(/*decoder=*/false, /*hasHead=*/false);
  // A file may have either of two names for this one table.
  if (checkpoint && !checkpoint->find(prefix + "shared.weight"))
    stream.layers.front().weights.clear();
  return stream;
}

std::optional<Model> importT5(ImportContext &context) {
  return import(context, ofT5);
}

std::optional<Model> importMT5(ImportContext &context) {
  return import(context, {250112, 512, 1024, 8, 6, "gated-gelu", false});
}

std::optional<Model> importUMT5(ImportContext &context) {
  return import(context, {250112, 512, 1024, 8, 6, "gated-gelu", true,
                          /*ownBiases=*/true});
}

} // namespace attune::hf
