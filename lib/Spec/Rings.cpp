//===- Rings.cpp - Caches of attention with a window ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Spec/Rings.h"

namespace attune::spec {

static bool hasWindowedCache(const Attention &attention) {
  return attention.window && attention.projections &&
         attention.source.empty() && !attention.linear &&
         attention.causal != Causal::None;
}

const char *whyNoRing(const Attention &attention) {
  if (!hasWindowedCache(attention))
    return nullptr;
  // Rotary angles are in the keys, and a window, slopes and causality go by
  // distances, which are the same wherever the keys lie.
  if (attention.blockSparse)
    return "its blocks are counted from the first key";
  if (attention.relativeBias || attention.relative)
    return "its biases are counted from the first key";
  if (attention.sequenceRank)
    return "it sums over all positions";
  if (!attention.lengthsInput.empty())
    return "its lengths are counted from the first key";
  return nullptr;
}

int64_t ringOf(const Model &model, const Attention &attention) {
  if (!hasWindowedCache(attention) || whyNoRing(attention))
    return 0;
  int64_t window = *attention.window;
  bool isShorter =
      model.context == 0 || window < model.context - model.windowSlack;
  return isShorter ? window : 0;
}

std::vector<int64_t> ringsOf(const Model &model, const Layer &layer) {
  auto ofBlock = [&](const Block &block) {
    return block.attention ? ringOf(model, *block.attention) : 0;
  };
  std::vector<int64_t> rings;
  for (const Block &block : layer.cycle)
    rings.push_back(ofBlock(block));
  if (!rings.empty())
    return rings;
  if (const auto *block = std::get_if<Block>(&layer.op))
    return {ofBlock(*block)};
  const auto *attention = std::get_if<Attention>(&layer.op);
  return {attention ? ringOf(model, *attention) : 0};
}

} // namespace attune::spec
