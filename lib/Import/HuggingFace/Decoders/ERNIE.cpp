//===- ERNIE.cpp - config.json of ERNIE 4.5 ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importERNIE45(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = 1024;
  defaults.inner = 3072;
  defaults.layers = 18;
  defaults.heads = 16;
  defaults.kvHeads = 2;
  defaults.headDim = 128;
  defaults.vocab = 103424;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.tied = true;
  defaults.rope.theta = 500000;
  std::optional<LlamaConfig> ernie = readLlama(context, "ernie4_5", defaults);
  bool bias = config.flag("use_bias", false);
  if (!ernie || config.hasErrors())
    return std::nullopt;
  Attention &attention = *ernie->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.rope->interleaved = true;
  ernie->block.ffn->bias = bias;
  return buildLlama(context, *ernie);
}

} // namespace attune::hf
