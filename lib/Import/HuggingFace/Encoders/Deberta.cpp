//===- Deberta.cpp - config.json of DeBERTa-v2 and -v3 ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

#include <algorithm>
#include <cmath>

namespace attune::hf {

using namespace spec;

/// The parts of a text between bars, without spaces.
static std::vector<std::string> splitAtBars(const std::string &text) {
  std::vector<std::string> parts(1);
  for (char c : text) {
    if (c == '|')
      parts.emplace_back();
    else if (c != ' ')
      parts.back() += c;
  }
  return parts;
}

/// Strings of an array, or those of a text between bars.
static std::vector<std::string> readList(Config &config, const char *key,
                                         std::vector<std::string> allowed) {
  std::vector<std::string> parts;
  const Value *value = config.get(key);
  if (!value)
    return parts;
  if (value->isString())
    parts = splitAtBars(value->text);
  for (const Value &item : value->elements)
    parts.push_back(item.text);
  for (const std::string &part : parts)
    if (!part.empty() &&
        std::find(allowed.begin(), allowed.end(), part) == allowed.end())
      config.error(key, "does not know " + quote(part));
  return parts;
}

static bool has(const std::vector<std::string> &list, const char *what) {
  return std::find(list.begin(), list.end(), what) != list.end();
}

/// What positions add to scores, and to the embeddings; both or one of them.
static void readPositions(Config &config, Attention &attention,
                          int64_t length) {
  std::vector<std::string> types =
      readList(config, "pos_att_type", {"c2p", "p2c"});
  std::vector<std::string> norms =
      readList(config, "norm_rel_ebd", {"none", "layer_norm"});
  bool shared = config.flag("share_att_key", false);
  // -1 stands for none of each.
  auto orNone = [&](const char *key) {
    const Value *value = config.peek(key);
    if (value && value->kind == Value::Kind::Integer && value->integer < 1) {
      config.ignore({key});
      return int64_t(0);
    }
    return value ? config.integer(key, std::nullopt) : int64_t(0);
  };
  int64_t most = orNone("max_relative_positions");
  int64_t buckets = orNone("position_buckets");
  if (!config.flag("relative_attention", false))
    return;
  Disentangled &form = attention.disentangled.emplace();
  form.location = config.locate("relative_attention");
  form.maxDistance = most ? most : length;
  form.buckets = buckets > 0;
  form.span = form.buckets ? buckets : form.maxDistance;
  form.contentToPosition = has(types, "c2p");
  form.positionToContent = has(types, "p2c");
  form.shared = shared;
  if (has(norms, "layer_norm"))
    form.norm.emplace();
  int64_t parts = 1 + form.contentToPosition + form.positionToContent;
  attention.scale = 1 / std::sqrt(double(attention.headDim * parts));
  if (parts == 1)
    attention.disentangled.reset(); // the table is there, but nobody asks
  else if (form.span < 4 ||
           (form.buckets && form.maxDistance <= form.span / 2 + 1))
    config.error("position_buckets", "has no distances left to share rows");
}

namespace {
class Deberta {
public:
  explicit Deberta(ImportContext &context)
      : builder(context, "deberta-v2"), context(context),
        config(context.config) {}
  void encoder();
  void heads();
  EncoderBuilder builder;

private:
  void maskedHead();

