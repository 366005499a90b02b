//===- Wav2Vec2.cpp - config.json of wav2vec 2.0 and HuBERT ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderBuilder.h"

#include "../Architectures.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

namespace attune::hf {

using namespace spec;

namespace {
/// The convolutions that make frames of samples.
struct Frames {
  std::vector<int64_t> widths, kernels, strides;
  bool bias = false;
  bool normsEach = false; ///< all of them over channels, else the first alone
  Activation activation = Activation::Gelu;
};
} // namespace

static std::vector<int64_t> readSizes(Config &config, std::string_view key,
                                      std::vector<int64_t> fallback) {
  const Value *list = config.get(key);
  if (!list)
    return fallback;
  std::vector<int64_t> sizes;
  if (list->isArray())
    for (const Value &size : list->elements)
      if (size.kind == Value::Kind::Integer && size.integer >= 1 &&
          size.integer <= maxSize)
        sizes.push_back(size.integer);
  if (!list->isArray() || sizes.empty() ||
      sizes.size() != list->elements.size()) {
    config.error(key, "expected an array of whole numbers from 1 on");
    return fallback;
  }
  return sizes;
}

static Frames readFrames(Config &config) {
  Frames frames;
  frames.widths = readSizes(config, "conv_dim", std::vector<int64_t>(7, 512));
  frames.kernels = readSizes(config, "conv_kernel", {10, 3, 3, 3, 3, 2, 2});
  frames.strides = readSizes(config, "conv_stride", {5, 2, 2, 2, 2, 2, 2});
  for (const char *key : {"conv_kernel", "conv_stride"}) {
    const auto &sizes = key[5] == 'k' ? frames.kernels : frames.strides;
    if (sizes.size() != frames.widths.size())
      config.error(key, "has " + std::to_string(sizes.size()) +
                            " numbers, but conv_dim " +
                            std::to_string(frames.widths.size()));
  }
  frames.bias = config.flag("conv_bias", false);
  std::string norm = config.text("feat_extract_norm", "group");
  if (norm != "group" && norm != "layer")
    config.error("feat_extract_norm",
                 "expected \"group\" or \"layer\", found " + quote(norm));
  frames.normsEach = norm == "layer";
  frames.activation = config.activation("feat_extract_activation", "gelu")
                          .value_or(frames.activation);
  return frames;
}

static void addFrames(StreamBuilder &stream, const Frames &frames) {
  for (size_t i = 0; i < frames.widths.size(); ++i) {
    std::string name =
        "feature_extractor.conv_layers." + std::to_string(i) + ".";
    Conv conv;
    conv.out = frames.widths[i];
    conv.channels = i ? frames.widths[i - 1] : 1;
    conv.kernel = {frames.kernels[i]};
    conv.stride = {frames.strides[i]};
    conv.padding = {0};
    conv.bias = frames.bias;
    conv.channelsFirst = i == 0;
    bool normed = frames.normsEach || i == 0;
    if (!normed)
      conv.activation = frames.activation;
    stream.add(name + "conv", "conv_dim", conv, conv.out);
    if (!normed)
      continue;
    if (frames.normsEach)
      stream.norm(name + "layer_norm", Norm{});
    else
      stream.add(name + "layer_norm", "feat_extract_norm", InstanceNorm{});
    Function function;
    function.activation = frames.activation;
    stream.add(name + "activation", "feat_extract_activation", function);
  }
}

/// What the classes have that is not read here, and what acts in training or in
/// other classes only.
static void passOver(Config &config) {
  config.mustBeFalse("add_adapter",
                     "convolutions behind the encoder are not supported");
  if (config.get("adapter_attn_dim"))
    config.error("adapter_attn_dim", "adapters of languages are not supported");
  config.mustBeFalse("conv_pos_batch_norm",
                     "batch norms before positions are not supported");
  config.ignore({"activation_dropout",
                 "adapter_kernel_size",
                 "adapter_stride",
                 "apply_spec_augment",
                 "attention_dropout",
                 "classifier_proj_size",
                 "codevector_dim",
                 "contrastive_logits_temperature",
                 "ctc_loss_reduction",
                 "ctc_zero_infinity",
                 "diversity_loss_weight",
                 "feat_extract_dropout",
                 "feat_proj_dropout",
                 "feat_quantizer_dropout",
                 "final_dropout",
                 "freeze_feat_extract_train",
                 "gradient_checkpointing",
                 "hidden_dropout",
                 "hidden_dropout_prob",
                 "layerdrop",
                 "mask_channel_length",
                 "mask_channel_min_space",
                 "mask_channel_other",
                 "mask_channel_prob",
                 "mask_channel_selection",
                 "mask_feature_length",
                 "mask_feature_min_masks",
                 "mask_feature_prob",
                 "mask_time_length",
                 "mask_time_min_masks",
                 "mask_time_min_space",
                 "mask_time_other",
                 "mask_time_prob",
                 "mask_time_selection",
                 "no_mask_channel_overlap",
                 "no_mask_time_overlap",
                 "num_adapter_layers",
                 "num_codevector_groups",
                 "num_codevectors_per_group",
                 "num_feat_extract_layers",
                 "num_negatives",
                 "output_hidden_size",
                 "proj_codevector_dim",
                 "tdnn_dilation",
                 "tdnn_dim",
                 "tdnn_kernel",
                 "tokenizer_class",
                 "use_weighted_layer_sum",
                 "xvector_output_dim"});
}

/// Samples in, frames out: convolutions, positions that a wide convolution over
/// groups of channels makes of the frames themselves, and blocks. Where every
/// convolution is normed over its channels a mask of samples hides what is
/// behind a sound's end; the others are published without one.
static std::optional<Model> importWaves(ImportContext &context,
                                        const char *name, bool hubert) {
  Config &config = context.config;
  EncoderBuilder builder(context, name);
  EncoderSizes sizes = readEncoderSizes(
      config, {768, 12, 12, 3072, 1e-5, Activation::Gelu}, "gelu");
  Frames frames = readFrames(config);
  int64_t vocab = config.integer("vocab_size", 32);
  int64_t kernel = config.integer("num_conv_pos_embeddings", 128);
  int64_t groups = config.integer("num_conv_pos_embedding_groups", 16);
  bool stable = config.flag("do_stable_layer_norm", false);
  bool normed = !hubert || config.flag("feat_proj_layer_norm", true);
  passOver(config);
  if (sizes.width % groups != 0)
    config.error("num_conv_pos_embedding_groups",
                 std::to_string(groups) + " does not divide hidden_size " +
                     std::to_string(sizes.width));
  if (config.hasErrors())
    return std::nullopt;

  TensorSpec input;
  input.name = "input_values";
  input.shape = {{-1, "batch"}, {-1, "samples"}};
  input.location = config.locate("conv_dim");
  builder.model.inputs.push_back(input);
  if (frames.normsEach) {
    input.name = "attention_mask";
    input.dtype = DType::Bool;
    input.fallback = "ones";
    builder.model.inputs.push_back(input);
  }
  std::string prefix = context.prefixFor(
      std::string(name) + ".", "feature_extractor.conv_layers.0.conv.weight");
  StreamBuilder stream(config, prefix, 1);
  addFrames(stream, frames);
  Block block = encoderBlock(sizes, stable ? Placement::Pre : Placement::Post);
  if (normed)
    stream.norm("feature_projection.layer_norm", block.norm);
  Linear projection;
  projection.out = sizes.width;
  projection.bias = true;
  stream.add("feature_projection.projection", "hidden_size", projection,
             sizes.width);
  Conv positions;
  positions.out = positions.channels = sizes.width;
  positions.kernel = {kernel};
  positions.stride = {1};
  positions.padding = {kernel / 2};
  positions.same = true;
  positions.groups = groups;
  positions.activation = frames.activation;
  stream.add("encoder.pos_conv_embed.conv", "num_conv_pos_embeddings",
             positions);
  stream.add("encoder.positioned", "num_conv_pos_embeddings",
             Add{prefix + "feature_projection.projection"});
  if (!stable)
    stream.norm("encoder.layer_norm", block.norm);
  stream.blocks("encoder.layers.{i}", "num_hidden_layers", sizes.layers, block,
                {{"attention.q", "attention.q_proj"},
                 {"attention.k", "attention.k_proj"},
                 {"attention.v", "attention.v_proj"},
                 {"attention.o", "attention.out_proj"},
                 {"norm1", "layer_norm"},
                 {"ffn.up", "feed_forward.intermediate_dense"},
                 {"ffn.down", "feed_forward.output_dense"},
                 {"norm2", "final_layer_norm"}});
  if (stable)
    stream.norm("encoder.layer_norm", block.norm);
  if (context.languageModel) {
    Linear head;
    head.out = vocab;
    head.bias = true;
    Layer &scores = stream.add("lm_head", "vocab_size", head, vocab);
    scores.name = "lm_head";
    builder.model.audio.emplace();
    builder.model.audio->input = "input_values";
    builder.model.audio->location = input.location;
  }
  builder.finish("main", "input_values", std::move(stream));
  return builder.take();
}

std::optional<Model> importWav2Vec2(ImportContext &context) {
  return importWaves(context, "wav2vec2", /*hubert=*/false);
}

std::optional<Model> importHubert(ImportContext &context) {
  return importWaves(context, "hubert", /*hubert=*/true);
}

} // namespace attune::hf
