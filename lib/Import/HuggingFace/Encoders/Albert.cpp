//===- Albert.cpp - config.json of ALBERT ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

std::optional<Model> importAlbert(ImportContext &context) {
  Config &config = context.config;
  EncoderBuilder builder(context, "albert");
  EncoderSizes sizes = readEncoderSizes(
      config, {4096, 64, 12, 16384, 1e-12, Activation::GeluTanh}, "gelu_new");
  int64_t tables = config.integer("embedding_size", 128);
  int64_t vocab = config.integer("vocab_size", 30000);
  int64_t length = config.integer("max_position_embeddings", 512);
  int64_t types = config.integer("type_vocab_size", 2);
  int64_t groups = config.integer("num_hidden_groups", 1);
  int64_t inner = config.integer("inner_group_num", 1, 1000);
  bool tied = config.flag("tie_word_embeddings", true);
  if (config.text("position_embedding_type", "absolute") != "absolute")
    config.error("position_embedding_type",
                 "only \"absolute\" positions are supported");
  // Dropout acts in training only; the others are in files of old versions
  // and read by nothing.
  config.ignore({"attention_probs_dropout_prob", "hidden_dropout_prob",
                 "classifier_dropout_prob", "classifier_dropout",
                 "down_scale_factor", "gap_size", "net_structure_type",
                 "num_memory_blocks"});
  if (config.hasErrors())
    return std::nullopt;

  std::string prefix =
      context.prefixFor("albert.", "embeddings.word_embeddings.weight");
  Norm norm;
  norm.eps = sizes.eps;
  norm.location = config.locate("layer_norm_eps");
  builder.idsInput("input_ids");
  builder.idsInput("token_type_ids", "batch", "zeros");
  builder.model.context = length;
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings.word_embeddings", vocab, tables);
  stream.add("embeddings.token_type_embeddings", "type_vocab_size",
             Embedding{types, tables, 1, "token_type_ids"});
  stream.learnedPositions("embeddings.position_embeddings", length, 0,
                          "max_position_embeddings");
  stream.norm("embeddings.LayerNorm", norm);
  EncoderBuilder::dense(stream, "encoder.embedding_hidden_mapping_in",
                        sizes.width);
  // Layer n is of group n / (layers / groups), rounded down; a group is several
  // blocks. Equal layers in a row repeat, with one set of weights.
  std::string last;
  for (int64_t n = 0; n < sizes.layers;) {
    auto groupOf = [&](int64_t layer) {
      return static_cast<int64_t>(double(layer) /
                                  (double(sizes.layers) / double(groups)));
    };
    int64_t group = groupOf(n), end = n + 1;
    while (inner == 1 && end < sizes.layers && groupOf(end) == group)
      ++end;
    for (int64_t i = 0; i < inner; ++i) {
      std::string name = "encoder.albert_layer_groups." +
                         std::to_string(group) + ".albert_layers." +
                         std::to_string(i);
      std::string place = "encoder.layers.";
      place += inner == 1 ? "{i}" : std::to_string(n) + "." + std::to_string(i);
      Layer &layer = stream.blocks(place, "num_hidden_layers", end - n,
                                   encoderBlock(sizes, Placement::Post), {});
      layer.first = inner == 1 ? n : 0;
      if (inner == 1 && groups > 1)
        layer.name = prefix + "encoder.group" + std::to_string(group) + ".{i}";
      nameTensors(layer, prefix + name + ".",
                  {{"attention.q", "attention.query"},
                   {"attention.k", "attention.key"},
                   {"attention.v", "attention.value"},
                   {"attention.o", "attention.dense"},
                   {"norm1", "attention.LayerNorm"},
                   {"ffn.up", "ffn"},
                   {"ffn.down", "ffn_output"},
                   {"norm2", "full_layer_layer_norm"}});
      last = layer.name;
    }
    n = end;
  }
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", last);

  bool pretraining = builder.is("ForPreTraining");
  bool bare = builder.is("AlbertModel");
  if (pretraining || builder.is("ForMaskedLM")) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::dense(head, "predictions.dense", tables, sizes.activation);
    head.norm("predictions.LayerNorm", norm);
    Linear &linear = EncoderBuilder::dense(head, "predictions.decoder", vocab);
    if (tied)
      linear.tied = prefix + "embeddings.word_embeddings";
    builder.finish("masked", "encoder", std::move(head));
    builder.model.streams.back().layers.back().weights["bias"] = {
        {"predictions.bias", false, 0, -1}};
    builder.output(pretraining ? "prediction_logits" : "logits",
                   "predictions.decoder");
  }
  if (pretraining || bare || builder.is("ForSequenceClassification"))
    builder.pooler(prefix + "pooler", sizes.width, pretraining || bare);
  if (pretraining) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::dense(head, "sop_classifier.classifier",
                          builder.config.labels());
    builder.finish("sentence_order", "pooler", std::move(head));
    builder.output("sop_logits", "sop_classifier.classifier");
  }
  if (builder.is("ForSequenceClassification"))
    builder.classifier("pooler", "classifier", sizes.width);
  if (builder.is("ForTokenClassification"))
    builder.classifier("encoder", "classifier", sizes.width);
  if (builder.is("ForQuestionAnswering"))
    builder.questionAnswering(sizes.width);
  return builder.take();
}

} // namespace attune::hf
