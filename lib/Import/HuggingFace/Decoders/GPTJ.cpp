//===- GPTJ.cpp - config.json of GPT-J and CodeGen --------------*- C++ -*-===//
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

/// CodeGen's matrix of queries, keys and values: `parts` of them, each with its
/// share of the queries, of the values and of the keys.
static WeightMap inParts(int64_t width, int64_t parts) {
  WeightMap weights;
  int64_t part = width / parts, begin = 0;
  for (const char *role : {"q", "v", "k"}) {
    WeightSource source{"attn.qkv_proj.weight", /*transposed=*/false, begin,
                        begin + part};
    source.stride = 3 * part;
    source.count = parts;
    weights[std::string("attention.") + role + ".weight"] = {source};
    begin += part;
  }
  return weights;
}

/// In how many parts that matrix is. CodeGen2-1B and -3_7B have eight, and no
/// key says so but the size of a head, which other files leave out.
static int64_t readParts(Config &config, int64_t width, int64_t heads) {
  int64_t parts = 4;
  if (config.peek("head_dim")) {
    int64_t dim = config.integer("head_dim", std::nullopt);
    if (dim * heads != width || (dim != 128 && dim != 256))
      config.error("head_dim",
                   "expected n_embd / n_head, which is 128 or 256 in the files "
                   "of CodeGen2 that have this key");
    parts = 8;
  }
  if (heads % parts) {
    std::string count = std::to_string(parts);
    config.error("n_head", "CodeGen's heads are in " + count +
                               " parts, expected a multiple of " + count +
                               ", found " + std::to_string(heads));
  }
  return parts;
}

/// `codegen`: with that matrix.
static std::optional<Model> importJ(ImportContext &context, const char *name,
                                    bool codegen) {
  Config &config = context.config;
  int64_t width = config.integer("n_embd", 4096);
  int64_t layers = config.layers("n_layer", 28);
  int64_t heads = config.integer("n_head", 16);
  int64_t vocab = config.integer("vocab_size", 50400);
  int64_t length = config.integer("n_positions", 2048);
  int64_t inner = config.integer("n_inner", 4 * width);
  int64_t turned = config.integer("rotary_dim", 64);
  std::optional<Activation> activation =
      config.activation("activation_function", "gelu_new");
  bool tied = config.flag("tie_word_embeddings", false);
  Block body;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  body.norm.location = config.locate("layer_norm_epsilon");
  // Dropout acts in training only; the summary keys belong to other heads;
  // n_ctx repeats n_positions; "rotary" is always on.
  config.ignore({"attn_pdrop", "embd_pdrop", "resid_pdrop", "n_ctx", "rotary",
                 "summary_activation", "summary_first_dropout",
                 "summary_proj_to_labels", "summary_type", "summary_use_proj",
                 "scale_attn_weights"});
  config.mustShare("n_head", heads, "n_embd", width);
  int64_t parts = codegen ? readParts(config, width, heads) : 1;
  if (turned % 2 || turned > width / heads)
    config.error("rotary_dim", "expected an even number of channels up to the "
                               "head's " +
                                   std::to_string(width / heads) + ", found " +
                                   std::to_string(turned));
  if (config.hasErrors())
    return std::nullopt;

  body.placement = Placement::Parallel;
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.scale = 1 / std::sqrt(double(width / heads));
  attention.causal = Causal::BottomRight;
  Rope &rope = attention.rope.emplace();
  rope.interleaved = true;
  rope.channels = turned;
  rope.location = config.locate("rotary_dim");
  attention.location = config.locate("n_head");
  FFN &ffn = body.ffn.emplace();
  ffn.width = inner;
  ffn.activation = *activation;
  ffn.location = config.locate("activation_function");

  Model model;
  model.name = name;
  model.context = length;
  StreamBuilder stream(config, context.prefixFor("transformer.", "wte.weight"));
  stream.embedding("wte", vocab, width);
  // One norm for both sublayers.
  stream.blocks("h.{i}", "n_layer", {body},
                std::vector<size_t>(static_cast<size_t>(layers), 0),
                {{"norm1", "ln_1"},
                 {"norm2", "ln_1"},
                 {"attention.q", "attn.q_proj"},
                 {"attention.k", "attn.k_proj"},
                 {"attention.v", "attn.v_proj"},
                 {"attention.o", "attn.out_proj"},
                 {"ffn.up", "mlp.fc_in"},
                 {"ffn.down", "mlp.fc_out"}},
                codegen ? inParts(width, parts) : WeightMap());
  stream.norm("ln_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "wte" : "").bias = true;
  model.streams.push_back(stream.take());
  return model;
}

std::optional<Model> importGPTJ(ImportContext &context) {
  return importJ(context, "gptj", /*codegen=*/false);
}

std::optional<Model> importCodeGen(ImportContext &context) {
  return importJ(context, "codegen", /*codegen=*/true);
}

} // namespace attune::hf
