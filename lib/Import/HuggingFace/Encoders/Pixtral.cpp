//===- Pixtral.cpp - The tower of images of Pixtral and Mistral 3 ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Rope.h"
#include "Towers.h"

#include <algorithm>
#include <cmath>

namespace attune::hf {

using namespace spec;

/// The size of images that are cut into squares of `square` pixels and are
/// `most` pixels high or wide at most.
static ImageSize chooseSize(Config &config, std::optional<ImageSize> asked,
                            int64_t square, int64_t most) {
  int64_t usual =
      std::max<int64_t>(std::min(usualEdge, most) / square, 1) * square;
  ImageSize size = asked.value_or(ImageSize{usual, usual});
  std::string name =
      std::to_string(size.height) + "x" + std::to_string(size.width);
  if (size.height % square != 0 || size.width % square != 0)
    config.error("patch_size",
                 "images of " + name + " pixels are not made of squares of " +
                     std::to_string(square) + "; say another --image-size");
  else if (size.height > most || size.width > most)
    config.error("image_size",
                 "is the largest edge that positions are made for, " +
                     std::to_string(most) + ", but images have " + name +
                     " pixels; say another --image-size");
  return size;
}

/// The frequencies by which heads of `channels` turn.
static void readFrequencies(Config &config, int64_t channels, Rope &rope) {
  std::optional<RopeSettings> found = readRope(config, channels, maxSize);
  if (!found)
    return;
  rope = found->rope;
  rope.places = rope.alternating = true;
  if (rope.scaling.type != "none")
    config.error(config.peek("rope_parameters") ? "rope_parameters"
                                                : "rope_scaling",
                 "places of images are not scaled, but it asks for " +
                     quote(rope.scaling.type));
  if (channels % 4 != 0)
    config.error("num_attention_heads",
                 "leaves heads of " + std::to_string(channels) +
                     " channels, which do not turn by rows and columns");
}

BlocksRead addPixtralVision(EncoderBuilder &builder, Config &config,
                            const std::string &prefix, const std::string &batch,
                            std::optional<ImageSize> asked, int64_t merge,
                            int64_t layer) {
  EncoderSizes sizes = {1024, 16, 24, 4096, 1e-5, Activation::Gelu};
  sizes.width = config.integer("hidden_size", sizes.width);
  sizes.heads = config.integer("num_attention_heads", sizes.heads);
  sizes.layers = config.layers("num_hidden_layers", sizes.layers);
  sizes.inner = config.integer("intermediate_size", sizes.inner);
  sizes.activation =
      config.activation("hidden_act", "gelu").value_or(sizes.activation);
  config.mustShare("num_attention_heads", sizes.heads, "hidden_size",
                   sizes.width);
  int64_t most = config.integer("image_size", 1024);
  int64_t patch = config.integer("patch_size", 16, 4096);
  int64_t channels = config.integer("num_channels", 3, 4096);
  int64_t blocks = readBlockCount(config, sizes.layers, layer);
  ignoreTowerKeys(config);
  if (config.hasErrors())
    return {};
  int64_t headDim = sizes.width / sizes.heads;
  if (config.integer("head_dim", headDim) != headDim)
    config.error("head_dim", "expected hidden_size / num_attention_heads, " +
                                 std::to_string(headDim));
  Block block = encoderBlock(sizes, Placement::Pre);
  readFrequencies(config, headDim, block.attention->rope.emplace());
  ImageSize size = chooseSize(config, asked, patch * merge, most);
  if (config.hasErrors())
    return {};
  block.norm.kind = NormKind::RMSNorm;
  block.norm.bias = false;
  block.attention->qkvBias = block.attention->outBias = false;
  block.ffn->gated = true;
  block.ffn->bias = false;

  builder.imageInput(channels, size.height, size.width, batch,
                     config.locate("image_size"));
  StreamBuilder stream(config, prefix, channels);
  Conv conv = patches(channels, sizes.width, patch);
  conv.bias = false;
  stream.add("patch_conv", "patch_size", conv, sizes.width);
  stream.norm("ln_pre", block.norm);
  if (blocks)
    stream.blocks("transformer.layers.{i}", "num_hidden_layers", blocks, block,
                  {{"norm1", "attention_norm"},
                   {"attention.q", "attention.q_proj"},
                   {"attention.k", "attention.k_proj"},
                   {"attention.v", "attention.v_proj"},
                   {"attention.o", "attention.o_proj"},
                   {"norm2", "ffn_norm"},
                   {"ffn.gate", "feed_forward.gate_proj"},
                   {"ffn.up", "feed_forward.up_proj"},
                   {"ffn.down", "feed_forward.down_proj"}});
  builder.finish("vision", "pixel_values", std::move(stream));
  return {sizes.width, sizes.layers, blocks};
}

} // namespace attune::hf
