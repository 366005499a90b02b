//===- ChatGLM.cpp - config.json of ChatGLM ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// ChatGLM 2 and 3 and GLM-4 as they were first published. Transformers' own
/// classes of GLM have other names for the same.
std::optional<Model> importChatGLM(ImportContext &context) {
  Config &config = context.config;
  LlamaConfig glm;
  glm.name = "chatglm";
  glm.width = config.integer("hidden_size", 4096);
  int64_t inner = config.integer("ffn_hidden_size", 13696);
  glm.layers =
      config.layers(config.oneOf({"num_hidden_layers", "num_layers"}), 28);
  int64_t heads = config.integer("num_attention_heads", 32);
  int64_t headDim = config.integer("kv_channels", 128);
  bool grouped = config.flag("multi_query_attention", false);
  int64_t groups = config.integer("multi_query_group_num", 1);
  int64_t kvHeads = grouped ? groups : heads;
  glm.vocab =
      config.integer(config.oneOf({"padded_vocab_size", "vocab_size"}), 65024);
  glm.context = config.integer("seq_length", 2048);
  glm.norm.kind =
      config.flag("rmsnorm", true) ? NormKind::RMSNorm : NormKind::LayerNorm;
  glm.norm.bias = glm.norm.kind == NormKind::LayerNorm;
  glm.norm.eps = config.real("layernorm_epsilon", 1e-5);
  glm.norm.location = config.locate("layernorm_epsilon");
  bool bias = config.flag("add_bias_linear", false);
  bool qkvBias = config.flag("add_qkv_bias", false) || bias;
  double ratio = config.real("rope_ratio", 1);
  glm.tied = config.flag("tie_word_embeddings", false);
  config.mustBeFalse("apply_residual_connection_post_layernorm",
                     "residuals of norms are not supported");
  config.mustBeTrue("post_layer_norm",
                    "a model without a last norm is not supported");
  config.mustBeTrue("original_rope", "expected true, as published");
  if (config.count("quantization_bit", 0))
    config.error("quantization_bit", "weights that are packed by ChatGLM's own "
                                     "code are not read");
  if (config.count("pre_seq_len", 0))
    config.error("pre_seq_len", "learned prefixes are not supported");
  // How scores are computed, with the same result; prefixes, which are refused
  // above; and what acts in training only.
  config.ignore({"apply_query_key_layer_scaling", "attention_softmax_in_fp32",
                 "fp32_residual_connection", "bias_dropout_fusion",
                 "prefix_projection", "hidden_dropout", "attention_dropout",
                 "classifier_dropout"});
  if (heads % kvHeads)
    config.error("multi_query_group_num",
                 std::to_string(kvHeads) + " does not divide the " +
                     std::to_string(heads) + " query heads");
  if (headDim % 4)
    config.error("kv_channels", "expected a multiple of 4: half of each head "
                                "turns, in pairs");
  if (config.hasErrors())
    return std::nullopt;

  Block &body = glm.block;
  body.norm = glm.norm;
  Attention &attention = body.attention.emplace();
  attention.heads = heads;
  attention.kvHeads = kvHeads;
  attention.headDim = attention.valueDim = headDim;
  attention.scale = 1 / std::sqrt(double(headDim));
  attention.causal = Causal::BottomRight;
  attention.qkvBias = qkvBias;
  attention.outBias = bias;
  Rope &rope = attention.rope.emplace();
  rope.theta = 10000 * ratio;
  rope.channels = headDim / 2;
  rope.interleaved = true;
  rope.location = config.locate("rope_ratio");
  attention.location = config.locate("num_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = Activation::Silu;
  ffn.gated = true;
  ffn.bias = bias;
  ffn.location = config.locate("ffn_hidden_size");
  glm.prefix = "transformer.";
  glm.table = "embedding.word_embeddings";
  glm.blockName = "encoder.layers.{i}";
  glm.lastNorm = "encoder.final_layernorm";
  glm.head = "transformer.output_layer";
  glm.tensors = {
      {"norm1", "input_layernorm"},
      {"attention.qkv", "self_attention.query_key_value", Layout::Blocks},
      {"attention.o", "self_attention.dense"},
      {"norm2", "post_attention_layernorm"},
      {"ffn.gate_up", "mlp.dense_h_to_4h", Layout::Blocks},
      {"ffn.down", "mlp.dense_4h_to_h"}};
  return buildLlama(context, glm);
}

} // namespace attune::hf
