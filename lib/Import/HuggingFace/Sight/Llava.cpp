//===- Llava.cpp - LLaVA, LLaVA-NeXT, Pixtral and Mistral 3 ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A tower of CLIP, SigLIP or Pixtral, of which the features of one layer are
// read, and a projector of two linear layers. That of Mistral 3 norms them and
// makes one vector of each square of patches before. LLaVA-NeXT sees pictures
// in tiles: before each tile's vectors stands the one that ends rows of them,
// which the runtime puts where it belongs.
//
//===----------------------------------------------------------------------===//

#include "../Encoders/Towers.h"
#include "../Parts.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

namespace {
enum class LlavaTower : uint8_t { Clip, Siglip, Pixtral };

/// What the keys beside the tower's and the text model's say.
struct LlavaKeys {
  int64_t id = 0;          ///< of image tokens
  int64_t layer = 0;       ///< whose features are read: -1 is behind the last
  bool dropsFirst = false; ///< of the tower's tokens, which is of a class
  bool lines = false;      ///< a vector ends rows of a picture (LLaVA-NeXT)
  bool merges = false;     ///< squares of patches are one vector (Mistral 3)
  int64_t square = 1;      ///< patches on each side of these
  bool bias = false;
  Activation activation = Activation::Gelu;
  int64_t width = 0; ///< of the text model
};
} // namespace

/// Nothing if it is none of these.
static std::optional<LlavaTower> kindOfTower(const SightSource &source,
                                             bool mistral) {
  const Value *type = source.tower()->find("model_type");
  std::string name = type      ? type->text
                     : mistral ? "pixtral"
                               : "clip_vision_model";
  if (name == "pixtral")
    return LlavaTower::Pixtral;
  if (name == "clip_vision_model" && !mistral)
    return LlavaTower::Clip;
  if (name == "siglip_vision_model" && !mistral)
    return LlavaTower::Siglip;
  return std::nullopt;
}

/// The prefix of the tower's tensors; empty: there are none.
static std::string findTowerTensors(const SightSource &source,
                                    LlavaTower tower) {
  if (tower == LlavaTower::Pixtral)
    return source.findPrefix({"vision_tower.", "model.vision_tower."},
                             "patch_conv.weight");
  return source.findPrefix(
      {"vision_tower.vision_model.", "model.vision_tower.vision_model.",
       "vision_tower.", "model.vision_tower."},
      tower == LlavaTower::Clip ? "embeddings.class_embedding"
                                : "embeddings.patch_embedding.weight");
}

