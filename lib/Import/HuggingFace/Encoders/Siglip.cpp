//===- Siglip.cpp - config.json of SigLIP, 1 and 2, and its towers --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Towers.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// Images of different sizes, each cut into at most so many patches, row by
/// row, of which it has as many rows and columns as its shape says.
static void patchInputs(EncoderBuilder &builder, int64_t numbers,
                        const std::string &batch,
                        const SourceLocation &location) {
  TensorSpec input;
  input.location = location;
  input.name = "pixel_values";
  input.shape = {{-1, batch}, {-1, "patches"}, {numbers, ""}};
  builder.model.inputs.push_back(input);
  input.name = "pixel_attention_mask";
  input.dtype = DType::Bool;
  input.shape.pop_back();
  input.fallback = "ones";
  builder.model.inputs.push_back(input);
  input.name = "spatial_shapes";
  input.dtype = DType::I64;
  input.shape[1] = {2, ""};
  input.fallback = "";
  builder.model.inputs.push_back(input);
}

SiglipVision addSiglipVision(EncoderBuilder &builder, Config &config,
                             const std::string &prefix,
                             const std::string &batch, SiglipForm form,
                             std::optional<int64_t> layer, ImageSize size) {
  bool sized = form == SiglipForm::Sized;
  bool flexible = form == SiglipForm::Flexible || sized;
  bool idefics = form == SiglipForm::Idefics3;
  EncoderSizes usual = {768, 12, 12, 3072, 1e-6, Activation::GeluTanh};
  if (idefics) {
    usual.width = 1152;
    usual.heads = 16;
  }
  EncoderSizes sizes = readEncoderSizes(config, usual, "gelu_pytorch_tanh");
  const char *extent = flexible ? "num_patches" : "image_size";
  int64_t image = config.integer(extent, flexible ? 256 : 224);
  int64_t patch = config.integer("patch_size", idefics ? 32 : 16, 4096);
  int64_t channels = config.integer("num_channels", 3, 4096);
  SiglipVision tower;
  tower.hasHead = !idefics && config.flag("vision_use_head", true);
  ignoreTowerKeys(config);
  int64_t blocks = readBlockCount(config, sizes.layers, layer.value_or(-1));
  auto side = static_cast<int64_t>(std::sqrt(double(image)));
  if (flexible && side * side != image)
    config.error(extent, "expected the places of a square image");
  if (!flexible && patch > image)
    config.error("patch_size", "is larger than the image");
  if (config.hasErrors())
    return tower;
  Positions positions;
  positions.count = PositionCount::Tokens;
  int64_t numbers = flexible && !sized ? channels * patch * patch : channels;
  StreamBuilder stream(config, prefix, numbers);
  if (flexible) {
    positions.length = image;
    positions.grid = {side, side};
    positions.interpolate = Interpolation::Antialias;
  }
  if (sized) {
    builder.imageInput(channels, size.height, size.width, batch,
                       config.locate(extent));
    // The file's matrix reads a patch pixel by pixel.
    Conv conv = patches(channels, sizes.width, patch);
    conv.placesFirst = true;
    stream.add("embeddings.patch_embedding", "patch_size", conv, sizes.width);
  } else if (flexible) {
    patchInputs(builder, numbers, batch, config.locate(extent));
    Linear linear;
    linear.out = sizes.width;
    linear.bias = true;
    stream.add("embeddings.patch_embedding", "patch_size", linear, sizes.width);
    positions.shapesInput = "spatial_shapes";
  } else {
    builder.imageInput(channels, image, image, batch, config.locate(extent));
    stream.add("embeddings.patch_embedding", "patch_size",
               patches(channels, sizes.width, patch), sizes.width);
    side = image / patch;
    positions.length = side * side;
  }
  stream.add("embeddings.position_embedding", extent, positions);
  tower.block = encoderBlock(sizes, Placement::Pre);
  if (blocks)
    stream.blocks("encoder.layers.{i}", "num_hidden_layers", blocks,
                  tower.block, towerTensors());
  if (!layer)
    stream.norm("post_layernorm", tower.block.norm);
  builder.finish("vision", "pixel_values", std::move(stream));
  tower.read = {sizes.width, sizes.layers, blocks};
  tower.side = side;
  return tower;
}

