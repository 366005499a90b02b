//===- Clip.cpp - config.json of CLIP and its two towers ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Towers.h"

namespace attune::hf {

using namespace spec;

BlocksRead addClipVision(EncoderBuilder &builder, Config &config,
                         const std::string &prefix, const std::string &batch,
                         int64_t layer) {
  EncoderSizes sizes = readEncoderSizes(
      config, {768, 12, 12, 3072, 1e-5, Activation::QuickGelu}, "quick_gelu");
  int64_t image = config.integer("image_size", 224);
  int64_t patch = config.integer("patch_size", 32);
  int64_t channels = config.integer("num_channels", 3);
  ignoreTowerKeys(config);
  if (patch > image)
    config.error("patch_size", "is larger than the image");
  int64_t blocks = readBlockCount(config, sizes.layers, layer);
  if (config.hasErrors())
    return {};
  builder.imageInput(channels, image, image, batch,
                     config.locate("image_size"));
  StreamBuilder stream(config, prefix, channels);
  Conv conv = patches(channels, sizes.width, patch);
  conv.bias = false;
  stream.add("embeddings.patch_embedding", "patch_size", conv, sizes.width);
  stream.add("embeddings.class_tokens", "hidden_size", ClassTokens{1})
      .weights["weight"] = {
      {prefix + "embeddings.class_embedding", false, 0, -1}};
  Positions positions;
  positions.count = PositionCount::Tokens;
  positions.length = (image / patch) * (image / patch) + 1;
  stream.add("embeddings.position_embedding", "image_size", positions);
  Block block = encoderBlock(sizes, Placement::Pre);
  stream.norm("pre_layrnorm", block.norm);
  if (blocks)
    stream.blocks("encoder.layers.{i}", "num_hidden_layers", blocks, block,
                  towerTensors());
  builder.finish("vision", "pixel_values", std::move(stream));
  return {sizes.width, sizes.layers, blocks};
}

namespace {
/// Both towers, of which a model may have one.
class Clip {
public:
  explicit Clip(ImportContext &context)
      : builder(context, "clip"), context(context) {}

  /// The streams "text" (normed) and "text_pooled"; gives the width.
  int64_t text(Config &config, const std::string &batch) {
    EncoderSizes sizes = readEncoderSizes(
        config, {512, 8, 12, 2048, 1e-5, Activation::QuickGelu}, "quick_gelu");
    int64_t vocab = config.integer("vocab_size", 49408);
    int64_t length = config.integer("max_position_embeddings", 77);
    std::vector<int64_t> ends = config.ids("eos_token_id");
    ignoreTowerKeys(config);
    if (config.hasErrors())
      return 0;
    std::string prefix = "text_model.";
    builder.idsInput("input_ids", batch);
    builder.model.context = length;
    StreamBuilder stream(config, prefix);
    stream.embedding("embeddings.token_embedding", vocab, sizes.width);
    stream.learnedPositions("embeddings.position_embedding", length, 0,
                            "max_position_embeddings");
    Block block = encoderBlock(sizes, Placement::Pre);
    block.attention->causal = Causal::BottomRight;
    stream.blocks("encoder.layers.{i}", "num_hidden_layers", sizes.layers,
                  block, towerTensors());
    builder.finish("text_blocks", "input_ids", std::move(stream));
    StreamBuilder normed(config, prefix, sizes.width);
    normed.norm("final_layer_norm", block.norm);
    builder.finish("text", "text_blocks", std::move(normed));
    // Checkpoints whose configuration says 2 were trained with the largest id
    // at the end.
    StreamBuilder pooled(config, prefix, sizes.width);
    Pool pool;
    pool.id = ends.empty() ? 49407 : ends.front();
    pool.kind = pool.id == 2 ? PoolKind::LargestId : PoolKind::Id;
    pooled.add("pooled", "eos_token_id", pool).pooled = true;
    builder.finish("text_pooled", "text", std::move(pooled));
    return sizes.width;
  }

  /// The streams "vision" (not normed) and "vision_pooled"; gives the width.
  int64_t vision(Config &config, const std::string &batch) {
    std::string prefix = "vision_model.";
    int64_t width = addClipVision(builder, config, prefix, batch).width;
    if (config.hasErrors())
      return 0;
    StreamBuilder pooled(config, prefix, width);
    EncoderBuilder::pool(pooled, "pooled");
    Norm norm;
    norm.eps = config.real("layer_norm_eps", 1e-5);
    pooled.add("post_layernorm", "", norm).pooled = true;
    builder.finish("vision_pooled", "vision", std::move(pooled));
    return width;
  }

