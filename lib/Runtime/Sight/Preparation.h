//===- Preparation.h - What a model sees of a picture -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SIGHT_PREPARATION_H
#define ATTUNE_LIB_RUNTIME_SIGHT_PREPARATION_H

#include "Image.h"
#include "Tiles.h"

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Picture.h"

namespace attune::runtime {

/// How pictures become a model's input, as a preprocessor_config.json says it
/// for Hugging Face's processors of CLIP, SigLIP, Gemma 3, ViT, BiT (DINOv2's),
/// Qwen2-VL, Pixtral, Idefics 3, SmolVLM, GOT-OCR 2 (InternVL's) and
/// LLaVA-NeXT.
class Preparation {
public:
  /// False, with a reason, if `config` is of another processor or asks for what
  /// is not done here.
  bool read(const JsonValue &config, std::string &problem);

  /// What a model sees of an image; false, with a reason, if it is so thin that
  /// it would become very long, on the way or in the end.
  bool prepare(Image image, Picture &picture, std::string &problem) const;

  /// The processor leaves the size to the picture, within limits; here one size
  /// serves all.
  bool takesAnySize() const { return anySize; }
  void resizeTo(int64_t height, int64_t width) {
    fixedHeight = height;
    fixedWidth = width;
  }

  /// The size of what is made of every picture; 0 if it depends on the picture.
  int64_t height() const { return crops ? cropHeight : fixedHeight; }
  int64_t width() const { return crops ? cropWidth : fixedWidth; }

private:
  bool readSizes(const JsonValue &config, std::string &problem);
  bool readNumbers(const JsonValue &config, std::string &problem);
  bool readTiles(const JsonValue &config, std::string &problem);
  bool readList(const JsonValue &config, std::string &problem);
  bool cut(Image image, Picture &picture, std::string &problem) const;

  bool resizes = true, crops = false, rescales = true, normalizes = true;
  bool anySize = false;
  int64_t shortest = 0; ///< edge after resizing; 0: both are fixed
  int64_t fixedHeight = 0, fixedWidth = 0, cropHeight = 0, cropWidth = 0;
  Tiling tiling = Tiling::None; ///< into tiles of the fixed size
  bool splits = true;           ///< BySize: into more than one
  int64_t longest = 0;          ///< edge of a picture in tiles; 0: its own
  int64_t leastTiles = 1, mostTiles = 1;
  std::vector<PictureSize> sizes; ///< that a picture in tiles may have
  Filter filter = Filter::Bicubic;
  double factor = 1.0 / 255;
  double mean[3] = {}, deviation[3] = {};
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SIGHT_PREPARATION_H
