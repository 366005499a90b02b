//===- Bart.cpp - config.json of BART and its relatives ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// BART, mBART, Marian, M2M-100 (NLLB) and PEGASUS: one network whose class, and
// not its configuration, says where the norms are and what the positions are.

#include "../Architectures.h"
#include "../Encoders/EncoderBuilder.h"
#include "EncoderDecoder.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {

struct Kind {
  bool preNorm;       ///< norms before sublayers, and one after each stack
  bool embeddingNorm; ///< a norm on the embeddings
  bool sinusoidal;    ///< positions are computed, not learned
  /// Token ids that the class takes for absent keys; -1: none.
  int64_t eos, pad, bos, start;
  /// M2M-100 has tensor2tensor's sines from position 2 on, whatever its files
  /// hold, no bias of logits, and other defaults.
  bool manyToMany = false;
  /// Blenderbot's table of positions has no rows before the first one; and
  /// other defaults.
  bool blenderbot = false;
};

class BartImporter {
public:
  BartImporter(ImportContext &context, const Kind &kind)
      : context(context), config(context.config), kind(kind) {}
  std::optional<Model> run();

private:
  Stream stack(const std::string &name, bool decoder);
  void classify(Model &model);
  void checkOldFlags();

  ImportContext &context;
  Config &config;
  const Kind kind;
  int64_t width = 0, length = 0, vocab = 0, decoderVocab = 0;
  double scale = 1;
  bool shared = true, tied = true;
  std::string prefix;
  std::optional<Activation> activation;
};

} // namespace

/// Checks flags of the first versions, before each variant was a class of its
/// own. One that contradicts the class would mean another network.
void BartImporter::checkOldFlags() {
  struct Flag {
    const char *key;
    bool value;
  };
  for (Flag flag : {Flag{"normalize_before", kind.preNorm},
                    {"add_final_layer_norm", kind.preNorm},
                    {"normalize_embedding", kind.embeddingNorm},
                    {"static_position_embeddings", kind.sinusoidal},
                    {"do_blenderbot_90_layernorm", kind.blenderbot}})
    if (config.flag(flag.key, flag.value) != flag.value)
      config.error(flag.key, std::string("is always ") +
                                 (flag.value ? "true" : "false") +
                                 " for this model_type");
}

Stream BartImporter::stack(const std::string &name, bool decoder) {
  std::string side = name + "_";
  auto key = [&](const char *rest) { return side + rest; };
  bool large = kind.blenderbot;
  int64_t heads = config.integer(key("attention_heads"), large ? 32 : 16);
  int64_t layers = config.layers(key("layers"), !large ? 12 : decoder ? 24 : 2);
  int64_t inner = config.integer(key("ffn_dim"), large ? 10240 : 4096);
  config.get(key("layerdrop"));
  config.mustShare(key("attention_heads"), heads, "d_model", width);
  if (config.hasErrors())
    return {};

  Block body;
  body.placement = kind.preNorm ? Placement::Pre : Placement::Post;
  body.norm.location = config.locate("d_model");
  Attention attention;
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.sourceWidth = width;
  attention.location = config.locate(key("attention_heads"));
  body.attention = attention;
  if (decoder) {
    body.attention->causal = Causal::BottomRight;
    body.cross = attention;
    body.cross->source = "encoder";
  }
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate(key("ffn_dim"));

  StreamBuilder stream(config, prefix);
  stream.embedding(name + ".embed_tokens", decoder ? decoderVocab : vocab,
                   width, scale);
  std::string table = name + ".embed_positions";
  // Files of computed positions may hold them all the same, and then count.
  bool stored = !kind.manyToMany && context.checkpoint &&
                context.checkpoint->find(prefix + table + ".weight");
  if (kind.sinusoidal && !stored) {
    Positions positions;
    positions.kind = PositionKind::Sinusoidal;
    positions.layout = kind.manyToMany ? SinusoidLayout::Tensor2Tensor
                                       : SinusoidLayout::Blocks;
    positions.offset = kind.manyToMany ? 2 : 0;
    stream.add(table, "max_position_embeddings", positions);
  } else {
    int64_t offset = kind.sinusoidal || kind.blenderbot ? 0 : 2;
    stream.learnedPositions(table, length + offset, offset,
                            "max_position_embeddings");
  }
  if (kind.embeddingNorm)
    stream.norm(name + ".layernorm_embedding", body.norm);
  Layer &blocks = stream.blocks(name + ".layers.{i}", "d_model", layers, body,
                                bartBlockTensors());
  blocks.location = config.locate(key("layers"));
  if (kind.preNorm)
    stream.norm(name + ".layer_norm", body.norm);
  if (decoder && context.languageModel) {
    Linear &head = stream.head("lm_head", decoderVocab,
                               tied ? name + ".embed_tokens" : "");
    // Zeros where a file has none.
    head.bias =
        !kind.manyToMany &&
        (!context.checkpoint || context.checkpoint->find("final_logits_bias"));
  }
  Stream result = stream.take();
  result.name = name;
  if (shared)
    result.layers.front().weights["weight"] = {
        {prefix + "shared.weight", false, 0, -1}};
  if (decoder && context.languageModel &&
      std::get<Linear>(result.layers.back().op).bias)
    result.layers.back().weights["bias"] = {
        {"final_logits_bias", false, 0, -1}};
  return result;
}

