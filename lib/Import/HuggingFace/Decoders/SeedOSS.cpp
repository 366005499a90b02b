//===- SeedOSS.cpp - config.json of Seed-OSS --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

std::optional<Model> importSeedOSS(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 27648;
  defaults.layers = 64;
  defaults.heads = 80;
  defaults.kvHeads = 8;
  defaults.headDim = 128;
  defaults.vocab = 155136;
  defaults.length = 524288;
  std::optional<LlamaConfig> seed = readLlama(context, "seed_oss", defaults);
  bool bias = config.flag("attention_bias", true);
  bool outBias = config.flag("attention_out_bias", false);
  bool ffnBias = config.flag("mlp_bias", false);
  config.ignore({"residual_dropout", "pretraining_tp"});
  if (!seed || config.hasErrors())
    return std::nullopt;
  seed->block.attention->qkvBias = bias;
  seed->block.attention->outBias = outBias;
  seed->block.ffn->bias = ffnBias;
  return buildLlama(context, *seed);
}

} // namespace attune::hf
