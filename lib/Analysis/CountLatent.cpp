//===- CountLatent.cpp - Cost of latent attention ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counter.h"
#include "VisiblePairs.h"

#include <algorithm>

using namespace attune::spec;

namespace attune {

/// Counts latent attention as it is computed: queries go into the space of the
/// cached rows and results come out of it, so scores cost the rank and not the
/// heads' own width.
void Counter::countLatent(const std::string &prefix, const Attention &attention,
                          int64_t width) {
  const Latent &latent = *attention.latent;
  double heads = static_cast<double>(attention.heads);
  double headDim = static_cast<double>(attention.headDim);
  double valueDim = static_cast<double>(attention.valueDim);
  double channels = static_cast<double>(width);
  double rank = static_cast<double>(latent.rank);
  double nope = static_cast<double>(latent.nopeDim);
  double row = rank + headDim - nope;
  double queryRank = static_cast<double>(latent.queryRank);
  if (latent.queryRank) {
    addFlops(prefix + "q_a", 2 * tokens() * channels * queryRank);
    addFlops(prefix + "q_b", 2 * tokens() * queryRank * heads * headDim);
  } else {
    addFlops(prefix + "qkv", 2 * tokens() * channels * heads * headDim);
  }
  addFlops(prefix + "kv_a", 2 * tokens() * channels * row);
  addFlops(prefix + "kv_b", 2 * tokens() * heads * rank * (nope + valueDim));
  double visible = visiblePairs(attention, here.tokens, here.tokens);
  double cached = row;
  if (const auto &index = latent.index) {
    double indexHeads = static_cast<double>(index->heads);
    double indexDim = static_cast<double>(index->headDim);
    double asked = indexHeads * indexDim;
    addFlops(prefix + "index.qkv",
             2 * tokens() * (queryRank * asked + channels * indexDim));
    addFlops(prefix + "index.shares", 2 * tokens() * channels * indexHeads);
    addFlops(prefix + "index.scores", 2 * here.batch * visible * asked);
    alive(tokens() * (asked + indexDim + indexHeads));
    cached += indexDim;
    visible = std::min(visible, here.tokens * static_cast<double>(index->top));
  }
  double pairs = here.batch * heads * visible;
  addFlops(prefix + "scores", 2 * pairs * (row + rank));
  addFlops(prefix + "o", 2 * tokens() * heads * valueDim * channels);
  current.scoreBytes =
      std::max(current.scoreBytes, here.batch * heads * here.tokens *
                                       here.tokens * sizeOf(model.dtype));
  if (attention.causal != Causal::None)
    current.cacheBytes += static_cast<double>(current.repeat) * here.batch *
                          cachedTokens(attention) * cached *
                          sizeOf(model.dtype);
  alive(tokens() * (2 * channels + heads * (headDim + row + rank) + row));
}

} // namespace attune
