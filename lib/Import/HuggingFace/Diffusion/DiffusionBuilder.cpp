//===- DiffusionBuilder.cpp - Streams of transformers of noise ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DiffusionBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// Channels of the sines of a number.
static constexpr int64_t kSines = 256;

DiffusionBuilder::DiffusionBuilder(ImportContext &context, std::string name)
    : config(context.config) {
  model.name = std::move(name);
}

void DiffusionBuilder::input(const std::string &name, std::vector<Dim> shape,
                             const char *key) {
  TensorSpec &input = model.inputs.emplace_back();
  input.name = name;
  input.dtype = DType::F32;
  input.shape = std::move(shape);
  input.location = config.locate(key);
}

void DiffusionBuilder::finish(const std::string &name, const std::string &input,
                              StreamBuilder &&builder) {
  model.streams.push_back(builder.take(name, input));
}

void DiffusionBuilder::twoLayers(StreamBuilder &stream,
                                 const std::string &name) {
  Linear linear;
  linear.out = width;
  linear.bias = true;
  linear.activation = Activation::Silu;
  stream.add(name + ".linear_1", "num_attention_heads", linear, width).pooled =
      true;
  linear.activation = Activation::Identity;
  stream.add(name + ".linear_2", "num_attention_heads", linear, width).pooled =
      true;
}

void DiffusionBuilder::number(const std::string &name, const std::string &from,
                              double scale) {
  input(from, {{-1, "batch"}}, "");
  StreamBuilder stream(config, "time_text_embed.");
  Timestep sines;
  sines.width = kSines;
  sines.scale = scale;
  stream.add(name + "_proj", "", sines, kSines).pooled = true;
  twoLayers(stream, (name == "time" ? "timestep" : name) + "_embedder");
  finish(name, from, std::move(stream));
}

void DiffusionBuilder::condition(int64_t pooled,
                                 const std::vector<std::string> &added) {
  input("pooled_projections", {{-1, "batch"}, {pooled, ""}},
        "pooled_projection_dim");
  StreamBuilder stream(config, "time_text_embed.", pooled);
  twoLayers(stream, "text_embedder");
  for (const std::string &source : added)
    stream.add("with_" + source, "", Add{source}).pooled = true;
  finish("condition", "pooled_projections", std::move(stream));
}

void DiffusionBuilder::text(int64_t channels) {
  input("encoder_hidden_states",
        {{-1, "batch"}, {-1, "text_tokens"}, {channels, ""}},
        "joint_attention_dim");
  StreamBuilder stream(config, "", channels);
  Linear linear;
  linear.out = width;
  linear.bias = true;
  stream.add("context_embedder", "joint_attention_dim", linear, width);
  finish("text", "encoder_hidden_states", std::move(stream));
}

Norm DiffusionBuilder::norm() const {
  Norm norm;
  norm.eps = 1e-6;
  norm.scale = norm.bias = false;
  return norm;
}

Modulation DiffusionBuilder::modulation() const {
  Modulation by;
  by.source = "condition";
  by.sourceWidth = width;
  return by;
}

Attention DiffusionBuilder::attention(bool qkNorm) const {
  Attention attention;
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = headDim;
  attention.scale = 1 / std::sqrt(static_cast<double>(headDim));
  attention.qkvBias = attention.outBias = true;
  attention.location = config.locate("num_attention_heads");
  if (qkNorm) {
    Norm &norm = attention.qkNorm.emplace();
    norm.kind = NormKind::RMSNorm;
    norm.eps = 1e-6;
    norm.bias = false;
  }
  return attention;
}

Block DiffusionBuilder::jointBlock(int64_t part, bool qkNorm) const {
  Block block;
  block.norm = norm();
  block.attention = attention(qkNorm);
  FFN &ffn = block.ffn.emplace();
  ffn.width = 4 * width;
  ffn.activation = Activation::GeluTanh;
  ffn.location = config.locate("num_attention_heads");
  block.modulation = modulation();
  block.joint.emplace().part = part;
  return block;
}

void DiffusionBuilder::end(StreamBuilder &stream, int64_t out) {
  stream.add("norm_out.norm", "", norm());
  Layer &layer = stream.add("norm_out.linear", "", Modulate{modulation()});
  nameScaleFirst(layer, "", "norm_out.linear.", width);
  Linear linear;
  linear.out = out;
  linear.bias = true;
  stream.add("proj_out", "out_channels", linear, out);
}

const TensorNames &jointTensors() {
  static const TensorNames names = {
      {"modulation", "norm1.linear"},
      {"attention.q", "attn.to_q"},
      {"attention.k", "attn.to_k"},
      {"attention.v", "attn.to_v"},
      {"attention.q_norm", "attn.norm_q"},
      {"attention.k_norm", "attn.norm_k"},
      {"attention.o", "attn.to_out.0"},
      {"ffn.up", "ff.net.0.proj"},
      {"ffn.down", "ff.net.2"},
      {"attention2.q", "attn2.to_q"},
      {"attention2.k", "attn2.to_k"},
      {"attention2.v", "attn2.to_v"},
      {"attention2.q_norm", "attn2.norm_q"},
      {"attention2.k_norm", "attn2.norm_k"},
      {"attention2.o", "attn2.to_out.0"},
      {"joint.modulation", "norm1_context.linear"},
      {"joint.attention.q", "attn.add_q_proj"},
      {"joint.attention.k", "attn.add_k_proj"},
      {"joint.attention.v", "attn.add_v_proj"},
      {"joint.attention.q_norm", "attn.norm_added_q"},
      {"joint.attention.k_norm", "attn.norm_added_k"},
      {"joint.attention.o", "attn.to_add_out"},
      {"joint.ffn.up", "ff_context.net.0.proj"},
      {"joint.ffn.down", "ff_context.net.2"},
  };
  return names;
}

void nameScaleFirst(Layer &layer, const std::string &role,
                    const std::string &tensor, int64_t width) {
  for (const char *end : {"weight", "bias"})
    layer.weights[role + end] = {{tensor + end, false, width, 2 * width},
                                 {tensor + end, false, 0, width}};
}

} // namespace attune::hf
