//===- Dinov3.cpp - config.json of DINOv3 ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Towers.h"

namespace attune::hf {

using namespace spec;

/// Patches turned by the places of their centres, behind a class token and
/// registers that are not turned.
std::optional<Model> importDinov3(ImportContext &context) {
  Config &config = context.config;
  EncoderBuilder builder(context, "dinov3");
  EncoderSizes sizes = {384, 6, 12, 1536, 1e-5, Activation::Gelu};
  sizes.width = config.integer("hidden_size", sizes.width);
  sizes.heads = config.integer("num_attention_heads", sizes.heads);
  sizes.layers = config.layers("num_hidden_layers", sizes.layers);
  sizes.inner = config.integer("intermediate_size", sizes.inner);
  sizes.eps = config.real("layer_norm_eps", sizes.eps);
  sizes.activation =
      config.activation("hidden_act", "gelu").value_or(sizes.activation);
  config.mustShare("num_attention_heads", sizes.heads, "hidden_size",
                   sizes.width);
  int64_t image = config.integer("image_size", 224);
  int64_t patch = config.integer("patch_size", 16);
  int64_t channels = config.integer("num_channels", 3);
  int64_t registers = config.count("num_register_tokens", 0);
  bool queryBias = config.flag("query_bias", true);
  bool keyBias = config.flag("key_bias", false);
  bool valueBias = config.flag("value_bias", true);
  bool outBias = config.flag("proj_bias", true);
  bool innerBias = config.flag("mlp_bias", true);
  bool gated = config.flag("use_gated_mlp", false);
  double theta = config.real("rope_theta", 100);
  // Dropout and moved positions act in training only; a backbone's keys choose
  // among its layers.
  config.ignore({"attention_dropout", "drop_path_rate", "layerscale_value",
                 "pos_embed_shift", "pos_embed_jitter", "pos_embed_rescale",
                 "out_features", "out_indices", "stage_names",
                 "apply_layernorm", "reshape_hidden_states",
                 "return_class_token"});
  if (patch > image)
    config.error("patch_size", "is larger than the image");
  if (queryBias != valueBias)
    config.error("value_bias", "says otherwise than query_bias, which is not "
                               "supported");
  if (keyBias && !queryBias)
    config.error("key_bias", "is there without query_bias, which is not "
                             "supported");
  if (config.hasErrors())
    return std::nullopt;
  int64_t headDim = sizes.width / sizes.heads;
  if (headDim % 4 != 0) {
    config.error("hidden_size", "makes heads of " + std::to_string(headDim) +
                                    " channels, but rows and columns turn in "
                                    "pairs");
    return std::nullopt;
  }

  builder.imageInput(channels, image, image, "batch",
                     config.locate("image_size"));
  std::vector<Dim> &shape = builder.model.inputs.back().shape;
  shape[2] = {-1, "height"};
  shape[3] = {-1, "width"};
  StreamBuilder stream(config, "", channels);
  stream.add("embeddings.patch_embeddings", "patch_size",
             patches(channels, sizes.width, patch), sizes.width);
  if (registers > 0)
    stream
        .add("embeddings.registers", "num_register_tokens",
             ClassTokens{registers})
        .weights["weight"] = {{"embeddings.register_tokens", false, 0, -1}};
  stream.add("embeddings.class_tokens", "hidden_size", ClassTokens{1})
      .weights["weight"] = {{"embeddings.cls_token", false, 0, -1}};
  Block block = encoderBlock(sizes, Placement::Pre);
  block.attention->qkvBias = queryBias;
  block.attention->keyBias = keyBias || !queryBias;
  block.attention->outBias = outBias;
  Rope &rope = block.attention->rope.emplace();
  rope.theta = theta;
  rope.channels = headDim;
  rope.axes.channels = {headDim / 2, headDim / 2};
  block.layerScale = true;
  block.ffn->gated = gated;
  block.ffn->bias = innerBias;
  stream.blocks("layer.{i}", "num_hidden_layers", sizes.layers, block,
                {{"norm1", "norm1"},
                 {"attention.q", "attention.q_proj"},
                 {"attention.k", "attention.k_proj"},
                 {"attention.v", "attention.v_proj"},
                 {"attention.o", "attention.o_proj"},
                 {"layer_scale1", "layer_scale1.lambda1"},
                 {"norm2", "norm2"},
                 {"ffn.gate", "mlp.gate_proj"},
                 {"ffn.up", "mlp.up_proj"},
                 {"ffn.down", "mlp.down_proj"},
                 {"layer_scale2", "layer_scale2.lambda1"}});
  stream.norm("norm", block.norm);
  builder.finish("encoder", "pixel_values", std::move(stream));
  builder.output("last_hidden_state", "norm");
  StreamBuilder pooled(config, "", sizes.width);
  EncoderBuilder::pool(pooled, "pooled");
  builder.finish("pooled", "encoder", std::move(pooled));
  builder.output("pooler_output", "pooled");
  return builder.take();
}

} // namespace attune::hf
