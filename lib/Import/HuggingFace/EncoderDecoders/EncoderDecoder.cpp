//===- EncoderDecoder.cpp - Shared by encoder-decoders ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EncoderDecoder.h"

namespace attune::hf {

using namespace spec;

void declareTextInputs(ImportContext &context, Model &model) {
  Config &config = context.config;
  auto declare = [&](const char *name, const char *tokens) {
    TensorSpec input;
    input.name = name;
    input.dtype = DType::I64;
    input.shape = {{-1, "batch"}, {-1, tokens}};
    input.location = config.locate("vocab_size");
    model.inputs.push_back(input);
  };
  Stream &encoder = model.streams.front();
  if (encoder.input.empty()) {
    declare("input_ids", "seq");
    encoder.input = "input_ids";
  }
  auto output = [&](const char *name, const Stream &stream) {
    const Layer &last = stream.layers.back();
    model.outputs.push_back({name, last.name, last.location});
  };
  if (model.streams.size() == 1)
    return output("last_hidden_state", encoder);
  declare("decoder_input_ids", "target");
  Stream &decoder = model.streams.back();
  decoder.input = "decoder_input_ids";
  output(context.languageModel ? "logits" : "last_hidden_state", decoder);
  output("encoder_last_hidden_state", encoder);
}

const TensorNames &bartBlockTensors() {
  static const TensorNames names = {
      {"norm1", "self_attn_layer_norm"},
      {"attention.q", "self_attn.q_proj"},
      {"attention.k", "self_attn.k_proj"},
      {"attention.v", "self_attn.v_proj"},
      {"attention.o", "self_attn.out_proj"},
      {"norm_cross", "encoder_attn_layer_norm"},
      {"cross.q", "encoder_attn.q_proj"},
      {"cross.k", "encoder_attn.k_proj"},
      {"cross.v", "encoder_attn.v_proj"},
      {"cross.o", "encoder_attn.out_proj"},
      {"norm2", "final_layer_norm"},
      {"ffn.up", "fc1"},
      {"ffn.down", "fc2"},
  };
  return names;
}

} // namespace attune::hf
