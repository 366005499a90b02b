//===- Bert.cpp - config.json of BERT and its kin -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Rope.h"
#include "EncoderBuilder.h"

namespace attune::hf {

using namespace spec;

static const TensorNames blockTensors = {
    {"attention.q", "attention.self.query"},
    {"attention.k", "attention.self.key"},
    {"attention.v", "attention.self.value"},
    {"attention.o", "attention.output.dense"},
    {"norm1", "attention.output.LayerNorm"},
    {"ffn.up", "intermediate.dense"},
    {"ffn.down", "output.dense"},
    {"norm2", "output.LayerNorm"},
};

namespace {
/// Shared by the whole family.
struct Bert {
  Bert(ImportContext &context, const char *name, const char *ownPrefix,
       const EncoderSizes &defaults, const std::string &positions = "absolute")
      : builder(context, name), config(context.config) {
    sizes = readEncoderSizes(config, defaults, "gelu");
    prefix = context.prefixFor(ownPrefix, "embeddings.word_embeddings.weight");
    std::string found = config.text("position_embedding_type", positions);
    if (found != positions) {
      config.ignore({"rotary_emb_base"});
      config.error("position_embedding_type",
                   "only " + quote(positions) + " positions are supported" +
                       (found == "rotary"
                            ? "; Jina's embeddings are read in the form of "
                              "transformers' own class (jina-embeddings-v3-hf)"
                            : ""));
    }
    config.mustBeFalse("is_decoder", "decoders of this type are not supported");
    config.mustBeFalse("add_cross_attention",
                       "cross-attention in this type is not supported");
    tied = config.flag("tie_word_embeddings", true);
    // Dropout acts in training only; the other keys repeat in old files what
    // the classes say.
    config.ignore({"attention_probs_dropout_prob", "hidden_dropout_prob",
                   "classifier_dropout", "directionality", "pooler_fc_size",
                   "pooler_num_attention_heads", "pooler_num_fc_layers",
                   "pooler_size_per_head", "pooler_type", "output_past",
                   "summary_type", "summary_use_proj", "summary_activation",
                   "summary_last_dropout", "summary_first_dropout"});
    norm.eps = sizes.eps;
    norm.location = config.locate("layer_norm_eps");
  }

  void encoder(int64_t vocabDefault, int64_t widthOfTables,
               std::optional<int64_t> pad, int64_t defaultLength = 512) {
    vocab = config.integer("vocab_size", vocabDefault);
    int64_t length = config.integer("max_position_embeddings", defaultLength);
    int64_t types = config.integer("type_vocab_size", 2);
    if (config.hasErrors())
      return;
    builder.idsInput("input_ids");
    builder.idsInput("token_type_ids", "batch", "zeros");
    StreamBuilder stream(config, prefix);
    stream.embedding("embeddings.word_embeddings", vocab, widthOfTables);
    Embedding typeTable{types, widthOfTables, 1, "token_type_ids"};
    stream.add("embeddings.token_type_embeddings", "type_vocab_size",
               typeTable);
    Positions positions;
    positions.length = length;
    if (pad) {
      positions.count = PositionCount::Unpadded;
      positions.pad = positions.offset = *pad;
    }
    stream.add("embeddings.position_embeddings", "max_position_embeddings",
               positions);
    builder.model.context = length - (pad ? *pad + 1 : 0);
    stream.norm("embeddings.LayerNorm", norm);
    if (widthOfTables != sizes.width)
      EncoderBuilder::dense(stream, "embeddings_project", sizes.width);
    std::string last = prefix + "encoder.layer.{i}";
    stream.blocks("encoder.layer.{i}", "num_hidden_layers", sizes.layers,
                  encoderBlock(sizes, Placement::Post), blockTensors);
    builder.finish("encoder", "input_ids", std::move(stream));
    builder.output("last_hidden_state", last);
  }

  /// Without a table of positions: queries and keys turn.
  void rotaryEncoder() {
    vocab = config.integer("vocab_size", 250002);
    int64_t length = config.integer("max_position_embeddings", 8194);
    int64_t types = config.integer("type_vocab_size", 1);
    Block block = encoderBlock(sizes, Placement::Post);
    RopeDefaults defaults;
    defaults.theta = 20000;
    std::optional<RopeSettings> rope =
        readRope(config, block.attention->headDim, length, defaults);
    if (config.hasErrors() || !rope)
      return;
    block.attention->rope = rope->rope;
    builder.model.context = rope->context;
    builder.idsInput("input_ids");
    builder.idsInput("token_type_ids", "batch", "zeros");
    StreamBuilder stream(config, prefix);
    stream.embedding("embeddings.word_embeddings", vocab, sizes.width);
    stream.add("embeddings.token_type_embeddings", "type_vocab_size",
               Embedding{types, sizes.width, 1, "token_type_ids"});
    stream.norm("embeddings.LayerNorm", norm);
    stream.blocks("layers.{i}", "num_hidden_layers", sizes.layers, block,
                  {{"attention.q", "self_attn.q_proj"},
                   {"attention.k", "self_attn.k_proj"},
                   {"attention.v", "self_attn.v_proj"},
                   {"attention.o", "self_attn.o_proj"},
                   {"norm1", "post_attention_layernorm"},
                   {"ffn.up", "mlp.fc1"},
                   {"ffn.down", "mlp.fc2"},
                   {"norm2", "post_mlp_layernorm"}});
    builder.finish("encoder", "input_ids", std::move(stream));
    builder.output("last_hidden_state", prefix + "layers.{i}");
  }

