//===- ViT.cpp - config.json of ViT and DeiT ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

namespace attune::hf {

using namespace spec;

/// A size of images or patches: a number, or height and width.
static std::pair<int64_t, int64_t> readSize(Config &config, const char *key,
                                            int64_t fallback) {
  const Value *value = config.peek(key);
  if (!value || !value->isArray()) {
    int64_t size = config.integer(key, fallback);
    return {size, size};
  }
  config.get(key);
  auto number = [&](size_t i) {
    const Value &element = value->elements[i];
    return element.kind == Value::Kind::Integer ? element.integer : 0;
  };
  if (value->elements.size() != 2 || number(0) < 1 || number(1) < 1 ||
      number(0) > maxSize || number(1) > maxSize) {
    config.error(key, "expected a size, or height and width");
    return {1, 1};
  }
  return {number(0), number(1)};
}

/// Patches, class tokens, positions, blocks and a norm. DeiT has a second class
/// token, for what a teacher says.
static std::optional<Model> import(ImportContext &context, const char *name,
                                   bool distilled) {
  Config &config = context.config;
  EncoderBuilder builder(context, name);
  EncoderSizes sizes = readEncoderSizes(
      config, {768, 12, 12, 3072, 1e-12, Activation::Gelu}, "gelu");
  auto [height, width] = readSize(config, "image_size", 224);
  auto [patchHeight, patchWidth] = readSize(config, "patch_size", 16);
  int64_t channels = config.integer("num_channels", 3);
  bool bias = config.flag("qkv_bias", true);
  int64_t pooled = config.integer("pooler_output_size", sizes.width);
  Activation poolerActivation =
      config.activation("pooler_act", "tanh").value_or(Activation::Tanh);
  // encoder_stride belongs to a head that paints images; dropout acts in
  // training only.
  config.ignore({"encoder_stride", "hidden_dropout_prob",
                 "attention_probs_dropout_prob"});
  if (patchHeight > height || patchWidth > width)
    config.error("patch_size", "is larger than the image");
  if (config.hasErrors())
    return std::nullopt;

  std::string prefix = context.prefixFor(
      std::string(name) + ".", "embeddings.patch_embeddings.projection.weight");
  builder.imageInput(channels, height, width, "batch",
                     config.locate("image_size"));
  StreamBuilder stream(config, prefix, channels);
  Conv conv;
  conv.out = sizes.width;
  conv.channels = channels;
  conv.kernel = conv.stride = {patchHeight, patchWidth};
  conv.padding = {0, 0};
  conv.channelsFirst = true;
  stream.add("embeddings.patch_embeddings.projection", "patch_size", conv,
             sizes.width);
  int64_t classes = distilled ? 2 : 1;
  Layer &tokens = stream.add("embeddings.class_tokens", "hidden_size",
                             ClassTokens{classes});
  std::vector<WeightSource> &sources = tokens.weights["weight"];
  sources = {{prefix + "embeddings.cls_token", false, 0, -1}};
  if (distilled)
    sources.push_back({prefix + "embeddings.distillation_token", false, 0, -1});
  Positions positions;
  positions.count = PositionCount::Tokens;
  positions.length = (height / patchHeight) * (width / patchWidth) + classes;
  std::string positionTable = prefix + "embeddings.position_embeddings";
  stream.add("embeddings.position_embeddings", "image_size", positions)
      .weights["weight"] = {{positionTable, false, 0, -1}};
  Block block = encoderBlock(sizes, Placement::Pre);
  block.attention->qkvBias = bias;
  stream.blocks("encoder.layer.{i}", "num_hidden_layers", sizes.layers, block,
                {{"norm1", "layernorm_before"},
                 {"attention.q", "attention.attention.query"},
                 {"attention.k", "attention.attention.key"},
                 {"attention.v", "attention.attention.value"},
                 {"attention.o", "attention.output.dense"},
                 {"norm2", "layernorm_after"},
                 {"ffn.up", "intermediate.dense"},
                 {"ffn.down", "output.dense"}});
  builder.finish("blocks", "pixel_values", std::move(stream));
  // A stream of its own: the last of the hidden states is without this norm.
  StreamBuilder normed(config, prefix, sizes.width);
  normed.norm("layernorm", block.norm);
  builder.finish("encoder", "blocks", std::move(normed));

  auto head = [&](const char *streamName, int64_t token, const char *layer,
                  const char *output) {
    StreamBuilder head(config, "", sizes.width);
    EncoderBuilder::pool(head, std::string(streamName) + ".token", token);
    EncoderBuilder::dense(head, layer, builder.config.labels());
    builder.finish(streamName, "encoder", std::move(head));
    if (output)
      builder.output(output, layer);
  };
  if (builder.is("WithTeacher")) {
    head("cls", 0, "cls_classifier", "cls_logits");
    head("distillation", 1, "distillation_classifier", "distillation_logits");
    StreamBuilder mean(config, "", builder.config.labels());
    Add add{"cls", 0.5};
    mean.add("mean", "architectures", add).pooled = true;
    builder.finish("mean", "distillation", std::move(mean));
    builder.output("logits", "mean");
  } else if (builder.is("ForImageClassification")) {
    head("classifier", 0, "classifier", "logits");
  } else {
    builder.output("last_hidden_state", prefix + "layernorm");
    bool hasPooler = !context.checkpoint ||
                     context.checkpoint->find(prefix + "pooler.dense.weight");
    if (hasPooler) {
      StreamBuilder pooler(config, prefix, sizes.width);
      EncoderBuilder::pool(pooler, "pooler.first");
      EncoderBuilder::dense(pooler, "pooler.dense", pooled, poolerActivation);
      builder.finish("pooler", "encoder", std::move(pooler));
      builder.output("pooler_output", prefix + "pooler.dense");
    }
  }
  return builder.take();
}

std::optional<Model> importViT(ImportContext &context) {
  return import(context, "vit", /*distilled=*/false);
}

std::optional<Model> importDeiT(ImportContext &context) {
  return import(context, "deit", /*distilled=*/true);
}

} // namespace attune::hf
