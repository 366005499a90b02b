//===- Towers.h - Shared by models of texts and images ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERS_TOWERS_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERS_TOWERS_H

#include "EncoderBuilder.h"

#include "attune/Import/HuggingFace.h"

namespace attune::hf {

/// What images are resized to where a tower takes any size, unless --image-size
/// says otherwise: a multiple of the squares of all published ones.
inline constexpr int64_t usualEdge = 448;

/// A block's tensors in a tower of CLIP or SigLIP.
const TensorNames &towerTensors();

/// Keys of a tower that change nothing. A tower inside of a whole model has
/// every key of a configuration, those that the caller reads for the whole
/// included.
void ignoreTowerKeys(Config &config);

/// The keys of the tower at `key`. Null if there are none.
const spec::Value *findTower(Config &config, const char *key);

/// A size of images or patches: a number, or height and width.
std::pair<int64_t, int64_t> readSize(Config &config, const char *key,
                                     int64_t fallback);

/// Patches of images [batch, channels, size, size], as tokens of this width.
spec::Conv patches(int64_t channels, int64_t width, int64_t patch);

/// How many of a tower's blocks are before the features of this layer: -1 is
/// behind the last. Reports if there is no such layer.
int64_t readBlockCount(Config &config, int64_t layers, int64_t layer);

struct BlocksRead {
  int64_t width = 0;              ///< 0 after an error
  int64_t layers = 0, blocks = 0; ///< that it has, and that are read
};
/// The stream "vision" of CLIP's tower of images, not normed, behind that many
/// of its blocks; -1 is behind the last.
BlocksRead addClipVision(EncoderBuilder &builder, Config &config,
                         const std::string &prefix, const std::string &batch,
                         int64_t layer = -1);
/// The same of Pixtral's tower, of images of one size, which consist of squares
/// of `merge` patches.
BlocksRead addPixtralVision(EncoderBuilder &builder, Config &config,
                            const std::string &prefix, const std::string &batch,
                            std::optional<ImageSize> size, int64_t merge,
                            int64_t layer);

/// Forms of SigLIP's tower of images: for one size, for patches of images of
/// different sizes (NaFlex), the same for images of a size that the caller
/// says, and that of Idefics 3, which is the first one but for what it has
/// where its keys say nothing.
enum class SiglipForm : uint8_t { Fixed, Flexible, Sized, Idefics3 };

struct SiglipVision {
  spec::Block block; ///< one of its blocks
  BlocksRead read;
  int64_t side = 0;    ///< patches on each side of an image
  bool hasHead = true; ///< a pooling, which is not added
};
/// The stream "vision" of SigLIP's tower of images, normed unless it ends
/// behind the blocks of `layer`.
SiglipVision addSiglipVision(EncoderBuilder &builder, Config &config,
                             const std::string &prefix,
                             const std::string &batch,
                             SiglipForm form = SiglipForm::Fixed,
                             std::optional<int64_t> layer = std::nullopt,
                             ImageSize size = {});

/// Scores of the mean of the tokens of `from` behind the first `before`.
void classifyPatches(EncoderBuilder &builder, const char *from, int64_t width,
                     int64_t before);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_ENCODERS_TOWERS_H