  ImportContext &context;
  Config &config;
  EncoderSizes sizes = {};
  Norm norm;
  std::string prefix;
  int64_t vocab = 0, tables = 0;
};
} // namespace

void Deberta::encoder() {
  sizes = readEncoderSizes(config, {1536, 24, 24, 6144, 1e-7, Activation::Gelu},
                           "gelu");
  vocab = config.integer("vocab_size", 128100);
  int64_t length = config.integer("max_position_embeddings", 512);
  int64_t types = config.count("type_vocab_size", 0);
  tables = config.integer("embedding_size", sizes.width);
  bool absolute = config.flag("position_biased_input", true);
  if (config.count("conv_kernel_size", 0))
    config.error("conv_kernel_size", "a convolution beside the first layer is "
                                     "not supported; expected 0");
  if (config.integer("attention_head_size", sizes.width / sizes.heads) !=
      sizes.width / sizes.heads)
    config.error("attention_head_size", "expected the width over the heads");
  norm.eps = sizes.eps;
  norm.location = config.locate("layer_norm_eps");
  Block block = encoderBlock(sizes, Placement::Post);
  readPositions(config, *block.attention, length);
  if (auto &form = block.attention->disentangled; form && form->norm)
    *form->norm = norm;
  if (config.hasErrors())
    return;

  prefix = context.prefixFor("deberta.", "embeddings.word_embeddings.weight");
  builder.idsInput("input_ids");
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings.word_embeddings", vocab, tables);
  if (absolute)
    stream.learnedPositions("embeddings.position_embeddings", length, 0,
                            "max_position_embeddings");
  if (types) {
    builder.idsInput("token_type_ids", "batch", "zeros");
    stream.add("embeddings.token_type_embeddings", "type_vocab_size",
               Embedding{types, tables, 1, "token_type_ids"});
  }
  if (tables != sizes.width)
    EncoderBuilder::dense(stream, "embeddings.embed_proj", sizes.width).bias =
        false;
  stream.norm("embeddings.LayerNorm", norm);
  builder.model.context = length;
  Layer &layer = stream.blocks(
      "encoder.layer.{i}", "num_hidden_layers", sizes.layers, block,
      {{"attention.q", "attention.self.query_proj"},
       {"attention.k", "attention.self.key_proj"},
       {"attention.v", "attention.self.value_proj"},
       {"attention.position_q", "attention.self.pos_query_proj"},
       {"attention.position_k", "attention.self.pos_key_proj"},
       {"attention.o", "attention.output.dense"},
       {"norm1", "attention.output.LayerNorm"},
       {"ffn.up", "intermediate.dense"},
       {"ffn.down", "output.dense"},
       {"norm2", "output.LayerNorm"}});
  if (const auto &form = block.attention->disentangled) {
    auto share = [&](const std::string &role, const char *tensor) {
      layer.weights["attention." + role] = {{prefix + tensor, false, 0, -1}};
    };
    share("positions.weight", "encoder.rel_embeddings.weight");
    if (form->norm) {
      share("positions_norm.weight", "encoder.LayerNorm.weight");
      share("positions_norm.bias", "encoder.LayerNorm.bias");
    }
  }
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", prefix + "encoder.layer.{i}");
}

/// The head of the class has one of two names.
void Deberta::maskedHead() {
  bool legacy = config.flag("legacy", true);
  bool tied = config.flag("tie_word_embeddings", true);
  if (tables != sizes.width)
    config.error("embedding_size", "a masked language model whose tables have "
                                   "another width is not supported");
  std::string at =
      legacy ? "cls.predictions.transform." : "lm_predictions.lm_head.";
  std::string last =
      legacy ? "cls.predictions.decoder" : "lm_predictions.lm_head.decoder";
  StreamBuilder head(config, "", sizes.width);
  EncoderBuilder::dense(head, at + "dense", sizes.width, sizes.activation);
  head.norm(at + "LayerNorm", norm);
  Linear &linear = EncoderBuilder::dense(head, last, vocab);
  if (tied || !legacy)
    linear.tied = prefix + "embeddings.word_embeddings";
  builder.finish("masked", "encoder", std::move(head));
  builder.model.streams.back().layers.back().weights["bias"] = {
      {legacy ? "cls.predictions.bias" : "lm_predictions.lm_head.bias", false,
       0, -1}};
  builder.output("logits", last);
}

void Deberta::heads() {
  if (builder.is("ForSequenceClassification")) {
    int64_t width = config.integer("pooler_hidden_size", sizes.width);
    Activation activation = config.activation("pooler_hidden_act", "gelu")
                                .value_or(Activation::Gelu);
    if (width != sizes.width)
      config.error("pooler_hidden_size", "expected the width of the encoder");
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::pool(head, "pooler.first");
    EncoderBuilder::dense(head, "pooler.dense", sizes.width, activation);
    EncoderBuilder::dense(head, "classifier", config.labels());
    builder.finish("classifier", "encoder", std::move(head));
    builder.output("logits", "classifier");
  } else if (builder.is("ForTokenClassification")) {
    builder.classifier("encoder", "classifier", sizes.width);
  } else if (builder.is("ForQuestionAnswering")) {
    builder.questionAnswering(sizes.width);
  } else if (builder.is("ForMaskedLM")) {
    maskedHead();
  }
}

std::optional<Model> importDebertaV2(ImportContext &context) {
  Deberta deberta(context);
  deberta.encoder();
  if (context.config.hasErrors())
    return std::nullopt;
  deberta.heads();
  return deberta.builder.take();
}

} // namespace attune::hf
