//===- XGLM.cpp - config.json of XGLM --------------------------*- C++ -*-===//
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

/// BART's decoder without an encoder: norms before the sublayers, positions
/// computed as tensor2tensor does.
std::optional<Model> importXGLM(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("d_model", 1024);
  int64_t inner = config.integer("ffn_dim", 4096);
  int64_t layers = config.layers("num_layers", 24);
  int64_t heads = config.integer("attention_heads", 16);
  int64_t vocab = config.integer("vocab_size", 256008);
  int64_t length = config.integer("max_position_embeddings", 2048);
  std::optional<Activation> activation =
      config.activation("activation_function", "gelu");
  bool scaled = config.flag("scale_embedding", true);
  bool tied = config.flag("tie_word_embeddings", true);
  config.mustBeFalse("add_cross_attention", "attention to an encoder is not "
                                            "supported");
  // These act in training only.
  config.ignore({"activation_dropout", "attention_dropout", "dropout",
                 "init_std", "layerdrop"});
  config.mustShare("attention_heads", heads, "d_model", width);
  if (width % 2 || width < 4)
    config.error("d_model", "positions are sines and cosines; expected an even "
                            "number from 4 on");
  if (config.hasErrors())
    return std::nullopt;
  Block body;
  body.norm.location = config.locate("d_model");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  attention.location = config.locate("attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("ffn_dim");

  Model model;
  model.name = "xglm";
  model.context = length;
  StreamBuilder stream(config,
                       context.prefixFor("model.", "embed_tokens.weight"));
  stream.embedding("embed_tokens", vocab, width,
                   scaled ? std::sqrt(double(width)) : 1);
  Positions positions;
  positions.kind = PositionKind::Sinusoidal;
  positions.layout = SinusoidLayout::Tensor2Tensor;
  positions.length = length + 2;
  positions.offset = 2;
  stream.add("embed_positions", "max_position_embeddings", positions);
  stream.blocks("layers.{i}", "num_layers", layers, body,
                {{"norm1", "self_attn_layer_norm"},
                 {"attention.q", "self_attn.q_proj"},
                 {"attention.k", "self_attn.k_proj"},
                 {"attention.v", "self_attn.v_proj"},
                 {"attention.o", "self_attn.out_proj"},
                 {"norm2", "final_layer_norm"},
                 {"ffn.up", "fc1"},
                 {"ffn.down", "fc2"}});
  stream.norm("layer_norm", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embed_tokens" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
