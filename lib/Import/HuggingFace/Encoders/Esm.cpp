//===- Esm.cpp - config.json of ESM-2 --------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Rope.h"
#include "EncoderBuilder.h"

namespace attune::hf {

using namespace spec;

/// ESM-2 reads proteins: norms before the sublayers, positions that rotate.
std::optional<Model> importEsm(ImportContext &context) {
  Config &config = context.config;
  EncoderBuilder builder(context, "esm");
  EncoderSizes sizes = readEncoderSizes(
      config, {768, 12, 12, 3072, 1e-12, Activation::Gelu}, "gelu");
  int64_t vocab = config.integer("vocab_size", std::nullopt);
  int64_t length = config.integer("max_position_embeddings", 1026);
  bool tied = config.flag("tie_word_embeddings", true);
  bool drops = config.flag("token_dropout", false);
  std::vector<int64_t> masks = config.ids("mask_token_id");
  if (config.text("position_embedding_type", "absolute") != "rotary")
    config.error("position_embedding_type",
                 "expected \"rotary\"; ESM-1 is not supported");
  config.mustBeFalse("emb_layer_norm_before", "ESM-1b's norm of embeddings is "
                                              "not supported");
  config.mustBeFalse("is_folding_model", "ESMFold is not supported");
  config.mustBeFalse("is_decoder", "decoders of this type are not supported");
  config.mustBeFalse("add_cross_attention",
                     "cross-attention in this type is not supported");
  // The class takes gelu whatever hidden_act says.
  sizes.activation = Activation::Gelu;
  config.ignore({"attention_probs_dropout_prob", "hidden_dropout_prob",
                 "classifier_dropout", "esmfold_config", "vocab_list"});
  // With token_dropout embeddings are those of a training in which 12 % were
  // masked, times what is not masked here. How much that is in a text with
  // masked tokens no layer knows, so that these have no row in the table.
  int64_t rows = vocab;
  if (drops) {
    if (masks.size() == 1 && masks[0] == vocab - 1)
      --rows;
    else
      config.error("mask_token_id",
                   "expected the last id, " + std::to_string(vocab - 1));
  }
  if (config.hasErrors())
    return std::nullopt;

  std::string prefix =
      context.prefixFor("esm.", "embeddings.word_embeddings.weight");
  Norm norm;
  norm.eps = sizes.eps;
  norm.location = config.locate("layer_norm_eps");
  Block block = encoderBlock(sizes, Placement::Pre);
  Rope &rope = block.attention->rope.emplace();
  rope.channels = block.attention->headDim;
  rope.location = config.locate("position_embedding_type");
  if (rope.channels % 2) {
    config.error("hidden_size", "heads have " + std::to_string(rope.channels) +
                                    " channels, of which pairs rotate");
    return std::nullopt;
  }
  const std::string table = prefix + "embeddings.word_embeddings.weight";
  builder.idsInput("input_ids");
  builder.model.context = length;
  StreamBuilder stream(config, prefix);
  stream
      .add("embeddings.word_embeddings", "vocab_size",
           Embedding{rows, sizes.width, drops ? 0.88 : 1, ""}, sizes.width)
      .weights["weight"] = {{table, false, 0, rows}};
  stream.blocks("encoder.layer.{i}", "num_hidden_layers", sizes.layers, block,
                {{"norm1", "attention.LayerNorm"},
                 {"attention.q", "attention.self.query"},
                 {"attention.k", "attention.self.key"},
                 {"attention.v", "attention.self.value"},
                 {"attention.o", "attention.output.dense"},
                 {"norm2", "LayerNorm"},
                 {"ffn.up", "intermediate.dense"},
                 {"ffn.down", "output.dense"}});
  stream.norm("encoder.emb_layer_norm_after", norm);
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", prefix + "encoder.emb_layer_norm_after");

  if (builder.is("ForMaskedLM")) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::dense(head, "lm_head.dense", sizes.width, Activation::Gelu);
    head.norm("lm_head.layer_norm", norm);
    EncoderBuilder::dense(head, "lm_head.decoder", vocab);
    builder.finish("masked", "encoder", std::move(head));
    WeightMap &weights = builder.model.streams.back().layers.back().weights;
    if (tied)
      weights["weight"] = {{table, false, 0, -1}};
    weights["bias"] = {{"lm_head.bias", false, 0, -1}};
    builder.output("logits", "lm_head.decoder");
  } else if (builder.is("ForSequenceClassification")) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::pool(head, "classifier.first");
    EncoderBuilder::dense(head, "classifier.dense", sizes.width,
                          Activation::Tanh);
    EncoderBuilder::dense(head, "classifier.out_proj", config.labels());
    builder.finish("classifier", "encoder", std::move(head));
    builder.output("logits", "classifier.out_proj");
  } else if (builder.is("ForTokenClassification")) {
    builder.classifier("encoder", "classifier", sizes.width);
  } else {
    builder.pooler(prefix + "pooler.dense", sizes.width, true);
  }
  return builder.take();
}

} // namespace attune::hf
