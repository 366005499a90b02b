//===- Whisper.cpp - config.json of Whisper ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Architectures.h"
#include "EncoderDecoder.h"
#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <cmath>

namespace attune::hf {

using namespace spec;

/// Blocks of one side. Keys have no bias, queries and values do.
static Block makeBlock(Config &config, const std::string &side, int64_t width,
                       Activation activation) {
  int64_t heads = config.integer(side + "_attention_heads", 6);
  config.mustShare(side + "_attention_heads", heads, "d_model", width);
  Block body;
  body.norm.location = config.locate("d_model");
  Attention &attention = body.attention.emplace();
  attention.heads = attention.kvHeads = heads;
  attention.headDim = attention.valueDim = width / heads;
  attention.qkvBias = attention.outBias = true;
  attention.keyBias = false;
  attention.scale = 1 / std::sqrt(double(std::max<int64_t>(width / heads, 1)));
  attention.sourceWidth = width;
  attention.location = config.locate(side + "_attention_heads");
  FFN &ffn = body.ffn.emplace();
  ffn.width = config.integer(side + "_ffn_dim", 1536);
  ffn.activation = activation;
  ffn.location = config.locate(side + "_ffn_dim");
  return body;
}

std::optional<Model> importWhisper(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer(config.oneOf({"d_model", "hidden_size"}), 384);
  int64_t vocab = config.integer("vocab_size", 51865);
  int64_t bins = config.integer("num_mel_bins", 80);
  int64_t frames = config.integer("max_source_positions", 1500);
  int64_t length = config.integer("max_target_positions", 448);
  int64_t encoderLayers = config.layers("encoder_layers", 4);
  int64_t decoderLayers = config.layers("decoder_layers", 4);
  bool tied = config.flag("tie_word_embeddings", true);
  std::optional<Activation> activation =
      config.activation("activation_function", "gelu");
  // Dropout and masking of the spectrum act in training only; embeddings are
  // never scaled, whatever scale_embedding says; the rest belongs to a
  // classification head or to the times of words.
  config.ignore({"dropout",
                 "attention_dropout",
                 "activation_dropout",
                 "encoder_layerdrop",
                 "decoder_layerdrop",
                 "init_std",
                 "num_hidden_layers",
                 "num_attention_heads",
                 "scale_embedding",
                 "use_weighted_layer_sum",
                 "classifier_proj_size",
                 "apply_spec_augment",
                 "mask_time_prob",
                 "mask_time_length",
                 "mask_time_min_masks",
                 "mask_feature_prob",
                 "mask_feature_length",
                 "mask_feature_min_masks",
                 "median_filter_width",
                 "forced_decoder_ids",
                 "max_length"});
  if (config.hasErrors() || !activation)
    return std::nullopt;
  Block encoderBody = makeBlock(config, "encoder", width, *activation);
  Block decoderBody = makeBlock(config, "decoder", width, *activation);
  if (config.hasErrors())
    return std::nullopt;
  decoderBody.cross = decoderBody.attention;
  decoderBody.cross->source = "encoder";
  decoderBody.attention->causal = Causal::BottomRight;
  std::string prefix = context.prefixFor("model.", "encoder.conv1.weight");

  Model model;
  model.name = "whisper";
  TensorSpec features;
  features.name = "input_features";
  features.shape = {{-1, "batch"}, {bins, ""}, {2 * frames, ""}};
  features.location = config.locate("num_mel_bins");
  model.inputs.push_back(features);

  // Two convolutions over time, the second of which halves it.
  StreamBuilder encoder(config, prefix);
  Conv stem;
  stem.out = width;
  stem.channels = bins;
  stem.kernel = {3};
  stem.stride = {1};
  stem.padding = {1};
  stem.channelsFirst = true;
  stem.activation = Activation::Gelu;
  encoder.add("encoder.conv1", "num_mel_bins", stem, width);
  stem.channels = width;
  stem.stride = {2};
  stem.channelsFirst = false;
  encoder.add("encoder.conv2", "d_model", stem, width);
  Positions positions;
  positions.length = frames;
  positions.count = PositionCount::Tokens;
  encoder.add("encoder.embed_positions", "max_source_positions", positions);
  encoder.blocks("encoder.layers.{i}", "encoder_layers", encoderLayers,
                 encoderBody, bartBlockTensors());
  encoder.norm("encoder.layer_norm", encoderBody.norm);
  model.streams.push_back(encoder.take("encoder", "input_features"));

  StreamBuilder decoder(config, prefix);
  decoder.embedding("decoder.embed_tokens", vocab, width);
  decoder.learnedPositions("decoder.embed_positions", length, /*offset=*/0,
                           "max_target_positions");
  decoder.blocks("decoder.layers.{i}", "decoder_layers", decoderLayers,
                 decoderBody, bartBlockTensors());
  decoder.norm("decoder.layer_norm", decoderBody.norm);
  if (context.languageModel)
    decoder.head("proj_out", vocab, tied ? "decoder.embed_tokens" : "");
  model.streams.push_back(decoder.take("decoder", ""));

  if (context.languageModel) {
    model.audio.emplace();
    model.audio->input = features.name;
    model.audio->location = features.location;
  }
  model.generation.eos = {50256};
  model.generation.pad = 50256;
  model.generation.bos = 50257;
  model.generation.decoderStart = 50257;
  declareTextInputs(context, model);
  return model;
}

} // namespace attune::hf
