//===- Words.cpp - How enumerators are spelt in a description ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Spec.h"

#include <iterator>

namespace attune::spec {

const char *keyOf(const Layer &layer) {
  if (const auto *function = std::get_if<Function>(&layer.op))
    return stringify(function->kind);
  if (const auto *extension = std::get_if<Extension>(&layer.op))
    return extension->kind.c_str();
  static constexpr const char *keys[] = {
      "embedding", "positions", "block",       "attention",    "ffn",
      "norm",      "linear",    "moe",         "pool",         "class_tokens",
      "slice",     "concat",    "conv",        "batch_norm",   "instance_norm",
      "add",       "l2_norm",   "similarity",  "insert",       "cross_entropy",
      "recurrent", "scan",      "mamba",       "modulate",     "timestep",
      "chunk",     "swap",      "overlap_add", "layer_inputs", "spread",
      "unite",     "windows",   "whole",       "merge",        "unpatch"};
  // In the order of the variant, whose last kinds name themselves.
  static_assert(std::size(keys) + 2 == std::variant_size_v<decltype(layer.op)>);
  return keys[layer.op.index()];
}

const char *stringify(DType dtype) {
  switch (dtype) {
  case DType::F32:
    return "f32";
  case DType::F16:
    return "f16";
  case DType::BF16:
    return "bf16";
  case DType::I64:
    return "i64";
  case DType::I32:
    return "i32";
  case DType::I8:
    return "i8";
  case DType::Bool:
    return "bool";
  }
  return "";
}

const char *stringify(KvCache form) {
  switch (form) {
  case KvCache::Full:
    return "full";
  case KvCache::Int8:
    return "int8";
  case KvCache::Fp8:
    return "fp8";
  }
  return "";
}

const char *stringify(RowForm form) {
  return form == RowForm::Exact ? "exact" : "bytes";
}

const char *stringify(NormKind kind) {
  switch (kind) {
  case NormKind::LayerNorm:
    return "layer_norm";
  case NormKind::RMSNorm:
    return "rms_norm";
  }
  return "";
}

const char *stringify(Causal causal) {
  switch (causal) {
  case Causal::None:
    return "none";
  case Causal::BottomRight:
    return "bottom_right";
  case Causal::TopLeft:
    return "top_left";
  }
  return "";
}

const char *stringify(FeatureMap map) {
  switch (map) {
  case FeatureMap::EluPlusOne:
    return "elu_plus_one";
  case FeatureMap::Relu:
    return "relu";
  case FeatureMap::Identity:
    return "identity";
  }
  return "";
}

const char *stringify(SequenceSharing shared) {
  switch (shared) {
  case SequenceSharing::None:
    return "none";
  case SequenceSharing::Heads:
    return "heads";
  case SequenceSharing::KeysValues:
    return "keys_values";
  }
  return "";
}

const char *stringify(Fusion fusion) {
  switch (fusion) {
  case Fusion::Auto:
    return "auto";
  case Fusion::Required:
    return "required";
  case Fusion::Off:
    return "off";
  }
  return "";
}

const char *stringify(NormScope scope) {
  switch (scope) {
  case NormScope::Head:
    return "head";
  case NormScope::Heads:
    return "heads";
  case NormScope::Projection:
    return "projection";
  }
  return "";
}

const char *stringify(Activation activation) {
  switch (activation) {
  case Activation::Identity:
    return "identity";
  case Activation::Relu:
    return "relu";
  case Activation::Gelu:
    return "gelu";
  case Activation::GeluTanh:
    return "gelu_tanh";
  case Activation::QuickGelu:
    return "quick_gelu";
  case Activation::Silu:
    return "silu";
  case Activation::ReluSquared:
    return "relu_squared";
  case Activation::Sigmoid:
    return "sigmoid";
  case Activation::Tanh:
    return "tanh";
  case Activation::Softplus:
    return "softplus";
  case Activation::Mish:
    return "mish";
  case Activation::Elu:
    return "elu";
  case Activation::LeakyRelu:
    return "leaky_relu";
  case Activation::HardSwish:
    return "hardswish";
  }
  return "";
}

const char *stringify(RouterScores scores) {
  switch (scores) {
  case RouterScores::Softmax:
    return "softmax";
  case RouterScores::Sigmoid:
    return "sigmoid";
  case RouterScores::SparseMixer:
    return "sparse_mixer";
  }
  return "";
}

const char *stringify(GroupScore score) {
  switch (score) {
  case GroupScore::Max:
    return "max";
  case GroupScore::TopTwo:
    return "top_two";
  }
  return "";
}

const char *stringify(Placement placement) {
  switch (placement) {
  case Placement::Pre:
    return "pre";
  case Placement::Post:
    return "post";
  case Placement::Peri:
    return "peri";
  case Placement::Parallel:
    return "parallel";
  case Placement::Branch:
    return "branch";
  }
  return "";
}

const char *stringify(PositionKind kind) {
  switch (kind) {
  case PositionKind::Learned:
    return "learned";
  case PositionKind::Sinusoidal:
    return "sinusoidal";
  }
  return "";
}

const char *stringify(SinusoidLayout layout) {
  switch (layout) {
  case SinusoidLayout::Interleaved:
    return "interleaved";
  case SinusoidLayout::Blocks:
    return "blocks";
  case SinusoidLayout::Tensor2Tensor:
    return "tensor2tensor";
  case SinusoidLayout::CosinesFirst:
    return "cosines_first";
  }
  return "";
}

const char *stringify(PositionCount count) {
  switch (count) {
  case PositionCount::Input:
    return "input";
  case PositionCount::Tokens:
    return "tokens";
  case PositionCount::Unpadded:
    return "unpadded";
  }
  return "";
}

const char *stringify(PoolKind kind) {
  switch (kind) {
  case PoolKind::First:
    return "first";
  case PoolKind::Last:
    return "last";
  case PoolKind::Mean:
    return "mean";
  case PoolKind::Max:
    return "max";
  case PoolKind::Token:
    return "token";
  case PoolKind::Id:
    return "id";
  case PoolKind::LastId:
    return "last_id";
  case PoolKind::LargestId:
    return "largest_id";
  }
  return "";
}

const char *stringify(Bidirectional tokens) {
  switch (tokens) {
  case Bidirectional::None:
    return "none";
  case Bidirectional::Image:
    return "image";
  case Bidirectional::Prompt:
    return "prompt";
  }
  return "";
}

const char *stringify(Interpolation interpolation) {
  switch (interpolation) {
  case Interpolation::None:
    return "none";
  case Interpolation::Bilinear:
    return "bilinear";
  case Interpolation::Bicubic:
    return "bicubic";
  case Interpolation::Corners:
    return "corners";
  case Interpolation::Centre:
    return "centre";
  case Interpolation::Antialias:
    return "antialias";
  case Interpolation::AntialiasBicubic:
    return "antialias_bicubic";
  }
  return "";
}

const char *stringify(Function::Kind kind) {
  switch (kind) {
  case Function::Kind::Activation:
    return "activation";
  case Function::Kind::Softmax:
    return "softmax";
  case Function::Kind::Rotary:
    return "rotary";
  }
  return "";
}

const char *stringify(CellKind kind) {
  switch (kind) {
  case CellKind::Rnn:
    return "rnn";
  case CellKind::RnnRelu:
    return "rnn_relu";
  case CellKind::Gru:
    return "gru";
  case CellKind::Lstm:
    return "lstm";
  }
  return "";
}

const char *stringify(ScoreKind kind) {
  switch (kind) {
  case ScoreKind::Dot:
    return "dot";
  case ScoreKind::General:
    return "general";
  case ScoreKind::Additive:
    return "additive";
  case ScoreKind::Concat:
    return "concat";
  }
  return "";
}

} // namespace attune::spec
