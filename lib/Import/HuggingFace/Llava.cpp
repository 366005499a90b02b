//===- Llava.cpp - The tower of images before a text model ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Encoders/Towers.h"
#include "Parts.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// The layer whose features are read: -1 is behind the last block.
static std::optional<int64_t> readFeatureLayer(Config &config) {
  const char *key = "vision_feature_layer";
  const Value *layer = config.get(key);
  if (!layer)
    return -2;
  if (layer->isArray() && layer->elements.size() == 1)
    layer = &layer->elements.front();
  if (!layer->isNumber() || layer->real != std::floor(layer->real) ||
      std::fabs(layer->real) > double(maxLayers)) {
    config.error(key, "expected the number of one layer, whose features the "
                      "text model reads");
    return std::nullopt;
  }
  return int64_t(layer->real);
}

static void addProjector(EncoderBuilder &builder, Config &config,
                         const std::string &prefix, int64_t width, int64_t out,
                         Activation activation, bool dropsClass) {
  bool bias = config.flag("multimodal_projector_bias", true);
  StreamBuilder images(config, prefix, width);
  if (dropsClass)
    images.add("patches", "vision_feature_select_strategy", Slice{1, 0});
  Linear linear;
  linear.out = out;
  linear.bias = bias;
  linear.activation = activation;
  images.add("linear_1", "projector_hidden_act", linear, out);
  linear.activation = Activation::Identity;
  images.add("linear_2", "projector_hidden_act", linear, out);
  builder.finish("images", "vision", std::move(images));
}

bool readLlava(const SightSource &source, TextPart &part, Model &sight) {
  const Value *tower = source.tower();
  const Value *towerType = tower->find("model_type");
  if (towerType && towerType->text != "clip_vision_model")
    return true;
  std::string vision = source.findPrefix(
      {"vision_tower.vision_model.", "model.vision_tower.vision_model.",
       "vision_tower.", "model.vision_tower."},
      "embeddings.class_embedding");
  std::string projector = source.findPrefix(
      {"multi_modal_projector.", "model.multi_modal_projector."},
      "linear_1.weight");
  if (vision.empty() || projector.empty())
    return true;

  Config config(source.root, "", source.reporter, source.keys);
  config.ignore({"architectures", "text_config", "vision_config", "model_type",
                 "ignore_index", "image_seq_length", "pad_token_id",
                 "tie_word_embeddings", "vocab_size", "initializer_range"});
  std::string_view key = config.oneOf({"image_token_id", "image_token_index"});
  std::vector<int64_t> ids = config.ids(key);
  int64_t id = ids.empty() ? 32000 : ids.front();
  std::string strategy =
      config.text("vision_feature_select_strategy", "default");
  if (strategy != "default" && strategy != "full")
    config.error("vision_feature_select_strategy",
                 "expected \"default\" or \"full\", found " + quote(strategy));
  std::optional<Activation> activation =
      config.activation("projector_hidden_act", "gelu");
  std::optional<int64_t> layer = readFeatureLayer(config);
  const Value *width = part.object.find("hidden_size");
  int64_t out = width && width->isNumber() ? int64_t(width->real) : 4096;
  if (config.hasErrors() || !layer)
    return false;

  EncoderBuilder builder(source.context, "");
  Config visionConfig = config.inner(*tower, "vision_config");
  visionConfig.ignore({"vocab_size"});
  ClipVision sees =
      addClipVision(builder, visionConfig, vision, "images", *layer);
  visionConfig.finish("the tower of images of LLaVA");
  if (config.hasErrors())
    return false;
  addProjector(builder, config, projector, sees.width, out, *activation,
               strategy == "default");
  config.finish("LLaVA");
  StreamBuilder text(config, "", out);
  text.add("images.inserted", "image_token_index",
           Insert{"images", id, /*grid=*/{}});
  builder.finish("main", "input_ids", std::move(text));
  sight = std::move(builder.model);
  part.sees = true;
  part.unread.push_back(vision + "post_layernorm.");
  for (int64_t i = sees.blocks; i < sees.layers; ++i)
    part.unread.push_back(vision + "encoder.layers." + std::to_string(i) + ".");
  return !config.hasErrors();
}

} // namespace attune::hf
