//===- HeadChoice.h - Which heads of a model go -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_DRIVER_HEADCHOICE_H
#define ATTUNE_LIB_DRIVER_HEADCHOICE_H

#include "attune/Spec/Spec.h"
#include "attune/Transforms/HeadRules.h"

#include <functional>

namespace attune::driver {

/// One attention of one repeat of a layer.
struct AttentionPlace {
  std::string name;   ///< "h.3.attention", as taps call it
  std::string output; ///< the first tensor of the matrix that takes its heads
  const spec::Attention *attention = nullptr;
};

/// Every attention with projections, in the order of the model.
std::vector<AttentionPlace> listAttentions(const spec::Model &model);

/// Heads that are pruned, and what the model becomes by it.
struct PrunedHeads {
  /// Words of attune-prune-heads, and of "prune_heads".
  std::vector<std::string> rules, words;
  /// The model with fewer heads, to be counted; it cannot be imported.
  spec::Model counted;
  int64_t before = 0, after = 0; ///< heads of queries of all layers
};

/// Takes the heads that `choose` gives, ascending, out of each attention.
/// Repeated layers that keep different numbers of heads become blocks of their
/// own in `model`. Nothing, with a `problem`, if an attention cannot lose
/// these.
std::optional<PrunedHeads> pruneHeads(
    spec::Model &model,
    const std::function<HeadRules::Heads(const AttentionPlace &)> &choose,
    std::string &problem);

/// The names that patterns of heads are matched with: `name`, and what is left
/// of it behind each of its dots.
std::vector<std::string> endingsOf(const std::string &name);

} // namespace attune::driver

#endif // ATTUNE_LIB_DRIVER_HEADCHOICE_H
