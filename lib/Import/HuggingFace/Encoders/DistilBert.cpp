//===- DistilBert.cpp - config.json of DistilBERT -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importDistilBert(ImportContext &context) {
  Config &config = context.config;
  EncoderBuilder builder(context, "distilbert");
  EncoderSizes sizes;
  sizes.width = config.integer("dim", 768);
  sizes.heads = config.integer("n_heads", 12);
  sizes.layers = config.layers("n_layers", 6);
  sizes.inner = config.integer("hidden_dim", 4 * 768);
  sizes.eps = 1e-12;
  sizes.activation =
      config.activation("activation", "gelu").value_or(Activation::Gelu);
  int64_t vocab = config.integer("vocab_size", 30522);
  int64_t length = config.integer("max_position_embeddings", 512);
  bool tied = config.flag("tie_word_embeddings", true);
  config.mustShare("n_heads", sizes.heads, "dim", sizes.width);
  // Sinusoidal positions stand in the file as a table; tie_weights_ is in
  // files of old versions.
  config.ignore({"sinusoidal_pos_embds", "dropout", "attention_dropout",
                 "qa_dropout", "seq_classif_dropout", "tie_weights_"});
  if (config.hasErrors())
    return std::nullopt;

  std::string prefix =
      context.prefixFor("distilbert.", "embeddings.word_embeddings.weight");
  Norm norm;
  norm.eps = sizes.eps;
  builder.idsInput("input_ids");
  builder.model.context = length;
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings.word_embeddings", vocab, sizes.width);
  stream.learnedPositions("embeddings.position_embeddings", length, 0,
                          "max_position_embeddings");
  stream.norm("embeddings.LayerNorm", norm);
  stream.blocks("transformer.layer.{i}", "n_layers", sizes.layers,
                encoderBlock(sizes, Placement::Post),
                {{"attention.q", "attention.q_lin"},
                 {"attention.k", "attention.k_lin"},
                 {"attention.v", "attention.v_lin"},
                 {"attention.o", "attention.out_lin"},
                 {"norm1", "sa_layer_norm"},
                 {"ffn.up", "ffn.lin1"},
                 {"ffn.down", "ffn.lin2"},
                 {"norm2", "output_layer_norm"}});
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", prefix + "transformer.layer.{i}");

  if (builder.is("ForMaskedLM")) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::dense(head, "vocab_transform", sizes.width,
                          sizes.activation);
    head.norm("vocab_layer_norm", norm);
    Linear &linear = EncoderBuilder::dense(head, "vocab_projector", vocab);
    if (tied)
      linear.tied = prefix + "embeddings.word_embeddings";
    builder.finish("masked", "encoder", std::move(head));
    builder.output("logits", "vocab_projector");
  } else if (builder.is("ForSequenceClassification")) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::pool(head, "first");
    EncoderBuilder::dense(head, "pre_classifier", sizes.width,
                          Activation::Relu);
    EncoderBuilder::dense(head, "classifier", builder.config.labels());
    builder.finish("classifier", "encoder", std::move(head));
    builder.output("logits", "classifier");
  } else if (builder.is("ForTokenClassification")) {
    builder.classifier("encoder", "classifier", sizes.width);
  } else if (builder.is("ForQuestionAnswering")) {
    builder.questionAnswering(sizes.width);
  }
  return builder.take();
}

} // namespace attune::hf