  /// Without kinds of tokens; scores have biases by distance, too, in a table
  /// that all layers share.
  void mpnetEncoder() {
    vocab = config.integer("vocab_size", 30527);
    int64_t length = config.integer("max_position_embeddings", 512);
    RelativeBias bias;
    bias.buckets = config.integer("relative_attention_num_buckets", 32);
    bias.bidirectional = true;
    bias.location = config.locate("relative_attention_num_buckets");
    if (bias.buckets != 32)
      config.error("relative_attention_num_buckets",
                   "expected 32, into which MPNet's class puts distances "
                   "whatever this key says");
    if (length < 3)
      config.error("max_position_embeddings",
                   "expected at least 3, for positions begin with 2");
    if (config.hasErrors())
      return;
    builder.idsInput("input_ids");
    builder.model.context = length - 2;
    StreamBuilder stream(config, prefix);
    stream.embedding("embeddings.word_embeddings", vocab, sizes.width);
    Positions positions;
    positions.length = length;
    positions.count = PositionCount::Unpadded;
    positions.pad = positions.offset = 1; // whatever pad_token_id says
    stream.add("embeddings.position_embeddings", "max_position_embeddings",
               positions);
    stream.norm("embeddings.LayerNorm", norm);
    Block block = encoderBlock(sizes, Placement::Post);
    block.attention->relativeBias = bias;
    Layer &blocks = stream.blocks("encoder.layer.{i}", "num_hidden_layers",
                                  sizes.layers, block,
                                  {{"attention.q", "attention.attn.q"},
                                   {"attention.k", "attention.attn.k"},
                                   {"attention.v", "attention.attn.v"},
                                   {"attention.o", "attention.attn.o"},
                                   {"norm1", "attention.LayerNorm"},
                                   {"ffn.up", "intermediate.dense"},
                                   {"ffn.down", "output.dense"},
                                   {"norm2", "output.LayerNorm"}});
    blocks.weights["attention.relative_bias.weight"] = {
        {prefix + "encoder.relative_attention_bias.weight", false, 0, -1}};
    builder.finish("encoder", "input_ids", std::move(stream));
    builder.output("last_hidden_state", prefix + "encoder.layer.{i}");
  }

  /// The heads of RoBERTa's classes.
  std::optional<Model> robertaHeads() {
    if (config.hasErrors())
      return std::nullopt;
    if (builder.is("ForMaskedLM"))
      maskedHead("lm_head.dense", "lm_head.layer_norm", "lm_head.decoder",
                 "lm_head.bias", sizes.width, Activation::Gelu);
    else if (builder.is("ForSequenceClassification"))
      sequenceHead(Activation::Tanh);
    else if (builder.is("ForTokenClassification"))
      builder.classifier("encoder", "classifier", sizes.width);
    else if (builder.is("ForQuestionAnswering"))
      builder.questionAnswering(sizes.width);
    else
      builder.pooler(prefix + "pooler.dense", sizes.width, true);
    return builder.take();
  }

  /// Dense, activation, norm and the table of embeddings with a bias of its
  /// own, as four tensors' names.
  void maskedHead(const std::string &dense, const std::string &normName,
                  const std::string &decoder, const std::string &bias,
                  int64_t width, Activation activation,
                  const char *output = "logits") {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::dense(head, dense, width, activation);
    head.norm(normName, norm);
    Linear &linear = EncoderBuilder::dense(head, decoder, vocab);
    if (tied)
      linear.tied = prefix + "embeddings.word_embeddings";
    builder.finish("masked", "encoder", std::move(head));
    builder.model.streams.back().layers.back().weights["bias"] = {
        {bias, false, 0, -1}};
    builder.output(output, decoder);
  }

  /// The first token through a dense layer and a projection.
  void sequenceHead(Activation activation) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::pool(head, "classifier.first");
    EncoderBuilder::dense(head, "classifier.dense", sizes.width, activation);
    EncoderBuilder::dense(head, "classifier.out_proj", builder.config.labels());
    builder.finish("classifier", "encoder", std::move(head));
    builder.output("logits", "classifier.out_proj");
  }

