//===- StableDiffusion3.cpp - config.json of SD3's transformer ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DiffusionBuilder.h"

namespace attune::hf {

using namespace spec;

/// Which blocks have a second attention (SD3.5-medium).
static std::vector<bool> readSecond(Config &config, int64_t layers) {
  std::vector<bool> second(static_cast<size_t>(layers));
  const Value *list = config.get("dual_attention_layers");
  if (!list)
    return second;
  for (const Value &number : list->elements) {
    if (number.kind != Value::Kind::Integer || number.integer < 0 ||
        number.integer >= layers) {
      config.error("dual_attention_layers",
                   "expected numbers of layers, from 0 to " +
                       std::to_string(layers - 1));
      return second;
    }
    second[static_cast<size_t>(number.integer)] = true;
  }
  return second;
}

/// Patches of an image and a text side by side. Behind the last block nobody
/// reads the text.
std::optional<Model> importStableDiffusion3(ImportContext &context) {
  Config &config = context.config;
  DiffusionBuilder builder(context, "sd3");
  config.integer("sample_size", 128); // the size that it was trained with
  int64_t patch = config.integer("patch_size", 2, 1 << 12);
  int64_t channels = config.integer("in_channels", 16);
  int64_t out = config.integer("out_channels", 16, 1 << 16);
  int64_t layers = config.layers("num_layers", 18);
  builder.headDim = config.integer("attention_head_dim", 64, 1 << 16);
  builder.heads = config.integer("num_attention_heads", 18, 1 << 12);
  int64_t textWidth = config.integer("joint_attention_dim", 4096);
  int64_t projected = config.integer("caption_projection_dim", 1152);
  int64_t pooled = config.integer("pooled_projection_dim", 2048);
  int64_t side = config.integer("pos_embed_max_size", 96, 1 << 12);
  std::string qkNorm = config.text("qk_norm", "");
  std::vector<bool> second = readSecond(config, layers);
  if (config.isNull("pos_embed_max_size"))
    config.error("pos_embed_max_size",
                 "without a table of positions (null) is not supported");
  if (!qkNorm.empty() && qkNorm != "rms_norm")
    config.error("qk_norm",
                 "expected \"rms_norm\" or null, found " + quote(qkNorm));
  int64_t width = builder.width = builder.heads * builder.headDim;
  if (projected != width)
    config.error("caption_projection_dim",
                 "is " + std::to_string(projected) +
                     ", but tokens of images "
                     "have " +
                     std::to_string(width) +
                     " channels (num_attention_heads * attention_head_dim), "
                     "which those of texts must have, too");
  if (config.hasErrors())
    return std::nullopt;

  builder.input("hidden_states",
                {{-1, "batch"}, {channels, ""}, {-1, "height"}, {-1, "width"}},
                "in_channels");
  builder.number("time", "timestep", 1);
  builder.condition(pooled, {"time"});
  builder.text(textWidth);

  StreamBuilder stream(config, "", channels);
  Conv conv;
  conv.out = width;
  conv.channels = channels;
  conv.kernel = conv.stride = {patch, patch};
  conv.padding = {0, 0};
  conv.channelsFirst = true;
  stream.add("pos_embed.proj", "patch_size", conv, width);
  Positions positions;
  positions.count = PositionCount::Tokens;
  positions.length = side * side;
  positions.grid = {side, side};
  positions.interpolate = Interpolation::Centre;
  stream.add("pos_embed.table", "pos_embed_max_size", positions)
      .weights["weight"] = {{"pos_embed.pos_embed", false, 0, -1}};
  stream.add("together", "", Concat{"text"});
  for (size_t i = 0; i < second.size();) {
    bool last = i + 1 == second.size();
    size_t end = i + 1;
    while (!last && end + 1 < second.size() && second[end] == second[i])
      ++end;
    Block block = builder.jointBlock(/*part=*/1, !qkNorm.empty());
    block.joint->keysOnly = last;
    block.joint->second = second[i];
    Layer &layer =
        stream.blocks("transformer_blocks.{i}", "num_layers",
                      static_cast<int64_t>(end - i), block, jointTensors());
    layer.first = static_cast<int64_t>(i);
    if (last)
      nameScaleFirst(layer, "joint.modulation.",
                     layer.name + ".norm1_context.linear.", width);
    i = end;
  }
  Slice places;
  places.part = 0;
  stream.add("places", "", places);
  builder.end(stream, patch * patch * out);
  stream.add("unpatchify", "patch_size", Unpatch{patch}, 0);
  builder.finish("transformer", "hidden_states", std::move(stream));
  builder.model.outputs = {{"sample", "unpatchify", config.locate()}};
  return std::move(builder.model);
}

} // namespace attune::hf