  /// The stream's vector in the space that both towers share.
  void project(const char *name, const char *from, const char *tensor,
               int64_t width, int64_t out, bool normed) {
    Config &config = context.config;
    StreamBuilder stream(config, "", width);
    Linear linear;
    linear.out = out;
    stream.add(tensor, "projection_dim", linear, out).pooled = true;
    if (normed)
      stream.add(std::string(name) + ".normed", "", L2Norm{}).pooled = true;
    builder.finish(name, from, std::move(stream));
    builder.output(name, normed ? std::string(name) + ".normed" : tensor);
  }

  void similarity(const char *name, const char *from, const char *to,
                  int64_t width) {
    StreamBuilder stream(context.config, "", width);
    stream.add(name, "logit_scale_init_value", Similarity{to, true}, 0)
        .weights["scale"] = {{"logit_scale", false, 0, -1}};
    builder.finish(std::string("by_") + from, from, std::move(stream));
    builder.output(name, name);
  }

  EncoderBuilder builder;

private:
  ImportContext &context;
};
} // namespace

std::optional<Model> importClip(ImportContext &context) {
  Config &config = context.config;
  Clip clip(context);
  EncoderBuilder &builder = clip.builder;
  bool projects = builder.is("WithProjection");
  if (builder.is("CLIPModel")) {
    int64_t space = config.integer("projection_dim", 512);
    config.ignore({"logit_scale_init_value", "initializer_factor"});
    const Value *textKeys = findTower(config, "text_config");
    const Value *visionKeys = findTower(config, "vision_config");
    if (!textKeys || !visionKeys) {
      config.error("", "a CLIP needs text_config and vision_config");
      return std::nullopt;
    }
    Config textConfig = config.inner(*textKeys, "text_config");
    int64_t textWidth = clip.text(textConfig, "text_batch");
    textConfig.finish("the text tower of CLIP");
    Config visionConfig = config.inner(*visionKeys, "vision_config");
    int64_t visionWidth = clip.vision(visionConfig, "image_batch");
    visionConfig.finish("the vision tower of CLIP");
    if (config.hasErrors())
      return std::nullopt;
    clip.project("text_embeds", "text_pooled", "text_projection", textWidth,
                 space, true);
    clip.project("image_embeds", "vision_pooled", "visual_projection",
                 visionWidth, space, true);
    clip.similarity("logits_per_image", "image_embeds", "text_embeds", space);
    clip.similarity("logits_per_text", "text_embeds", "image_embeds", space);
    return builder.take();
  }
  if (builder.is("ForImageClassification")) {
    config.ignore(
        {"logit_scale_init_value", "initializer_factor", "projection_dim"});
    const Value *keys = findTower(config, "vision_config");
    findTower(config, "text_config"); // of the tower that is left out
    if (!keys) {
      config.error("vision_config", "expected the keys of the image tower");
      return std::nullopt;
    }
    Config visionConfig = config.inner(*keys, "vision_config");
    int64_t width = clip.vision(visionConfig, "batch");
    visionConfig.finish("the vision tower of CLIP");
    if (!config.hasErrors())
      classifyPatches(builder, "vision", width, /*before=*/1);
    return builder.take();
  }
  int64_t space = config.integer("projection_dim", 512);
  bool isText =
      builder.is("CLIPTextModel") || builder.is("CLIPTextModelWithProjection");
  int64_t width =
      isText ? clip.text(config, "batch") : clip.vision(config, "batch");
  if (config.hasErrors())
    return std::nullopt;
  if (isText)
    builder.output("last_hidden_state", "text_model.final_layer_norm");
  else
    builder.output("last_hidden_state", "vision_model.encoder.layers.{i}");
  if (!projects)
    builder.output("pooler_output", isText ? "text_model.pooled"
                                           : "vision_model.post_layernorm");
  else if (isText)
    clip.project("text_embeds", "text_pooled", "text_projection", width, space,
                 false);
  else
    clip.project("image_embeds", "vision_pooled", "visual_projection", width,
                 space, false);
  return builder.take();
}

} // namespace attune::hf
