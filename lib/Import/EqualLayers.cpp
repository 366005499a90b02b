//===- EqualLayers.cpp - Layers that share functions ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "EqualLayers.h"

#include "attune/Spec/Taps.h"

#include <map>
#include <set>

using namespace attune;

/// Whether repeats of a block can be told apart by their number alone.
static bool canShare(const spec::Layer &layer) {
  const auto *block = std::get_if<spec::Block>(&layer.op);
  // Keys and values of another stream are made layer by layer; scores that are
  // divided by a number count their own layer's repeats.
  return block && layer.cycle.empty() && !block->cross &&
         !(block->attention && block->attention->scaleByLayer);
}

EqualLayers::EqualLayers(const spec::Model &model, size_t stream)
    : wholes(model.streams[stream].layers) {
  // Attention weights that are outputs have a place for each layer.
  std::set<size_t> tapped;
  std::string problem;
  for (const spec::Output &output : model.outputs)
    if (auto tap = spec::findAttentionTap(model, output.layer, problem))
      for (const spec::AttentionTap::Part &part : tap->parts)
        if (tap->stream == stream)
          tapped.insert(part.layer);

  std::map<std::string, size_t> firsts;
  for (size_t n = 0; n < wholes.size(); ++n) {
    Place &place = places.emplace_back(Place{n, 0});
    const spec::Layer &layer = wholes[n];
    // Keys that others read are alone in their cache.
    if (tapped.count(n) || !canShare(layer) ||
        spec::lendsKeys(model.streams[stream], layer))
      continue;
    auto [known, fresh] = firsts.insert({spec::printShared(layer), n});
    if (fresh)
      continue;
    spec::Layer &whole = wholes[known->second];
    place = {known->second, whole.repeat};
    whole.numbers = spec::numbersOf(whole);
    std::vector<int64_t> own = spec::numbersOf(layer);
    whole.numbers.insert(whole.numbers.end(), own.begin(), own.end());
    whole.repeat += layer.repeat;
  }
}
