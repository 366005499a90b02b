//===- EncoderBuilder.cpp - Streams of an encoder and its heads -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

EncoderBuilder::EncoderBuilder(ImportContext &context, std::string name)
    : config(context.config), context(context) {
  model.name = std::move(name);
}

bool EncoderBuilder::is(std::string_view kind) const {
  std::string_view name = context.modelClass->name;
  return name.size() >= kind.size() &&
         name.substr(name.size() - kind.size()) == kind;
}

void EncoderBuilder::idsInput(const std::string &name, const std::string &batch,
                              const std::string &fallback) {
  TensorSpec &input = model.inputs.emplace_back();
  input.name = name;
  input.dtype = DType::I64;
  input.shape = {{-1, batch}, {-1, "seq"}};
  input.fallback = fallback;
  input.location = config.locate("vocab_size");
}

void EncoderBuilder::imageInput(int64_t channels, int64_t height, int64_t width,
                                const std::string &batch,
                                const SourceLocation &location) {
  TensorSpec &input = model.inputs.emplace_back();
  input.name = "pixel_values";
  input.dtype = DType::F32;
  input.shape = {{-1, batch}, {channels, ""}, {height, ""}, {width, ""}};
  input.location = location;
}

void EncoderBuilder::finish(const std::string &name, const std::string &input,
                            StreamBuilder &&builder) {
  model.streams.push_back(builder.take(name, input));
}

void EncoderBuilder::output(const std::string &name, const std::string &layer) {
  model.outputs.push_back({name, layer, config.locate("architectures")});
}

Linear &EncoderBuilder::dense(StreamBuilder &stream, const std::string &name,
                              int64_t out, Activation activation) {
  Linear linear;
  linear.out = out;
  linear.bias = true;
  linear.activation = activation;
  return std::get<Linear>(stream.add(name, "hidden_size", linear, out).op);
}

void EncoderBuilder::pool(StreamBuilder &stream, const std::string &name,
                          int64_t index) {
  Pool pool;
  pool.kind = index ? PoolKind::Token : PoolKind::First;
  pool.index = index;
  stream.add(name, "hidden_size", pool).pooled = true;
}

void EncoderBuilder::classifier(const std::string &from,
                                const std::string &name, int64_t width,
                                const char *outputName) {
  StreamBuilder head(config, "", width);
  dense(head, name, config.labels());
  finish("classifier", from, std::move(head));
  output(outputName, name);
}

void EncoderBuilder::questionAnswering(int64_t width, const std::string &name) {
  const char *const ends[] = {"start", "end"};
  for (int64_t i = 0; i < 2; ++i) {
    StreamBuilder head(config, "", width);
    std::string layerName = name + "." + ends[i];
    Linear &linear = dense(head, layerName, 1);
    linear.squeeze = true;
    Layer &layer =
        model.streams.emplace_back(head.take(ends[i], "encoder")).layers.back();
    layer.width = 0;
    for (const char *role : {"weight", "bias"})
      layer.weights[role] = {{name + "." + role, false, i, i + 1}};
    output(std::string(ends[i]) + "_logits", layerName);
  }
}

void EncoderBuilder::pooler(const std::string &name, int64_t width,
                            bool isOutput) {
  // Files of what was trained as another class lack it.
  bool bare = context.modelClass->head == Head::None;
  if (bare && context.checkpoint &&
      !context.checkpoint->find(name + ".weight")) {
    const Value *place = config.peek("architectures");
    config.getReporter().note(
        place ? place->offset : 0, config.child("architectures"),
        "the checkpoint has no '" + name +
            ".weight': the output 'pooler_output' is left out");
    return;
  }
  StreamBuilder stream(config, "", width);
  pool(stream, name + ".first");
  dense(stream, name, width, Activation::Tanh);
  finish("pooler", "encoder", std::move(stream));
  if (isOutput)
    output("pooler_output", name);
}

std::optional<Model> EncoderBuilder::take() {
  if (config.hasErrors())
    return std::nullopt;
  if (!context.checkpoint)
    return std::move(model);
  auto isThere = [&](std::string name) {
    if (size_t at = name.find("{i}"); at != std::string::npos)
      name.replace(at, 3, "0");
    return context.checkpoint->find(name) != nullptr;
  };
  auto rename = [&](std::string &name) {
    for (auto [now, before] :
         {std::pair(".LayerNorm.weight", ".LayerNorm.gamma"),
          std::pair(".LayerNorm.bias", ".LayerNorm.beta")}) {
      std::string_view end = now;
      if (name.size() < end.size() ||
          name.compare(name.size() - end.size(), end.size(), end) != 0)
        continue;
      std::string old = name.substr(0, name.size() - end.size()) + before;
      if (!isThere(name) && isThere(old))
        name = old;
    }
  };
  for (Stream &stream : model.streams)
    for (Layer &layer : stream.layers)
      for (const WeightRole &role : weightRoles(layer)) {
        std::vector<WeightSource> sources = resolveWeight(layer, role.role);
        std::string first = sources.front().tensor;
        rename(sources.front().tensor);
        if (sources.front().tensor != first)
          layer.weights[role.role] = sources;
      }
  return std::move(model);
}

EncoderSizes readEncoderSizes(Config &config, const EncoderSizes &defaults,
                              const char *activation) {
  EncoderSizes sizes;
  sizes.width = config.integer("hidden_size", defaults.width);
  sizes.heads = config.integer("num_attention_heads", defaults.heads);
  sizes.layers = config.layers("num_hidden_layers", defaults.layers);
  sizes.inner = config.integer("intermediate_size", defaults.inner);
  sizes.eps = config.real("layer_norm_eps", defaults.eps);
  sizes.activation =
      config.activation("hidden_act", activation).value_or(Activation::Gelu);
  config.mustShare("num_attention_heads", sizes.heads, "hidden_size",
                   sizes.width);
  return sizes;
}

Block encoderBlock(const EncoderSizes &sizes, Placement placement) {
  Block block;
  block.placement = placement;
  block.norm.eps = sizes.eps;
  Attention &attention = block.attention.emplace();
  attention.heads = attention.kvHeads = sizes.heads;
  attention.headDim = attention.valueDim = sizes.width / sizes.heads;
  attention.qkvBias = attention.outBias = true;
  attention.scale = 1 / std::sqrt(double(attention.headDim));
  FFN &ffn = block.ffn.emplace();
  ffn.width = sizes.inner;
  ffn.activation = sizes.activation;
  return block;
}

} // namespace attune::hf
