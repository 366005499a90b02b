//===- Idefics3.cpp - Idefics 3 and SmolVLM -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// SigLIP's tower without its pooling, squares of places with their channels
// side by side, and a matrix. The tower sees tiles of pictures, which all have
// its size.
//
//===----------------------------------------------------------------------===//

#include "../Encoders/Towers.h"
#include "../Parts.h"

namespace attune::hf {

using namespace spec;

bool readIdefics3(const SightSource &source, TextPart &part, Model &sight) {
  std::string vision =
      source.findPrefix({"model.vision_model.", "vision_model."},
                        "embeddings.patch_embedding.weight");
  std::string connector = source.findPrefix({"model.connector.", "connector."},
                                            "modality_projection.proj.weight");
  if (vision.empty() || connector.empty())
    return true;

  Config config(source.root, "", source.reporter, source.keys);
  config.ignore({"architectures", "text_config", "vision_config", "model_type",
                 "bos_token_id", "eos_token_id", "pad_token_id",
                 "tie_word_embeddings", "initializer_range", "vocab_size",
                 "image_seq_len", "max_frames", "use_export_friendly"});
  std::vector<int64_t> ids = config.ids("image_token_id");
  int64_t id = ids.empty() ? 128257 : ids.front();
  const char *factorKey = "scale_factor";
  int64_t factor = config.integer(factorKey, 2, 4096);
  const Value *width = part.object.find("hidden_size");
  int64_t out = width && width->isNumber() ? int64_t(width->real) : 4096;
  if (config.hasErrors())
    return false;

  EncoderBuilder builder(source.context, "");
  Config visionConfig = config.inner(*source.tower(), "vision_config");
  visionConfig.ignore({"max_image_size", "size", "use_base_siglip",
                       "use_export_friendly", "vocab_size"});
  SiglipVision tower = addSiglipVision(builder, visionConfig, vision, "images",
                                       SiglipForm::Idefics3);
  visionConfig.finish("the tower of images of " + part.whole);
  if (config.hasErrors() || !tower.read.width)
    return false;
  if (tower.side % factor != 0) {
    config.error(factorKey, "expected squares that make up the tower's " +
                                std::to_string(tower.side) + " x " +
                                std::to_string(tower.side) + " patches");
    return false;
  }
  StreamBuilder images(config, connector, tower.read.width);
  images.add("squares", factorKey, Merge{factor},
             tower.read.width * factor * factor);
  Linear linear;
  linear.out = out;
  images.add("modality_projection.proj", factorKey, linear, out);
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
  return true;
}

} // namespace attune::hf
