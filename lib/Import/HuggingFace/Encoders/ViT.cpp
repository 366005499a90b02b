//===- ViT.cpp - config.json of ViT, DeiT, ViT-MAE and I-JEPA -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Towers.h"

namespace attune::hf {

using namespace spec;

/// What differs between ViT and its relatives.
namespace {
struct VisionForm {
  const char *name;    ///< of the model within one that has a head
  int64_t classes = 1; ///< tokens before the patches
  bool pools = true;   ///< a pooler behind the first of them
};
} // namespace

/// Patches, class tokens, positions, blocks and a norm. DeiT has a second class
/// token, for what a teacher says.
static std::optional<Model> import(ImportContext &context,
                                   const VisionForm &form) {
  Config &config = context.config;
  const char *name = form.name;
  EncoderBuilder builder(context, name);
  EncoderSizes sizes = readEncoderSizes(
      config, {768, 12, 12, 3072, 1e-12, Activation::Gelu}, "gelu");
  auto [height, width] = readSize(config, "image_size", 224);
  auto [patchHeight, patchWidth] = readSize(config, "patch_size", 16);
  int64_t channels = config.integer("num_channels", 3);
  bool bias = config.flag("qkv_bias", true);
  int64_t pooled = sizes.width;
  Activation poolerActivation = Activation::Tanh;
  if (form.pools) {
    pooled = config.integer("pooler_output_size", sizes.width);
    poolerActivation =
        config.activation("pooler_act", "tanh").value_or(Activation::Tanh);
  }
  // Dropout acts in training only.
  config.ignore({"hidden_dropout_prob", "attention_probs_dropout_prob"});
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
  int64_t classes = form.classes;
  if (classes) {
    Layer &tokens = stream.add("embeddings.class_tokens", "hidden_size",
                               ClassTokens{classes});
    std::vector<WeightSource> &sources = tokens.weights["weight"];
    sources = {{prefix + "embeddings.cls_token", false, 0, -1}};
    if (classes == 2)
      sources.push_back(
          {prefix + "embeddings.distillation_token", false, 0, -1});
  }
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
  } else if (builder.is("ForImageClassification") && !classes) {
    classifyPatches(builder, "encoder", sizes.width, /*before=*/0);
  } else if (builder.is("ForImageClassification")) {
    head("classifier", 0, "classifier", "logits");
  } else {
    builder.output("last_hidden_state", prefix + "layernorm");
    bool hasPooler = !context.checkpoint ||
                     context.checkpoint->find(prefix + "pooler.dense.weight");
    if (form.pools && hasPooler) {
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
  // It belongs to a head that paints images.
  context.config.ignore({"encoder_stride"});
  return import(context, {"vit"});
}

std::optional<Model> importDeiT(ImportContext &context) {
  context.config.ignore({"encoder_stride"});
  return import(context, {"deit", /*classes=*/2});
}

/// All patches in their order, as the class sees them with a mask_ratio of 0.
std::optional<Model> importViTMAE(ImportContext &context) {
  context.config.ignore({"decoder_hidden_size", "decoder_intermediate_size",
                         "decoder_num_attention_heads",
                         "decoder_num_hidden_layers", "mask_ratio",
                         "norm_pix_loss"});
  return import(context, {"vit", /*classes=*/1, /*pools=*/false});
}

std::optional<Model> importIJepa(ImportContext &context) {
  // The published class has no pooler.
  context.config.ignore({"pooler_act", "pooler_output_size"});
  return import(context, {"ijepa", /*classes=*/0, /*pools=*/false});
}

} // namespace attune::hf
