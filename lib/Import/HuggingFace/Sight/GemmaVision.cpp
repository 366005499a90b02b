//===- GemmaVision.cpp - Towers of images before Gemma --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Gemma 3 and PaliGemma: SigLIP's tower without its pooling, a projector, and
// vectors whose tokens see each other in both directions, or with all of the
// prompt.
//
//===----------------------------------------------------------------------===//

#include "../Encoders/Towers.h"
#include "../Parts.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// Means of squares of patches, a norm of Gemma's kind, and a matrix that the
/// file holds as it multiplies rows.
static void addGemma3Projector(StreamBuilder &images, Config &config,
                               const SiglipVision &tower, int64_t out,
                               const std::string &prefix) {
  const char *key = "mm_tokens_per_image";
  int64_t tokens = config.integer(key, 256);
  auto side = static_cast<int64_t>(std::sqrt(double(tokens)));
  if (side * side != tokens || tower.side % side != 0) {
    config.error(key, "expected the number of equal squares of the tower's " +
                          std::to_string(tower.side) + " x " +
                          std::to_string(tower.side) + " patches");
    return;
  }
  if (tower.side > side)
    images.add("squares", key, Merge{tower.side / side, /*mean=*/true});
  Norm norm = tower.block.norm;
  norm.kind = NormKind::RMSNorm;
  norm.offset = 1;
  norm.bias = false;
  images.norm("mm_soft_emb_norm", norm);
  Linear linear;
  linear.out = out;
  images.add("mm_input_projection", key, linear, out).weights["weight"] = {
      {prefix + "mm_input_projection_weight", /*transposed=*/true, 0, -1}};
}

bool readGemmaVision(const SightSource &source, TextPart &part, Model &sight) {
  bool third = source.root.find("model_type")->text == "gemma3";
  const Value *towerType = source.tower()->find("model_type");
  if (towerType && towerType->text != "siglip_vision_model")
    return true;
  std::string vision = source.findPrefix(
      {"vision_tower.vision_model.", "model.vision_tower.vision_model.",
       "vision_tower.", "model.vision_tower."},
      "embeddings.patch_embedding.weight");
  std::string projector = source.findPrefix(
      {"multi_modal_projector.", "model.multi_modal_projector."},
      third ? "mm_input_projection_weight" : "linear.weight");
  if (vision.empty() || projector.empty())
    return true;

  Config config(source.root, "", source.reporter, source.keys);
  config.ignore({"architectures", "text_config", "vision_config", "model_type",
                 "bos_token_id", "eos_token_id", "pad_token_id",
                 "tie_word_embeddings", "initializer_range"});
  if (third)
    config.ignore(
        {"boi_token_index", "eoi_token_index", "boi_token_id", "eoi_token_id"});
  else
    config.ignore({"ignore_index", "hidden_size", "vocab_size", "_vocab_size",
                   "projection_dim"});
  std::string_view key = config.oneOf({"image_token_id", "image_token_index"});
  std::vector<int64_t> ids = config.ids(key);
  int64_t usual = third ? 262144 : 256000;
  int64_t id = ids.empty() ? usual : ids.front();
  const Value *width = part.object.find("hidden_size");
  int64_t usualWidth = third ? 2304 : part.type == "'gemma2'" ? 2304 : 3072;
  int64_t out = width && width->isNumber() ? int64_t(width->real) : usualWidth;
  if (config.hasErrors())
    return false;

  EncoderBuilder builder(source.context, "");
  Config visionConfig = config.inner(*source.tower(), "vision_config");
  visionConfig.ignore(
      {"vocab_size", "num_image_tokens", "projector_hidden_act"});
  SiglipVision tower = addSiglipVision(builder, visionConfig, vision, "images");
  visionConfig.finish("the tower of images of " + part.whole);
  if (config.hasErrors() || !tower.read.width)
    return false;
  StreamBuilder images(config, projector, tower.read.width);
  if (third)
    addGemma3Projector(images, config, tower, out, projector);
  else
    EncoderBuilder::dense(images, "linear", out);
  config.finish(part.whole);
  if (config.hasErrors())
    return false;
  builder.finish("images", "vision", std::move(images));
  // PaliGemma's class divides these by the factor of embeddings, by which
  // Gemma's multiplies them again.
  Insert insert;
  insert.source = "images";
  insert.id = id;
  insert.bidirectional = third ? Bidirectional::Image : Bidirectional::Prompt;
  StreamBuilder text(config, "", out);
  text.add("images.inserted", "image_token_index", insert);
  builder.finish("main", "input_ids", std::move(text));
  sight = std::move(builder.model);
  part.sees = true;
  if (tower.hasHead)
    part.unread.push_back(vision + "head.");
  return true;
}

} // namespace attune::hf
