//===- CountJoint.cpp - Work of blocks of two kinds of tokens ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counter.h"

#include <algorithm>

namespace attune {

using namespace spec;

void Counter::countConcat(const Concat &concat) {
  const Extent &behind = extents[concat.source];
  auto add = [](std::vector<double> &parts, const Extent &of) {
    if (of.parts.empty())
      parts.push_back(of.tokens);
    parts.insert(parts.end(), of.parts.begin(), of.parts.end());
  };
  std::vector<double> parts;
  add(parts, here);
  add(parts, behind);
  here.parts = parts;
  here.tokens += behind.tokens;
}

void Counter::countSlice(const Slice &slice) {
  auto part = static_cast<size_t>(slice.part);
  if (slice.part >= 0 && part < here.parts.size()) {
    here.tokens = here.parts[part];
  } else {
    here.tokens = std::max(here.tokens - static_cast<double>(slice.first), 0.0);
    if (slice.count)
      here.tokens = std::min(here.tokens, static_cast<double>(slice.count));
  }
  here.parts.clear();
}

/// Both kinds have projections and a feed-forward layer for their own tokens,
/// and scores with all.
void Counter::countJoint(const Block &block, int64_t width) {
  const Joint &joint = *block.joint;
  const Attention &attention = *block.attention;
  Extent all = here;
  double channels = static_cast<double>(width);
  double heads = static_cast<double>(attention.heads);
  double headDim = static_cast<double>(attention.headDim);
  double valueDim = static_cast<double>(attention.valueDim);
  double keyRows =
      static_cast<double>(attention.kvHeads) * (headDim + valueDim);
  countModulation(*block.modulation, numModulated(block) * 3 * width);
  addFlops("joint.modulation",
           2 * all.batch * (joint.keysOnly ? 2 : 6) * channels *
               static_cast<double>(block.modulation->sourceWidth));
  for (size_t part = 0; part < all.parts.size(); ++part) {
    bool other = static_cast<int64_t>(part) == joint.part;
    bool keysOnly = other && joint.keysOnly;
    std::string prefix = other ? "joint." : "";
    here = {all.batch, all.parts[part]};
    double queryRows = keysOnly ? 0 : heads * headDim;
    addFlops(prefix + "attention.qkv",
             2 * tokens() * channels * (queryRows + keyRows));
    if (keysOnly)
      continue;
    addFlops("attention.scores",
             2 * tokens() * all.tokens * heads * (headDim + valueDim));
    addFlops(prefix + "attention.o",
             2 * tokens() * channels * heads * valueDim);
    if (joint.second && !other)
      countAttention("attention2.", attention, width, width);
    countFFN(prefix + "ffn.", *block.ffn, width);
  }
  here = all;
  current.scoreBytes =
      std::max(current.scoreBytes, here.batch * heads * here.tokens *
                                       here.tokens * sizeOf(model.dtype));
  alive(tokens() * (2 * channels + heads * headDim + keyRows));
}

} // namespace attune
