//===- Towers.cpp - Shared by models of texts and images ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Towers.h"

namespace attune::hf {

using namespace spec;

const TensorNames &towerTensors() {
  static const TensorNames tensors = {
      {"norm1", "layer_norm1"},
      {"attention.q", "self_attn.q_proj"},
      {"attention.k", "self_attn.k_proj"},
      {"attention.v", "self_attn.v_proj"},
      {"attention.o", "self_attn.out_proj"},
      {"norm2", "layer_norm2"},
      {"ffn.up", "mlp.fc1"},
      {"ffn.down", "mlp.fc2"},
  };
  return tensors;
}

void ignoreTowerKeys(Config &config) {
  refuseUnsupportedKeys(config);
  config.ignore(
      {"attention_dropout", "dropout", "hidden_dropout", "dropout_rate",
       "initializer_factor", "model_type", "architectures", "projection_dim",
       "torch_dtype", "dtype", "is_encoder_decoder", "add_cross_attention",
       "tie_word_embeddings", "bos_token_id", "eos_token_id", "pad_token_id"});
}

const Value *findTower(Config &config, const char *key) {
  const Value *object = config.get(key);
  if (object && !object->isObject()) {
    config.error(key, "expected an object");
    object = nullptr;
  }
  // Old files say the same twice.
  std::string copy = std::string(key) + "_dict";
  if (const Value *old = config.get(copy); old && !object)
    object = old;
  return object;
}

int64_t readBlockCount(Config &config, int64_t layers, int64_t layer) {
  int64_t blocks = layer < 0 ? layers + 1 + layer : layer;
  if (blocks < 0 || blocks > layers)
    config.error("num_hidden_layers", "there is no layer " +
                                          std::to_string(layer) + " among " +
                                          std::to_string(layers));
  return blocks;
}

std::pair<int64_t, int64_t> readSize(Config &config, const char *key,
                                     int64_t fallback) {
  const Value *value = config.peek(key);
  if (!value || !value->isArray()) {
    int64_t size = config.integer(key, fallback);
    return {size, size};
  }
  config.get(key);
  auto number = [&](size_t i) {
    const Value &element = value->elements[i];
    return element.kind == Value::Kind::Integer ? element.integer : 0;
  };
  if (value->elements.size() != 2 || number(0) < 1 || number(1) < 1 ||
      number(0) > maxSize || number(1) > maxSize) {
    config.error(key, "expected a size, or height and width");
    return {1, 1};
  }
  return {number(0), number(1)};
}

Conv patches(int64_t channels, int64_t width, int64_t patch) {
  Conv conv;
  conv.out = width;
  conv.channels = channels;
  conv.kernel = conv.stride = {patch, patch};
  conv.padding = {0, 0};
  conv.channelsFirst = true;
  return conv;
}

void classifyPatches(EncoderBuilder &builder, const char *from, int64_t width,
                     int64_t before) {
  StreamBuilder head(builder.config, "", width);
  if (before)
    head.add("classifier.patches", "", Slice{before, 0});
  Pool mean;
  mean.kind = PoolKind::Mean;
  head.add("classifier.mean", "", mean).pooled = true;
  EncoderBuilder::dense(head, "classifier", builder.config.labels());
  builder.finish("classifier", from, std::move(head));
  builder.output("logits", "classifier");
}

} // namespace attune::hf
