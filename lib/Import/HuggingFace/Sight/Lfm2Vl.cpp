//===- Lfm2Vl.cpp - config.json of LFM2-VL ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SigLIP 2's tower of images of any shape, here of one that --image-size says,
// squares of its patches, and a projector of two linear layers.
//
//===----------------------------------------------------------------------===//

#include "../Encoders/Towers.h"
#include "../Parts.h"

namespace attune::hf {

using namespace spec;

/// What pictures are resized to unless --image-size says otherwise: as many
/// tokens as the processor makes at most.
static constexpr int64_t usualEdgeOfLfm2 = 512;

bool readLfm2Vl(const SightSource &source, TextPart &part, Model &sight) {
  std::string vision = source.findPrefix(
      {"model.vision_tower.vision_model.", "vision_tower.vision_model."},
      "embeddings.patch_embedding.weight");
  std::string projector = source.findPrefix(
      {"model.multi_modal_projector.", "multi_modal_projector."},
      "linear_1.weight");
  const Value *type = source.tower()->find("model_type");
  if (vision.empty() || projector.empty() || !type ||
      type->text != "siglip2_vision_model")
    return true;

  Config config(source.root, "", source.reporter, source.keys);
  // The processor's keys, how it cuts pictures into tiles among them.
  config.ignore({"architectures",
                 "text_config",
                 "vision_config",
                 "model_type",
                 "bos_token_id",
                 "eos_token_id",
                 "pad_token_id",
                 "tie_word_embeddings",
                 "initializer_range",
                 "do_image_splitting",
                 "encoder_patch_size",
                 "max_image_tokens",
                 "max_num_patches",
                 "max_pixels_tolerance",
                 "max_tiles",
                 "min_image_tokens",
                 "min_tiles",
                 "tile_size",
                 "use_image_special_tokens",
                 "use_thumbnail"});
  std::vector<int64_t> ids =
      config.ids(config.oneOf({"image_token_id", "image_token_index"}));
  int64_t factor = config.integer("downsample_factor", 2, 64);
  bool norms = config.flag("projector_use_layernorm", true);
  std::optional<Activation> activation =
      config.activation("projector_hidden_act", "gelu");
  Linear linear;
  linear.out = config.integer("projector_hidden_size", 2560);
  linear.bias = config.flag("projector_bias", true);
  const char *layerKey = "vision_feature_layer";
  if (const Value *layer = config.get(layerKey);
      layer && (!layer->isNumber() || layer->real != -1))
    config.error(layerKey, "expected -1: features of the last layer are read");
  const Value *width = part.object.find("hidden_size");
  int64_t out = width && width->isNumber() ? int64_t(width->real) : 2560;
  if (config.hasErrors())
    return false;

  EncoderBuilder builder(source.context, "");
  Config visionConfig = config.inner(*source.tower(), "vision_config");
  ImageSize size =
      part.imageSize.value_or(ImageSize{usualEdgeOfLfm2, usualEdgeOfLfm2});
  int64_t square = visionConfig.integer("patch_size", 16, 4096) * factor;
  if (size.height % square != 0 || size.width % square != 0)
    visionConfig.error(
        "patch_size",
        "images of " + std::to_string(size.height) + "x" +
            std::to_string(size.width) + " pixels are not made of squares of " +
            std::to_string(square) + "; say another --image-size");
  if (config.hasErrors())
    return false;
  SiglipVision tower =
      addSiglipVision(builder, visionConfig, vision, "images",
                      SiglipForm::Sized, /*layer=*/std::nullopt, size);
  visionConfig.finish("the tower of images of " + part.whole);
  if (config.hasErrors())
    return false;
  StreamBuilder images(config, projector, tower.read.width);
  int64_t joined = tower.read.width * factor * factor;
  images.add("squares", "downsample_factor", Merge{factor}, joined);
  if (norms) {
    Norm norm;
    norm.kind = NormKind::LayerNorm;
    norm.eps = 1e-5;
    images.norm("layer_norm", norm);
  }
  linear.activation = *activation;
  images.add("linear_1", "projector_hidden_size", linear, linear.out);
  linear.out = out;
  linear.activation = Activation::Identity;
  images.add("linear_2", "projector_hidden_size", linear, out);
  config.finish(part.whole);
  if (config.hasErrors())
    return false;
  builder.finish("images", "vision", std::move(images));
  Insert insert;
  insert.source = "images";
  insert.id = ids.empty() ? 396 : ids.front();
  StreamBuilder text(config, "", out);
  text.add("images.inserted", "image_token_id", insert);
  builder.finish("main", "input_ids", std::move(text));
  sight = std::move(builder.model);
  part.sees = part.sized = true;
  if (tower.hasHead)
    part.unread.push_back(vision + "head.");
  return true;
}

} // namespace attune::hf
