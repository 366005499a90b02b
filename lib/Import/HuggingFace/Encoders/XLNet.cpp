//===- XLNet.cpp - config.json of XLNet -------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// A block whose scores are made of contents, distances and segments. Matrices
/// of attention are stored as [width, heads, head_dim].
static Block readBlock(Config &config, int64_t width) {
  Block block;
  block.placement = Placement::Post;
  block.norm.eps = config.real("layer_norm_eps", 1e-12);
  block.norm.location = config.locate("layer_norm_eps");
  Attention &attention = block.attention.emplace();
  attention.location = config.locate("n_head");
  attention.heads = attention.kvHeads = config.integer("n_head", 16);
  config.mustShare("n_head", attention.heads, "d_model", width);
  int64_t dim = std::max<int64_t>(width / attention.heads, 1);
  if (config.integer("d_head", dim) != dim)
    config.error("d_head",
                 "expected the width over the heads, " + std::to_string(dim));
  attention.headDim = attention.valueDim = dim;
  attention.scale = 1 / std::sqrt(double(dim));
  attention.relative = true;
  attention.relativeSegments = "token_type_ids";
  FFN &ffn = block.ffn.emplace();
  ffn.width = config.integer("d_inner", 4096);
  ffn.activation =
      config.activation("ff_activation", "gelu").value_or(Activation::Gelu);
  return block;
}

/// What only training, memories of earlier segments and other orders of the
/// tokens have.
static void refuseOtherForms(Config &config) {
  if (config.text("attn_type", "bi") != "bi")
    config.error("attn_type", "expected \"bi\": attention to both sides");
  config.mustBeFalse("bi_data", "sequences read backwards are not supported");
  if (const Value *most = config.get("clamp_len"))
    if (most->kind == Value::Kind::Integer && most->integer > 0)
      config.error("clamp_len", "distances that all have one row are not "
                                "supported; expected -1");
  config.ignore({"mem_len", "reuse_len", "same_length", "untie_r",
                 "use_mems_eval", "use_mems_train", "start_n_top", "end_n_top",
                 "summary_last_dropout", "dropout"});
}

/// Labels of texts, from the last token, which padding in front leaves there.
static void summary(EncoderBuilder &builder, Config &config, int64_t width) {
  StreamBuilder head(config, "", width);
  std::string type = config.text("summary_type", "last");
  if (type != "last" && type != "first")
    config.error("summary_type", "expected \"last\" or \"first\"");
  Pool pool;
  pool.kind = type == "last" ? PoolKind::Last : PoolKind::First;
  head.add("sequence_summary." + type, "summary_type", pool).pooled = true;
  std::optional<Activation> activation = Activation::Identity;
  if (const Value *value = config.peek("summary_activation");
      value && value->isString())
    activation = config.activation("summary_activation", "tanh");
  config.mustBeTrue("summary_use_proj",
                    "texts without a projection are not supported");
  EncoderBuilder::dense(head, "sequence_summary.summary", width,
                        activation.value_or(Activation::Identity));
  EncoderBuilder::dense(head, "logits_proj", config.labels());
  builder.finish("classifier", "encoder", std::move(head));
  builder.output("logits", "logits_proj");
}

std::optional<Model> importXLNet(ImportContext &context) {
  Config &config = context.config;
  EncoderBuilder builder(context, "xlnet");
  int64_t width = config.integer("d_model", 1024);
  int64_t layers = config.layers("n_layer", 24);
  int64_t vocab = config.integer("vocab_size", 32000);
  Block block = readBlock(config, width);
  refuseOtherForms(config);
  if (config.hasErrors())
    return std::nullopt;

  std::string prefix =
      context.prefixFor("transformer.", "word_embedding.weight");
  builder.idsInput("input_ids");
  builder.idsInput("token_type_ids", "batch", "zeros");
  StreamBuilder stream(config, prefix);
  stream.embedding("word_embedding", vocab, width);
  stream.blocks("layer.{i}", "n_layer", layers, block,
                {{"attention.q.weight", "rel_attn.q", Layout::Transposed},
                 {"attention.k.weight", "rel_attn.k", Layout::Transposed},
                 {"attention.v.weight", "rel_attn.v", Layout::Transposed},
                 {"attention.r.weight", "rel_attn.r", Layout::Transposed},
                 {"attention.o.weight", "rel_attn.o"},
                 {"attention.r.content_bias", "rel_attn.r_w_bias"},
                 {"attention.r.position_bias", "rel_attn.r_r_bias"},
                 {"attention.r.segment_bias", "rel_attn.r_s_bias"},
                 {"attention.r.segments", "rel_attn.seg_embed"},
                 {"norm1", "rel_attn.layer_norm"},
                 {"ffn.up", "ff.layer_1"},
                 {"ffn.down", "ff.layer_2"},
                 {"norm2", "ff.layer_norm"}});
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", prefix + "layer.{i}");

  if (builder.is("ForSequenceClassification")) {
    summary(builder, config, width);
  } else if (builder.is("ForTokenClassification")) {
    builder.classifier("encoder", "classifier", width);
  } else if (builder.is("ForQuestionAnsweringSimple")) {
    builder.questionAnswering(width);
  } else if (builder.is("LMHeadModel")) {
    StreamBuilder head(config, "", width);
    Linear &linear = EncoderBuilder::dense(head, "lm_loss", vocab);
    if (config.flag("tie_word_embeddings", true))
      linear.tied = prefix + "word_embedding";
    builder.finish("words", "encoder", std::move(head));
    builder.output("logits", "lm_loss");
  }
  return builder.take();
}

} // namespace attune::hf