namespace {
/// Both towers, of which a model may have one. Unlike those of CLIP neither has
/// a causal mask or class tokens.
class Siglip {
public:
  explicit Siglip(ImportContext &context)
      : builder(context, "siglip"), context(context),
        form(std::string_view(context.modelClass->name).substr(0, 7) ==
                     "Siglip2"
                 ? SiglipForm::Flexible
                 : SiglipForm::Fixed) {}

  /// The streams "text" (normed) and "text_pooled": the last token, projected.
  /// Gives the width of the latter.
  int64_t text(Config &config, const std::string &batch) {
    EncoderSizes sizes = readEncoderSizes(
        config, {768, 12, 12, 3072, 1e-6, Activation::GeluTanh},
        "gelu_pytorch_tanh");
    int64_t vocab = config.integer("vocab_size", 32000);
    int64_t length = config.integer("max_position_embeddings", 64);
    int64_t space = config.integer("projection_size", sizes.width);
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
    stream.blocks("encoder.layers.{i}", "num_hidden_layers", sizes.layers,
                  block, towerTensors());
    stream.norm("final_layer_norm", block.norm);
    builder.finish("text", "input_ids", std::move(stream));
    StreamBuilder pooled(config, prefix, sizes.width);
    Pool pool;
    pool.kind = PoolKind::Last;
    pooled.add("pooled", "max_position_embeddings", pool).pooled = true;
    EncoderBuilder::dense(pooled, "head", space);
    builder.finish("text_pooled", "text", std::move(pooled));
    return space;
  }

  /// The streams "vision" (normed) and "vision_pooled": what one learned query
  /// reads of all patches. Gives the width.
  int64_t vision(Config &config, const std::string &batch,
                 bool classifies = false) {
    SiglipVision tower =
        addSiglipVision(builder, config, "vision_model.", batch, form);
    hasHead = tower.hasHead;
    if (tower.read.width && hasHead && !classifies)
      pool(config, tower.block);
    return tower.read.width;
  }

  /// Attention of the learned query, then a feed-forward layer.
  void pool(Config &config, const Block &block) {
    int64_t width = block.attention->heads * block.attention->headDim;
    std::string prefix = "vision_model.head.";
    StreamBuilder stream(config, prefix, width);
    stream.add("query", "hidden_size", ClassTokens{1}).weights["weight"] = {
        {prefix + "probe", false, 0, -1}};
    stream.add("probe", "hidden_size", Slice{0, 1});
    Attention attention = *block.attention;
    attention.source = "vision";
    attention.sourceWidth = width;
    Layer &reads = stream.add("attention", "num_attention_heads", attention);
    int64_t row = 0;
    for (const char *role : {"q", "k", "v"}) {
      for (auto [end, tensor] : {std::pair(".weight", "in_proj_weight"),
                                 std::pair(".bias", "in_proj_bias")})
        reads.weights[std::string(role) + end] = {
            {prefix + "attention." + tensor, false, row, row + width}};
      row += width;
    }
    for (const char *end : {"weight", "bias"})
      reads.weights[std::string("o.") + end] = {
          {prefix + "attention.out_proj." + end, false, 0, -1}};
    Block feeds = block;
    feeds.attention.reset();
    Layer &fed = stream.add("mlp", "intermediate_size", feeds);
    nameTensors(fed, prefix,
                {{"norm2", "layernorm"},
                 {"ffn.up", "mlp.fc1"},
                 {"ffn.down", "mlp.fc2"}});
    EncoderBuilder::pool(stream, "pooled");
    builder.finish("vision_pooled", "vision", std::move(stream));
  }