std::optional<Model> BartImporter::run() {
  width = config.integer(config.oneOf({"d_model", "hidden_size"}),
                         kind.blenderbot ? 2560 : 1024);
  length =
      config.integer("max_position_embeddings", kind.blenderbot ? 128 : 1024);
  vocab = config.integer("vocab_size", kind.manyToMany   ? 128112
                                       : kind.blenderbot ? 8008
                                                         : 50265);
  activation = config.activation("activation_function",
                                 kind.manyToMany ? "relu" : "gelu");
  if (config.flag("scale_embedding", kind.manyToMany))
    scale = std::sqrt(double(width));
  tied = config.flag("tie_word_embeddings", true);
  shared =
      kind.manyToMany || config.flag("share_encoder_decoder_embeddings", true);
  decoderVocab = config.integer("decoder_vocab_size", vocab);
  if (shared && decoderVocab != vocab)
    config.error("decoder_vocab_size",
                 "is not vocab_size, but the table of both is shared");
  // Dropout acts in training only; the number of all layers repeats that of the
  // encoder; the bias of logits is there whatever add_bias_logits says.
  config.ignore({"dropout", "attention_dropout", "activation_dropout",
                 "classifier_dropout", "classif_dropout", "init_std",
                 "num_hidden_layers", "num_attention_heads", "add_bias_logits",
                 "force_bos_token_to_be_generated", "output_past", "save_step",
                 "encoder_layerdrop", "decoder_layerdrop"});
  if (!kind.manyToMany)
    checkOldFlags();
  if (config.hasErrors() || !activation)
    return std::nullopt;

  // Without a shared table a base model has that of the encoder first.
  prefix = context.prefixFor("model.", shared ? "shared.weight"
                                              : "encoder.embed_tokens.weight");
  Model model;
  model.name = config.text("model_type", "bart");
  model.context = length;
  auto id = [](int64_t value) {
    return value < 0 ? std::nullopt : std::optional<int64_t>(value);
  };
  model.generation.eos = {kind.eos};
  model.generation.pad = id(kind.pad);
  model.generation.bos = id(kind.bos);
  model.generation.decoderStart = id(kind.start);
  model.streams.push_back(stack("encoder", /*decoder=*/false));
  model.streams.push_back(stack("decoder", /*decoder=*/true));
  if (config.hasErrors())
    return std::nullopt;
  declareTextInputs(context, model);
  if (context.modelClass->head == Head::Other)
    classify(model);
  if (config.hasErrors())
    return std::nullopt;
  return model;
}

/// Scores of labels by what the decoder makes of the last end token; it reads
/// what the encoder reads, one place later.
void BartImporter::classify(Model &model) {
  TensorSpec &ids = model.inputs.back();
  ids.shape = model.inputs.front().shape;
  ids.fallback = "shifted";
  StreamBuilder head(config, "", width);
  Pool pool;
  pool.kind = PoolKind::LastId;
  pool.id = config.integer("eos_token_id", kind.eos);
  pool.input = model.inputs.front().name;
  head.add("last_end", "eos_token_id", pool).pooled = true;
  EncoderBuilder::dense(head, "classification_head.dense", width,
                        Activation::Tanh);
  EncoderBuilder::dense(head, "classification_head.out_proj", config.labels());
  Stream &stream =
      model.streams.emplace_back(head.take("classifier", "decoder"));
  for (Layer &layer : stream.layers)
    layer.pooled = true;
  model.outputs.front() = {"logits", "classification_head.out_proj",
                           config.locate("architectures")};
}

static std::optional<Model> import(ImportContext &context, const Kind &kind) {
  return BartImporter(context, kind).run();
}

std::optional<Model> importBart(ImportContext &context) {
  return import(context, {/*preNorm=*/false, /*embeddingNorm=*/true,
                          /*sinusoidal=*/false, /*eos=*/2, /*pad=*/1,
                          /*bos=*/0, /*start=*/2});
}

std::optional<Model> importMBart(ImportContext &context) {
  return import(context, {/*preNorm=*/true, /*embeddingNorm=*/true,
                          /*sinusoidal=*/false, /*eos=*/2, /*pad=*/1,
                          /*bos=*/0, /*start=*/-1});
}

std::optional<Model> importM2M100(ImportContext &context) {
  return import(context, {/*preNorm=*/true, /*embeddingNorm=*/false,
                          /*sinusoidal=*/true, /*eos=*/2, /*pad=*/1,
                          /*bos=*/0, /*start=*/2, /*manyToMany=*/true});
}

std::optional<Model> importBlenderbot(ImportContext &context) {
  return import(context, {/*preNorm=*/true, /*embeddingNorm=*/false,
                          /*sinusoidal=*/false, /*eos=*/2, /*pad=*/0,
                          /*bos=*/1, /*start=*/1, /*manyToMany=*/false,
                          /*blenderbot=*/true});
}

std::optional<Model> importMarian(ImportContext &context) {
  return import(context, {/*preNorm=*/false, /*embeddingNorm=*/false,
                          /*sinusoidal=*/true, /*eos=*/0, /*pad=*/58100,
                          /*bos=*/-1, /*start=*/58100});
}

std::optional<Model> importPegasus(ImportContext &context) {
  return import(context, {/*preNorm=*/true, /*embeddingNorm=*/false,
                          /*sinusoidal=*/true, /*eos=*/1, /*pad=*/0,
                          /*bos=*/-1, /*start=*/0});
}

} // namespace attune::hf
