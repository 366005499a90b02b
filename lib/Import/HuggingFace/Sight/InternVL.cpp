//===- InternVL.cpp - InternVL in transformers' form ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tower whose sublayers' results are scaled channel by channel, squares of
// places with their channels side by side, and a projector of two linear layers
// behind a norm. The tower sees tiles of pictures, which all have its size.
//
//===----------------------------------------------------------------------===//

#include "../Encoders/Towers.h"
#include "../Parts.h"

namespace attune::hf {

using namespace spec;

namespace {
/// What the tower gives.
struct InternVision {
  int64_t width = 0; ///< 0 after an error
  int64_t side = 0;  ///< patches on each side of an image
};
} // namespace

/// The stream "vision": a class token, then the patches.
static InternVision addInternVision(EncoderBuilder &builder, Config &config,
                                    const std::string &prefix) {
  EncoderSizes sizes = readEncoderSizes(
      config, {1024, 16, 24, 4096, 1e-6, Activation::Gelu}, "gelu");
  auto [height, length] = readSize(config, "image_size", 448);
  auto [patch, patchLength] = readSize(config, "patch_size", 14);
  int64_t channels = config.integer("num_channels", 3, 4096);
  bool bias = config.flag("attention_bias", false);
  bool norms = config.flag("use_qk_norm", false);
  bool pools = config.flag("use_mean_pooling", true);
  bool positioned = config.flag("use_absolute_position_embeddings", true);
  std::string kind = config.text("norm_type", "layer_norm");
  // The class multiplies by what the file holds.
  config.ignore({"layer_scale_init_value", "use_mask_token",
                 "hidden_dropout_prob", "projection_dropout"});
  ignoreTowerKeys(config);
  if (kind != "layer_norm" && kind != "rms_norm")
    config.error("norm_type",
                 "expected \"layer_norm\" or \"rms_norm\", found " +
                     quote(kind));
  if (height != length)
    config.error("image_size", "expected square images, whose patches make up "
                               "squares");
  if (patch != patchLength || patch > height)
    config.error("patch_size", "expected square patches that are no larger "
                               "than the image");
  if (config.hasErrors())
    return {};
  int64_t side = height / patch;
  builder.imageInput(channels, height, length, "images",
                     config.locate("image_size"));
  StreamBuilder stream(config, prefix, channels);
  stream.add("embeddings.patch_embeddings.projection", "patch_size",
             patches(channels, sizes.width, patch), sizes.width);
  stream.add("embeddings.class_token", "hidden_size", ClassTokens{1})
      .weights["weight"] = {{prefix + "embeddings.cls_token", false, 0, -1}};
  if (positioned) {
    Positions positions;
    positions.count = PositionCount::Tokens;
    positions.length = side * side + 1;
    stream.add("embeddings.position_embeddings", "image_size", positions)
        .weights["weight"] = {
        {prefix + "embeddings.position_embeddings", false, 0, -1}};
  }
  Block block = encoderBlock(sizes, Placement::Pre);
  Norm last = block.norm;
  if (kind == "rms_norm") {
    block.norm.kind = NormKind::RMSNorm;
    block.norm.bias = false;
  }
  block.attention->qkvBias = bias;
  if (norms) {
    Norm &norm = block.attention->qkNorm.emplace();
    norm.kind = NormKind::RMSNorm;
    norm.eps = 1e-6;
    norm.bias = false;
    block.attention->qkNormScope = NormScope::Projection;
  }
  block.layerScale = true;
  TensorNames tensors = {{"norm1", "layernorm_before"},
                         {"attention.q", "attention.q_proj"},
                         {"attention.k", "attention.k_proj"},
                         {"attention.v", "attention.v_proj"},
                         {"attention.o", "attention.projection_layer"},
                         {"layer_scale1", "lambda_1"},
                         {"norm2", "layernorm_after"},
                         {"ffn.up", "mlp.fc1"},
                         {"ffn.down", "mlp.fc2"},
                         {"layer_scale2", "lambda_2"}};
  if (norms) {
    tensors.push_back({"attention.q_norm", "attention.q_norm"});
    tensors.push_back({"attention.k_norm", "attention.k_norm"});
  }
  stream.blocks("encoder.layer.{i}", "num_hidden_layers", sizes.layers, block,
                tensors);
  if (!pools)
    stream.norm("layernorm", last);
  builder.finish("vision", "pixel_values", std::move(stream));
  return {sizes.width, side};
}

/// Reports features of another layer than the last, or with the class token:
/// the class makes no squares of these.
static void checkFeatures(Config &config) {
  const char *layerKey = "vision_feature_layer";
  if (const Value *layer = config.get(layerKey);
      layer && (!layer->isNumber() || layer->real != -1))
    config.error(layerKey, "expected -1: features of the last layer are read");
  const char *strategyKey = "vision_feature_select_strategy";
  std::string strategy = config.text(strategyKey, "default");
  if (strategy != "default")
    config.error(strategyKey, "expected \"default\": the class token is left "
                              "out, found " +
                                  quote(strategy));
}

bool readInternVL(const SightSource &source, TextPart &part, Model &sight) {
  std::string vision =
      source.findPrefix({"model.vision_tower.", "vision_tower."},
                        "embeddings.patch_embeddings.projection.weight");
  std::string projector = source.findPrefix(
      {"model.multi_modal_projector.", "multi_modal_projector."},
      "linear_1.weight");
  if (vision.empty() || projector.empty())
    return true;

  Config config(source.root, "", source.reporter, source.keys);
  config.ignore({"architectures", "text_config", "vision_config", "model_type",
                 "bos_token_id", "eos_token_id", "pad_token_id",
                 "tie_word_embeddings", "initializer_range",
                 "image_seq_length"});
  std::vector<int64_t> ids = config.ids("image_token_id");
  int64_t id = ids.empty() ? 151667 : ids.front();
  const char *ratioKey = "downsample_ratio";
  double ratio = config.real(ratioKey, 0.5);
  auto factor = ratio >= 1.0 / 4096 ? static_cast<int64_t>(1 / ratio) : 0;
  std::optional<Activation> activation =
      config.activation("projector_hidden_act", "gelu");
  checkFeatures(config);
  const Value *width = part.object.find("hidden_size");
  int64_t out = width && width->isNumber() ? int64_t(width->real) : 4096;
  if (config.hasErrors())
    return false;

  EncoderBuilder builder(source.context, "");
  Config visionConfig = config.inner(*source.tower(), "vision_config");
  InternVision tower = addInternVision(builder, visionConfig, vision);
  visionConfig.finish("the tower of images of " + part.whole);
  if (config.hasErrors() || !tower.width)
    return false;
  if (factor < 1 || double(factor) * ratio != 1 || tower.side % factor != 0) {
    config.error(ratioKey, "expected 1 / n for squares of n x n of the "
                           "tower's " +
                               std::to_string(tower.side) + " x " +
                               std::to_string(tower.side) + " patches");
    return false;
  }
  StreamBuilder images(config, projector, tower.width);
  images.add("patches", "vision_feature_select_strategy", Slice{1, 0});
  int64_t square = tower.width * factor * factor;
  images.add("squares", ratioKey, Merge{factor}, square);
  Norm norm;
  norm.kind = NormKind::LayerNorm;
  norm.eps = 1e-5;
  images.norm("layer_norm", norm);
  EncoderBuilder::dense(images, "linear_1", out, *activation);
  EncoderBuilder::dense(images, "linear_2", out);
  config.finish(part.whole);
  if (config.hasErrors())
    return false;
  builder.finish("images", "vision", std::move(images));
  Insert insert;
  insert.source = "images";
  insert.id = id;
  StreamBuilder text(config, "", out);
  text.add("images.inserted", "image_token_id", insert);
  builder.finish("main", "input_ids", std::move(text));
  sight = std::move(builder.model);
  part.sees = true;
  part.unread.push_back(vision + "embeddings.mask_token");
  return true;
}

} // namespace attune::hf
