//===- MPT.cpp - config.json of MPT -----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// The object "attn_config".
static void readAttention(Config &config, Attention &attention) {
  const Value *object = config.get("attn_config");
  if (!object)
    return;
  if (!object->isObject()) {
    config.error("attn_config", std::string("expected an object, found ") +
                                    describe(object->kind));
    return;
  }
  Config members = config.inner(*object, "attn_config");
  if (members.get("softmax_scale"))
    attention.scale = members.real("softmax_scale", 1);
  attention.clip = members.cap("clip_qkv", std::nullopt);
  members.mustBeFalse("qk_ln", "norms of queries and keys are not supported");
  members.mustBeFalse("prefix_lm", "a prefix that sees itself whole is not "
                                   "supported");
  members.mustBeFalse("attn_uses_sequence_id",
                      "attention within marked sequences is not supported");
  members.mustBeTrue("alibi", "MPT without ALiBi is not supported");
  if (members.text("attn_type", "multihead_attention") != "multihead_attention")
    members.error("attn_type", "expected \"multihead_attention\"");
  if (members.real("alibi_bias_max", 8) != 8)
    members.error("alibi_bias_max",
                  "expected 8, the one value that transformers' class of MPT "
                  "computes with");
  // Dropout, and which kernel runs it. The object may carry every key that
  // configurations have.
  members.ignore({"attn_pdrop", "attn_impl", "model_type", "architectures",
                  "dtype", "torch_dtype", "bos_token_id", "eos_token_id",
                  "pad_token_id", "tie_word_embeddings"});
  refuseUnsupportedKeys(members);
  members.finish("MPT's attention");
}

std::optional<Model> importMPT(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("d_model", 2048);
  int64_t heads = config.integer("n_heads", 16);
  int64_t layers = config.layers("n_layers", 24);
  int64_t vocab = config.integer("vocab_size", 50368);
  int64_t length = config.integer("max_seq_len", 2048);
  bool tied = config.flag("tie_word_embeddings", true);
  Block body;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  body.norm.bias = false;
  body.norm.location = config.locate("layer_norm_epsilon");
  Attention &attention = body.attention.emplace();
  attention.scale = 1 / std::sqrt(double(width) / double(heads));
  readAttention(config, attention);
  if (config.get("logit_scale"))
    config.error("logit_scale", "scaled logits of MPT are not supported");
  if (config.text("norm_type", "low_precision_layernorm").find("layernorm") ==
      std::string::npos)
    config.error("norm_type", "expected a kind of layernorm");
  // Hugging Face's MPT has ALiBi and no learned positions, no biases, and FFNs
  // of four times the width, whatever the keys for these say; a checkpoint of
  // another form has other tensors, which is an error. The rest acts in
  // training only.
  config.ignore({"learned_pos_emb", "no_bias", "expansion_ratio",
                 "embedding_fraction", "emb_pdrop", "resid_pdrop",
                 "init_device", "verbose", "init_config", "tokenizer_name"});
  config.mustShare("n_heads", heads, "d_model", width);
  if (config.hasErrors())
    return std::nullopt;

  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.causal = Causal::BottomRight;
  attention.alibi = true;
  attention.location = config.locate("n_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = 4 * width;
  ffn.activation = Activation::Gelu;
  ffn.bias = false;
  ffn.location = config.locate("d_model");

  Model model;
  model.name = "mpt";
  model.context = length;
  StreamBuilder stream(config, context.prefixFor("transformer.", "wte.weight"));
  stream.embedding("wte", vocab, width);
  stream.blocks("blocks.{i}", "n_layers", layers, body,
                {{"norm1", "norm_1"},
                 {"attention.qkv", "attn.Wqkv", Layout::Blocks},
                 {"attention.o", "attn.out_proj"},
                 {"norm2", "norm_2"},
                 {"ffn.up", "ffn.up_proj"},
                 {"ffn.down", "ffn.down_proj"}});
  stream.norm("norm_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "wte" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
