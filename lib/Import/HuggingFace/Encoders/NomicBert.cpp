//===- NomicBert.cpp - config.json of NomicBERT -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

namespace attune::hf {

using namespace spec;

/// What the feed-forward layers compute; false if nobody knows.
static bool readFeedForward(Config &config, FFN &ffn) {
  std::string name = config.text("activation_function", "gelu");
  ffn.gated = name == "swiglu" || name == "geglu" || name == "glu";
  ffn.activation = name == "swiglu" ? Activation::Silu
                   : name == "glu"  ? Activation::Sigmoid
                                    : Activation::Gelu;
  if (ffn.gated || name == "gelu")
    return true;
  // The class takes the exact form for all names that it knows.
  if (name == "gelu_new" || name == "gelu_fast" || name == "gelu_pytorch_tanh")
    return true;
  config.error("activation_function",
               "expected \"gelu\", \"swiglu\", \"geglu\" or \"glu\", found " +
                   quote(name));
  return false;
}

/// A BERT whose positions rotate and whose feed-forward layers have gates. The
/// keys are GPT-2's.
std::optional<Model> importNomicBert(ImportContext &context) {
  Config &config = context.config;
  EncoderBuilder builder(context, "nomic_bert");
  EncoderSizes sizes;
  sizes.width = config.integer("n_embd", 768);
  sizes.heads = config.integer("n_head", 12);
  sizes.layers = config.layers("n_layer", 12);
  sizes.inner = config.integer("n_inner", 4 * sizes.width);
  sizes.eps = config.real("layer_norm_epsilon", 1e-5);
  sizes.activation = Activation::Gelu;
  config.mustShare("n_head", sizes.heads, "n_embd", sizes.width);
  Block block = encoderBlock(sizes, Placement::Post);
  block.ffn->gated = readFeedForward(config, *block.ffn) && block.ffn->gated;
  // The class rounds the width of layers with gates up.
  constexpr int64_t multipleOf = 256;
  if (block.ffn->gated)
    block.ffn->width = (sizes.inner + multipleOf - 1) / multipleOf * multipleOf;
  bool upBias = config.flag("mlp_fc1_bias", true);
  block.ffn->bias = config.flag("mlp_fc2_bias", true);
  if (upBias != block.ffn->bias)
    config.error("mlp_fc1_bias", "expected the value of mlp_fc2_bias: biases "
                                 "of one feed-forward layer alone are not "
                                 "supported");
  Attention &attention = *block.attention;
  attention.qkvBias = attention.outBias = config.flag("qkv_proj_bias", true);
  Rope &rope = attention.rope.emplace();
  rope.theta = config.real("rotary_emb_base", 10000);
  rope.interleaved = config.flag("rotary_emb_interleaved", false);
  rope.channels = attention.headDim;
  rope.location = config.locate("rotary_emb_fraction");
  if (config.real("rotary_emb_fraction", 1) != 1 ||
      !config.peek("rotary_emb_fraction"))
    config.error("rotary_emb_fraction",
                 "expected 1: other positions are not supported");
  else if (attention.headDim % 2)
    config.error("n_head", "rotary embedding turns pairs of channels, but "
                           "heads have " +
                               std::to_string(attention.headDim));
  for (const char *key : {"rotary_emb_scale_base", "rotary_scaling_factor"})
    if (config.get(key))
      config.error(key, "scaled rotary positions are not supported");
  for (const char *key : {"causal", "norm_mlp", "parallel_block", "prenorm",
                          "rotary_head_dim", "use_rms_norm"})
    config.mustBeFalse(key, "a NomicBERT of this form is not supported");
  int64_t multiple = config.integer("pad_vocab_size_multiple", 1);
  int64_t vocab = config.integer("vocab_size", 50257);
  int64_t types = config.integer("type_vocab_size", 2);
  int64_t length = config.integer("max_trained_positions", 2048);
  config.ignore({"n_positions"}); // what the rotation may be stretched to
  if (config.hasErrors())
    return std::nullopt;
  vocab = (vocab + multiple - 1) / multiple * multiple;

  std::string prefix =
      context.prefixFor("bert.", "embeddings.word_embeddings.weight");
  builder.idsInput("input_ids");
  builder.idsInput("token_type_ids", "batch", "zeros");
  builder.model.context = length;
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings.word_embeddings", vocab, sizes.width);
  stream.add("embeddings.token_type_embeddings", "type_vocab_size",
             Embedding{types, sizes.width, 1, "token_type_ids"});
  stream.norm("emb_ln", block.norm);
  stream.blocks("encoder.layers.{i}", "n_layer", sizes.layers, block,
                {{"attention.qkv", "attn.Wqkv", Layout::Blocks},
                 {"attention.o", "attn.out_proj"},
                 {"norm1", "norm1"},
                 {"ffn.up", block.ffn->gated ? "mlp.fc11" : "mlp.fc1"},
                 {"ffn.gate", "mlp.fc12"},
                 {"ffn.down", "mlp.fc2"},
                 {"norm2", "norm2"}});
  builder.finish("encoder", "input_ids", std::move(stream));
  builder.output("last_hidden_state", prefix + "encoder.layers.{i}");
  return builder.take();
}

} // namespace attune::hf