static std::optional<int64_t> readFeatureLayer(Config &config,
                                               int64_t fallback) {
  const char *key = "vision_feature_layer";
  const Value *layer = config.get(key);
  if (!layer)
    return fallback;
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

static std::optional<LlavaKeys> readKeys(Config &config, const TextPart &part,
                                         LlavaTower tower, bool mistral) {
  LlavaKeys keys;
  config.ignore({"architectures", "text_config", "vision_config", "model_type",
                 "ignore_index", "image_seq_length", "pad_token_id",
                 "tie_word_embeddings", "vocab_size", "initializer_range"});
  keys.lines = config.peek("model_type")->text == "llava_next";
  if (keys.lines)
    config.ignore({"image_grid_pinpoints", "use_image_newline_parameter"});
  std::string_view key = config.oneOf({"image_token_id", "image_token_index"});
  std::vector<int64_t> ids = config.ids(key);
  keys.id = !ids.empty() ? ids.front() : mistral ? 10 : 32000;
  const char *strategyKey = "vision_feature_select_strategy";
  if (mistral) {
    config.ignore({strategyKey});
    keys.merges = true;
    keys.square = config.integer("spatial_merge_size", 2, 64);
  } else {
    std::string strategy = config.text(strategyKey, "default");
    keys.dropsFirst = strategy == "default";
    if (!keys.dropsFirst && strategy != "full")
      config.error(strategyKey, "expected \"default\" or \"full\", found " +
                                    quote(strategy));
    else if (keys.dropsFirst && tower == LlavaTower::Pixtral)
      config.error(strategyKey, "expected \"full\": Pixtral's tower has no "
                                "class token that could be left out");
    else if (keys.lines && keys.dropsFirst != (tower == LlavaTower::Clip))
      config.error(strategyKey,
                   std::string("expected ") +
                       (keys.dropsFirst
                            ? "\"full\": SigLIP's tower has no class token"
                            : "\"default\": CLIP's tower has a class token") +
                       ", and the places of a tile are rows");
  }
  keys.bias = config.flag("multimodal_projector_bias", !mistral);
  std::optional<Activation> activation =
      config.activation("projector_hidden_act", "gelu");
  std::optional<int64_t> layer = readFeatureLayer(config, mistral ? -1 : -2);
  const Value *width = part.object.find("hidden_size");
  keys.width = width && width->isNumber() ? int64_t(width->real) : 4096;
  if (config.hasErrors() || !layer)
    return std::nullopt;
  keys.activation = *activation;
  keys.layer = *layer;
  return keys;
}

/// The norm of Mistral 3's projector is that of its text model.
static double epsOf(const TextPart &part) {
  const Value *eps = part.object.find("rms_norm_eps");
  if (eps && eps->isNumber() && eps->real > 0)
    return eps->real;
  return part.type == "'ministral3'" ? 1e-5 : 1e-6;
}

static void addProjector(EncoderBuilder &builder, Config &config,
                         const LlavaKeys &keys, const TextPart &part,
                         const std::string &prefix, const std::string &newline,
                         int64_t width) {
  StreamBuilder images(config, prefix, width);
  if (keys.dropsFirst)
    images.add("patches", "vision_feature_select_strategy", Slice{1, 0});
  if (keys.merges) {
    Norm norm;
    norm.kind = NormKind::RMSNorm;
    norm.eps = epsOf(part);
    norm.bias = false;
    images.norm("norm", norm);
    // Each channel's places are side by side, as those of a convolution are.
    Conv merger;
    merger.out = merger.channels = width;
    merger.kernel = merger.stride = {keys.square, keys.square};
    merger.padding = {0, 0};
    merger.bias = false;
    images.add("patch_merger.merging_layer", "spatial_merge_size", merger,
               width);
  }
  Linear linear;
  linear.out = keys.width;
  linear.bias = keys.bias;
  linear.activation = keys.activation;
  images.add("linear_1", "projector_hidden_act", linear, keys.width);
  linear.activation = Activation::Identity;
  images.add("linear_2", "projector_hidden_act", linear, keys.width);
  if (keys.lines)
    images.add("image_newline", "use_image_newline_parameter", ClassTokens{1})
        .weights["weight"] = {{newline, false, 0, -1}};
  builder.finish("images", "vision", std::move(images));
}

bool readLlava(const SightSource &source, TextPart &part, Model &sight) {
  bool mistral = source.root.find("model_type")->text == "mistral3";
  std::optional<LlavaTower> tower = kindOfTower(source, mistral);
  if (!tower)
    return true;
  std::string vision = findTowerTensors(source, *tower);
  std::string projector = source.findPrefix(
      {"multi_modal_projector.", "model.multi_modal_projector."},
      "linear_1.weight");
  if (vision.empty() || projector.empty())
    return true;

  Config config(source.root, "", source.reporter, source.keys);
  std::optional<LlavaKeys> keys = readKeys(config, part, *tower, mistral);
  if (!keys)
    return false;
  EncoderBuilder builder(source.context, "");
  Config visionConfig = config.inner(*source.tower(), "vision_config");
  visionConfig.ignore({"vocab_size"});
  BlocksRead sees;
  bool hasHead = false;
  switch (*tower) {
  case LlavaTower::Clip:
    sees = addClipVision(builder, visionConfig, vision, "images", keys->layer);
    break;
  case LlavaTower::Siglip: {
    SiglipVision siglip =
        addSiglipVision(builder, visionConfig, vision, "images",
                        SiglipForm::Fixed, keys->layer);
    sees = siglip.read;
    hasHead = siglip.hasHead;
    break;
  }
  case LlavaTower::Pixtral:
    sees = addPixtralVision(builder, visionConfig, vision, "images",
                            part.imageSize, keys->square, keys->layer);
    part.sized = true;
    break;
  }
  visionConfig.finish("the tower of images of " + part.whole);
  if (config.hasErrors())
    return false;
  std::string newline =
      source.findPrefix({"model."}, "image_newline") + "image_newline";
  addProjector(builder, config, *keys, part, projector, newline, sees.width);
  config.finish(part.whole);
  StreamBuilder text(config, "", keys->width);
  text.add("images.inserted", "image_token_index",
           Insert{"images", keys->id, /*grid=*/{}});
  builder.finish("main", "input_ids", std::move(text));
  sight = std::move(builder.model);
  part.sees = true;
  std::string layers = "encoder.layers.";
  if (*tower == LlavaTower::Pixtral)
    layers = "transformer.layers.";
  else
    part.unread.push_back(vision + "post_layernorm.");
  if (hasHead)
    part.unread.push_back(vision + "head.");
  for (int64_t i = sees.blocks; i < sees.layers; ++i)
    part.unread.push_back(vision + layers + std::to_string(i) + ".");
  return !config.hasErrors();
}

} // namespace attune::hf