  /// The stream's vector with a length of 1.
  void normed(const char *name, const char *from, int64_t width) {
    StreamBuilder stream(context.config, "", width);
    stream.add(std::string(name) + ".normed", "", L2Norm{}).pooled = true;
    builder.finish(name, from, std::move(stream));
    builder.output(name, std::string(name) + ".normed");
  }

  void similarity(const char *name, const char *from, const char *to,
                  int64_t width) {
    StreamBuilder stream(context.config, "", width);
    Similarity similarity;
    similarity.source = to;
    similarity.temperature = similarity.bias = true;
    Layer &layer = stream.add(name, "text_config", similarity, 0);
    layer.weights["scale"] = {{"logit_scale", false, 0, -1}};
    layer.weights["bias"] = {{"logit_bias", false, 0, -1}};
    builder.finish(std::string("by_") + from, from, std::move(stream));
    builder.output(name, name);
  }

  EncoderBuilder builder;
  bool hasHead = true; ///< of the image tower

private:
  ImportContext &context;
  const SiglipForm form; ///< SigLIP 2's is flexible
};
} // namespace

std::optional<Model> importSiglip(ImportContext &context) {
  Config &config = context.config;
  Siglip siglip(context);
  EncoderBuilder &builder = siglip.builder;
  if (builder.is("SiglipModel") || builder.is("Siglip2Model")) {
    config.ignore({"initializer_factor"});
    const Value *textKeys = findTower(config, "text_config");
    const Value *visionKeys = findTower(config, "vision_config");
    if (!textKeys || !visionKeys) {
      config.error("", "a SigLIP needs text_config and vision_config");
      return std::nullopt;
    }
    Config textConfig = config.inner(*textKeys, "text_config");
    int64_t space = siglip.text(textConfig, "text_batch");
    textConfig.finish("the text tower of SigLIP");
    Config visionConfig = config.inner(*visionKeys, "vision_config");
    int64_t width = siglip.vision(visionConfig, "image_batch");
    visionConfig.finish("the vision tower of SigLIP");
    if (!config.hasErrors() && !siglip.hasHead)
      visionConfig.error("vision_use_head", "expected true; there is nothing "
                                            "to compare with texts");
    if (!config.hasErrors() && space != width)
      textConfig.error("projection_size",
                       "expected the width of the vision tower, " +
                           std::to_string(width));
    if (config.hasErrors())
      return std::nullopt;
    siglip.normed("text_embeds", "text_pooled", space);
    siglip.normed("image_embeds", "vision_pooled", space);
    siglip.similarity("logits_per_image", "image_embeds", "text_embeds", space);
    siglip.similarity("logits_per_text", "text_embeds", "image_embeds", space);
    return builder.take();
  }
  if (builder.is("ForImageClassification")) {
    config.ignore({"initializer_factor"});
    const Value *keys = findTower(config, "vision_config");
    if (!keys) {
      config.error("vision_config", "expected the keys of the image tower");
      return std::nullopt;
    }
    findTower(config, "text_config"); // of the tower that is left out
    Config visionConfig = config.inner(*keys, "vision_config");
    // The learned query is passed over.
    int64_t width = siglip.vision(visionConfig, "batch", /*classifies=*/true);
    visionConfig.finish("the vision tower of SigLIP");
    if (!config.hasErrors())
      classifyPatches(builder, "vision", width, /*before=*/0);
    return builder.take();
  }
  bool isText = builder.is("TextModel");
  if (isText)
    siglip.text(config, "batch");
  else
    siglip.vision(config, "batch");
  if (config.hasErrors())
    return std::nullopt;
  builder.output("last_hidden_state", isText ? "text_model.final_layer_norm"
                                             : "vision_model.post_layernorm");
  if (isText || siglip.hasHead)
    builder.output("pooler_output",
                   isText ? "text_model.head" : "vision_model.head.pooled");
  return builder.take();
}

} // namespace attune::hf