  EncoderBuilder builder;
  Config &config;
  EncoderSizes sizes;
  std::string prefix;
  Norm norm;
  bool tied = true;
  int64_t vocab = 0;
};
} // namespace

static const EncoderSizes base = {768, 12, 12, 3072, 1e-12, Activation::Gelu};

std::optional<Model> importBert(ImportContext &context) {
  Bert bert(context, "bert", "bert.", base);
  EncoderBuilder &builder = bert.builder;
  bert.encoder(30522, bert.sizes.width, std::nullopt);
  if (bert.config.hasErrors())
    return std::nullopt;
  std::string pooler = bert.prefix + "pooler.dense";
  bool pretraining = builder.is("ForPreTraining");
  if (pretraining || builder.is("ForMaskedLM"))
    bert.maskedHead("cls.predictions.transform.dense",
                    "cls.predictions.transform.LayerNorm",
                    "cls.predictions.decoder", "cls.predictions.bias",
                    bert.sizes.width, bert.sizes.activation,
                    pretraining ? "prediction_logits" : "logits");
  if (pretraining || builder.is("BertModel") ||
      builder.is("ForNextSentencePrediction") ||
      builder.is("ForSequenceClassification"))
    builder.pooler(pooler, bert.sizes.width,
                   pretraining || builder.is("BertModel"));
  if (pretraining || builder.is("ForNextSentencePrediction")) {
    StreamBuilder head(bert.config, "", bert.sizes.width);
    EncoderBuilder::dense(head, "cls.seq_relationship", 2);
    builder.finish("next_sentence", "pooler", std::move(head));
    builder.output(pretraining ? "seq_relationship_logits" : "logits",
                   "cls.seq_relationship");
  }
  if (builder.is("ForSequenceClassification"))
    builder.classifier("pooler", "classifier", bert.sizes.width);
  if (builder.is("ForTokenClassification"))
    builder.classifier("encoder", "classifier", bert.sizes.width);
  if (builder.is("ForQuestionAnswering"))
    builder.questionAnswering(bert.sizes.width);
  return builder.take();
}

std::optional<Model> importRoberta(ImportContext &context) {
  Bert bert(context, "roberta", "roberta.", base);
  std::vector<int64_t> pads = bert.config.ids("pad_token_id");
  bert.encoder(50265, bert.sizes.width, pads.empty() ? 1 : pads.front());
  return bert.robertaHeads();
}

/// Jina embeddings 3 in transformers' own class. Its adapters for tasks are
/// folders of PEFT beside it.
std::optional<Model> importJinaV3(ImportContext &context) {
  Bert bert(context, "jina_embeddings_v3", "roberta.",
            {1024, 16, 24, 4096, 1e-5, Activation::Gelu}, "rotary");
  bert.rotaryEncoder();
  // What the adapters were trained with, and what is said before texts.
  context.config.ignore({"lora_adaptations", "lora_alpha", "lora_dropout_p",
                         "lora_rank", "matryoshka_dimensions",
                         "task_instructions", "truncate_dim"});
  return bert.robertaHeads();
}

std::optional<Model> importMPNet(ImportContext &context) {
  Bert bert(context, "mpnet", "mpnet.", base);
  bert.mpnetEncoder();
  return bert.robertaHeads();
}

std::optional<Model> importElectra(ImportContext &context) {
  Bert bert(context, "electra", "electra.",
            {256, 4, 12, 1024, 1e-12, Activation::Gelu});
  EncoderBuilder &builder = bert.builder;
  int64_t tables = bert.config.integer("embedding_size", 128);
  bert.encoder(30522, tables, std::nullopt);
  if (bert.config.hasErrors())
    return std::nullopt;
  if (builder.is("ForPreTraining")) {
    StreamBuilder head(bert.config, "", bert.sizes.width);
    EncoderBuilder::dense(head, "discriminator_predictions.dense",
                          bert.sizes.width, bert.sizes.activation);
    EncoderBuilder::dense(head, "discriminator_predictions.dense_prediction", 1)
        .squeeze = true;
    builder.finish("discriminator", "encoder", std::move(head));
    builder.model.streams.back().layers.back().width = 0;
    builder.output("logits", "discriminator_predictions.dense_prediction");
  } else if (builder.is("ForMaskedLM")) {
    bert.maskedHead("generator_predictions.dense",
                    "generator_predictions.LayerNorm", "generator_lm_head",
                    "generator_lm_head.bias", tables, Activation::Gelu);
  } else if (builder.is("ForSequenceClassification")) {
    bert.sequenceHead(Activation::Gelu);
  } else if (builder.is("ForTokenClassification")) {
    builder.classifier("encoder", "classifier", bert.sizes.width);
  } else if (builder.is("ForQuestionAnswering")) {
    builder.questionAnswering(bert.sizes.width);
  }
  return builder.take();
}

} // namespace attune::hf
