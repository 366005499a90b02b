//===- Flux.cpp - config.json of Flux's transformer -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DiffusionBuilder.h"

namespace attune::hf {

using namespace spec;

/// Channels of a head that each axis of the positions turns.
static std::vector<int64_t> readAxes(Config &config, int64_t headDim) {
  std::vector<int64_t> axes;
  const Value *list = config.get("axes_dims_rope");
  if (!list)
    return {16, 56, 56};
  int64_t all = 0;
  for (const Value &size : list->elements) {
    bool isSize = size.kind == Value::Kind::Integer && size.integer > 0 &&
                  size.integer <= headDim && size.integer % 2 == 0;
    if (!isSize) {
      config.error("axes_dims_rope", "expected even numbers of channels");
      return {};
    }
    axes.push_back(size.integer);
    all += size.integer;
  }
  if (all != headDim)
    config.error("axes_dims_rope", "has " + std::to_string(all) +
                                       " channels together, but a head " +
                                       std::to_string(headDim) +
                                       " (attention_head_dim)");
  return axes;
}

/// Blocks of text and image side by side, then blocks of both as one sequence
/// whose attention and feed-forward layer share a matrix.
std::optional<Model> importFlux(ImportContext &context) {
  Config &config = context.config;
  DiffusionBuilder builder(context, "flux");
  int64_t patch = config.integer("patch_size", 1, 1 << 12);
  int64_t channels = config.integer("in_channels", 64, 1 << 16);
  int64_t out = config.integer("out_channels", channels, 1 << 16);
  int64_t joint = config.layers("num_layers", 19);
  int64_t single = config.layers("num_single_layers", 38);
  builder.headDim = config.integer("attention_head_dim", 128, 1 << 16);
  builder.heads = config.integer("num_attention_heads", 24, 1 << 12);
  int64_t textWidth = config.integer("joint_attention_dim", 4096);
  int64_t pooled = config.integer("pooled_projection_dim", 768);
  bool guided = config.flag("guidance_embeds", false);
  std::vector<int64_t> axes = readAxes(config, builder.headDim);
  if (config.hasErrors())
    return std::nullopt;
  int64_t width = builder.width = builder.heads * builder.headDim;
  auto numAxes = static_cast<int64_t>(axes.size());

  builder.input("hidden_states",
                {{-1, "batch"}, {-1, "image_tokens"}, {channels, ""}},
                "in_channels");
  std::vector<std::string> numbers = {"time"};
  builder.number("time", "timestep", 1000);
  if (guided) {
    builder.number("guidance", "guidance", 1000);
    numbers.push_back("guidance");
  }
  builder.condition(pooled, numbers);
  builder.text(textWidth);
  builder.input("txt_ids", {{-1, "text_tokens"}, {numAxes, ""}},
                "axes_dims_rope");
  builder.input("img_ids", {{-1, "image_tokens"}, {numAxes, ""}},
                "axes_dims_rope");
  StreamBuilder image(config, "", channels);
  Linear linear;
  linear.out = width;
  linear.bias = true;
  image.add("x_embedder", "in_channels", linear, width);
  builder.finish("image", "hidden_states", std::move(image));

  StreamBuilder stream(config, "", width);
  stream.add("together", "", Concat{"image"});
  auto turn = [&](Attention &attention) {
    Rope &rope = attention.rope.emplace();
    rope.interleaved = true;
    rope.channels = builder.headDim;
    rope.axes.channels = axes;
    rope.axes.inputs = {"txt_ids", "img_ids"};
  };
  Block both = builder.jointBlock(/*part=*/0, /*qkNorm=*/true);
  turn(*both.attention);
  stream.blocks("transformer_blocks.{i}", "num_layers", joint, both,
                jointTensors());
  Block one = both;
  one.joint.reset();
  one.placement = Placement::Parallel;
  one.attention->outBias = false;
  one.sharedOut = true;
  stream.blocks("single_transformer_blocks.{i}", "num_single_layers", single,
                one,
                {{"modulation", "norm.linear"},
                 {"attention.q", "attn.to_q"},
                 {"attention.k", "attn.to_k"},
                 {"attention.v", "attn.to_v"},
                 {"attention.q_norm", "attn.norm_q"},
                 {"attention.k_norm", "attn.norm_k"},
                 {"ffn.up", "proj_mlp"},
                 {"out", "proj_out"}});
  Slice places;
  places.part = 1;
  stream.add("places", "", places);
  builder.end(stream, patch * patch * out);
  builder.finish("transformer", "text", std::move(stream));
  builder.model.outputs = {{"sample", "proj_out", config.locate()}};
  return std::move(builder.model);
}

} // namespace attune::hf
