//===- ModernBert.cpp - config.json of ModernBERT ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Decoders/LlamaFamily.h"
#include "EncoderBuilder.h"

namespace attune::hf {

using namespace spec;

namespace {
struct ModernBert {
  ModernBert(ImportContext &context)
      : context(context), config(context.config),
        builder(context, "modernbert") {}

  bool read();
  void encoder();
  void heads();

  ImportContext &context;
  Config &config;
  EncoderBuilder builder;
  std::string prefix;
  int64_t width = 0, layers = 0, vocab = 0;
  Block global, local;
  std::vector<std::string> types;
  bool tied = true, headBias = false, decoderBias = true, mean = false;
  Activation headActivation = Activation::Gelu;
};
} // namespace

bool ModernBert::read() {
  EncoderSizes sizes;
  sizes.width = width = config.integer("hidden_size", 768);
  sizes.heads = config.integer("num_attention_heads", 12);
  sizes.layers = layers = config.layers("num_hidden_layers", 22);
  sizes.inner = config.integer("intermediate_size", 1152);
  sizes.eps = config.real("norm_eps", 1e-5);
  sizes.activation =
      config.activation("hidden_activation", "gelu").value_or(Activation::Gelu);
  config.mustShare("num_attention_heads", sizes.heads, "hidden_size", width);
  vocab = config.integer("vocab_size", 50368);
  int64_t length = config.integer("max_position_embeddings", 8192);
  bool bias = config.flag("attention_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  bool normBias = config.flag("norm_bias", false);
  int64_t every = config.integer("global_attn_every_n_layers", 3);
  int64_t span = config.integer("local_attention", 128);
  tied = config.flag("tie_word_embeddings", true);
  headBias = config.flag("classifier_bias", false);
  decoderBias = config.flag("decoder_bias", true);
  headActivation = config.activation("classifier_activation", "gelu")
                       .value_or(Activation::Gelu);
  std::string pooling = config.text("classifier_pooling", "cls");
  mean = pooling == "mean";
  if (!mean && pooling != "cls")
    config.error("classifier_pooling", "expected \"cls\" or \"mean\"");
  for (int64_t i = 0; i < layers; ++i)
    types.push_back(i % every ? "sliding_attention" : "full_attention");
  std::vector<std::string> given = readLayerTypes(
      config, layers, {"full_attention", "sliding_attention"}, "ModernBERT");
  if (config.hasErrors())
    return false;
  if (!given.empty())
    types = given;

  global = encoderBlock(sizes, Placement::Pre);
  global.norm.bias = normBias;
  global.norm.location = config.locate("norm_eps");
  global.ffn->gated = true;
  global.ffn->bias = ffnBias;
  Attention &attention = *global.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.sourceWidth = width;
  attention.location = config.locate("num_attention_heads");
  RopeDefaults rope;
  rope.theta = 160000;
  rope.thetaKey = "global_rope_theta";
  std::optional<RopeSettings> far =
      readRope(config, attention.headDim, length, rope);
  RopeDefaults nearby;
  nearby.kind = "sliding_attention";
  nearby.theta = config.real("local_rope_theta", 10000);
  std::optional<RopeSettings> near =
      readLocalRope(config, attention.headDim, nearby);
  if (!far || !near || config.hasErrors())
    return false;
  attention.rope = far->rope;
  local = global;
  local.attention->rope = near->rope;
  // A query sees half of the span on either side of itself.
  local.attention->window = span / 2 + 1;
  builder.model.context = far->context;
  return true;
}

/// The first layer has no norm before its attention: the embeddings' norm is
/// that, and what attention adds to.
void ModernBert::encoder() {
  prefix = context.prefixFor("model.", "embeddings.tok_embeddings.weight");
  builder.idsInput("input_ids");
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings.tok_embeddings", vocab, width);
  bool slides = types.front() == "sliding_attention";
  Block first = slides ? local : global, rest = first;
  first.residualOfNorm = true;
  first.ffn.reset();
  rest.attention.reset();
  nameTensors(stream.add("layers.0.attn", "num_hidden_layers", first), prefix,
              {{"norm1", "embeddings.norm"},
               {"attention.qkv", "layers.0.attn.Wqkv", Layout::Blocks},
               {"attention.o", "layers.0.attn.Wo"}});
  nameTensors(stream.add("layers.0.mlp", "num_hidden_layers", rest), prefix,
              {{"norm2", "layers.0.mlp_norm"},
               {"ffn.gate_up", "layers.0.mlp.Wi", Layout::Blocks},
               {"ffn.down", "layers.0.mlp.Wo"}});
  std::vector<size_t> kinds;
  for (size_t i = 1; i < types.size(); ++i)
    kinds.push_back(types[i] == "sliding_attention");
  if (!kinds.empty())
    stream.blocks("layers.{i}", "num_hidden_layers", {global, local}, kinds,
                  {{"norm1", "attn_norm"},
                   {"attention.qkv", "attn.Wqkv", Layout::Blocks},
                   {"attention.o", "attn.Wo"},
                   {"norm2", "mlp_norm"},
                   {"ffn.gate_up", "mlp.Wi", Layout::Blocks},
                   {"ffn.down", "mlp.Wo"}},
                  /*weights=*/{}, /*first=*/1);
  stream.norm("final_norm", global.norm);
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", prefix + "final_norm");
}

/// Dense, activation and norm, then what the class adds to them.
void ModernBert::heads() {
  bool masked = builder.is("ForMaskedLM");
  bool sequence = builder.is("ForSequenceClassification");
  if (!masked && !sequence && !builder.is("ForTokenClassification"))
    return;
  StreamBuilder head(config, "", width);
  if (sequence) {
    Pool pool;
    pool.kind = mean ? PoolKind::Mean : PoolKind::First;
    head.add("head.pool", "classifier_pooling", pool).pooled = true;
  }
  EncoderBuilder::dense(head, "head.dense", width, headActivation).bias =
      headBias;
  head.norm("head.norm", global.norm);
  std::string last = masked ? "decoder" : "classifier";
  Linear &linear =
      EncoderBuilder::dense(head, last, masked ? vocab : config.labels());
  if (masked) {
    linear.bias = decoderBias;
    if (tied)
      linear.tied = prefix + "embeddings.tok_embeddings";
  }
  builder.finish("head", "encoder", std::move(head));
  builder.output("logits", last);
}

std::optional<Model> importModernBert(ImportContext &context) {
  ModernBert bert(context);
  if (!bert.read())
    return std::nullopt;
  bert.encoder();
  bert.heads();
  return bert.builder.take();
}

} // namespace attune::hf
