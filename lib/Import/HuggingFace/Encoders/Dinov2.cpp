//===- Dinov2.cpp - config.json of DINOv2 ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Towers.h"

namespace attune::hf {

using namespace spec;

/// Scores of what the class token says beside the mean of all patches, which
/// stand behind so many tokens.
static void classify(EncoderBuilder &builder, int64_t width, int64_t tokens) {
  StreamBuilder patches(builder.config, "", width);
  patches.add("classifier.patches", "hidden_size", Slice{tokens, 0});
  Pool mean;
  mean.kind = PoolKind::Mean;
  patches.add("classifier.mean", "hidden_size", mean).pooled = true;
  builder.finish("patches", "encoder", std::move(patches));
  StreamBuilder head(builder.config, "", width);
  EncoderBuilder::pool(head, "classifier.class");
  head.add("classifier.both", "hidden_size", Concat{"patches"}, 2 * width)
      .pooled = true;
  EncoderBuilder::dense(head, "classifier", builder.config.labels());
  builder.finish("classifier", "encoder", std::move(head));
  builder.output("logits", "classifier");
}

/// Patches, a class token, positions that serve images of every size, and
/// blocks whose sublayers' results are scaled channel by channel. Registers
/// stand behind the class token and have no positions.
static std::optional<Model> dinov2(ImportContext &context, const char *name,
                                   bool hasRegisters) {
  Config &config = context.config;
  EncoderBuilder builder(context, name);
  EncoderSizes sizes = {768, 12, 12, 0, 1e-6, Activation::Gelu};
  sizes.width = config.integer("hidden_size", sizes.width);
  sizes.heads = config.integer("num_attention_heads", sizes.heads);
  sizes.layers = config.layers("num_hidden_layers", sizes.layers);
  sizes.eps = config.real("layer_norm_eps", sizes.eps);
  sizes.activation =
      config.activation("hidden_act", "gelu").value_or(sizes.activation);
  config.mustShare("num_attention_heads", sizes.heads, "hidden_size",
                   sizes.width);
  double inner = double(sizes.width) * config.real("mlp_ratio", 4);
  bool gated = config.flag("use_swiglu_ffn", false);
  int64_t image = config.integer("image_size", 224);
  int64_t patch = config.integer("patch_size", hasRegisters ? 16 : 14);
  int64_t channels = config.integer("num_channels", 3);
  bool bias = config.flag("qkv_bias", true);
  int64_t registers = hasRegisters ? config.count("num_register_tokens", 4) : 0;
  // Dropout and masks act in training only; a backbone's keys choose among
  // its layers.
  config.ignore({"hidden_dropout_prob", "attention_probs_dropout_prob",
                 "layerscale_value", "drop_path_rate", "use_mask_token",
                 "out_features", "out_indices", "stage_names",
                 "apply_layernorm", "reshape_hidden_states"});
  if (patch > image)
    config.error("patch_size", "is larger than the image");
  if (inner < 1 || inner > double(maxSize))
    config.error("mlp_ratio", "is not the width of a feed-forward layer");
  if (config.hasErrors())
    return std::nullopt;
  sizes.inner = static_cast<int64_t>(inner);
  if (gated) // two thirds, rounded up to a multiple of 8
    sizes.inner = (sizes.inner * 2 / 3 + 7) / 8 * 8;

  std::string prefix =
      context.prefixFor(hasRegisters ? "dinov2_with_registers." : "dinov2.",
                        "embeddings.patch_embeddings.projection.weight");
  builder.imageInput(channels, image, image, "batch",
                     config.locate("image_size"));
  std::vector<Dim> &shape = builder.model.inputs.back().shape;
  shape[2] = {-1, "height"};
  shape[3] = {-1, "width"};
  StreamBuilder stream(config, prefix, channels);
  stream.add("embeddings.patch_embeddings.projection", "patch_size",
             patches(channels, sizes.width, patch), sizes.width);
  int64_t side = image / patch;
  std::string table = prefix + "embeddings.position_embeddings";
  std::vector<WeightSource> tokens = {{prefix + "embeddings.cls_token"}};
  std::vector<WeightSource> rows = {{table}};
  if (registers) {
    WeightSource own{prefix + "embeddings.register_tokens"};
    tokens.push_back(own);
    own.scale = 0;
    rows = {{table, false, 0, 1}, own, {table, false, 1, side * side + 1}};
  }
  stream
      .add("embeddings.class_tokens", "hidden_size", ClassTokens{1 + registers})
      .weights["weight"] = tokens;
  Positions positions;
  positions.count = PositionCount::Tokens;
  positions.length = side * side + 1 + registers;
  positions.grid = {side, side};
  positions.interpolate =
      hasRegisters ? Interpolation::AntialiasBicubic : Interpolation::Bicubic;
  stream.add("embeddings.position_embeddings", "image_size", positions)
      .weights["weight"] = rows;
  Block block = encoderBlock(sizes, Placement::Pre);
  block.attention->qkvBias = bias;
  block.layerScale = true;
  if (gated) {
    block.ffn->gated = true;
    block.ffn->activation = Activation::Silu;
  }
  stream.blocks(
      "encoder.layer.{i}", "num_hidden_layers", sizes.layers, block,
      {{"norm1", "norm1"},
       {"attention.q", "attention.attention.query"},
       {"attention.k", "attention.attention.key"},
       {"attention.v", "attention.attention.value"},
       {"attention.o", "attention.output.dense"},
       {"layer_scale1", "layer_scale1.lambda1"},
       {"norm2", "norm2"},
       gated ? TensorName{"ffn.gate_up", "mlp.weights_in", Layout::Blocks}
             : TensorName{"ffn.up", "mlp.fc1"},
       {"ffn.down", gated ? "mlp.weights_out" : "mlp.fc2"},
       {"layer_scale2", "layer_scale2.lambda1"}});
  stream.norm("layernorm", block.norm);
  builder.finish("encoder", "pixel_values", std::move(stream));
  if (builder.is("ForImageClassification")) {
    classify(builder, sizes.width, 1 + registers);
    return builder.take();
  }
  builder.output("last_hidden_state", prefix + "layernorm");
  StreamBuilder pooled(config, prefix, sizes.width);
  EncoderBuilder::pool(pooled, "pooled");
  builder.finish("pooled", "encoder", std::move(pooled));
  builder.output("pooler_output", prefix + "pooled");
  return builder.take();
}

std::optional<Model> importDinov2(ImportContext &context) {
  return dinov2(context, "dinov2", /*hasRegisters=*/false);
}

std::optional<Model> importDinov2WithRegisters(ImportContext &context) {
  return dinov2(context, "dinov2_with_registers", /*hasRegisters=*/true);
}

} // namespace attune::hf
