//===- Taps.h - Attention weights as outputs --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_SPEC_TAPS_H
#define ATTUNE_SPEC_TAPS_H

#include "attune/Spec/Spec.h"

namespace attune::spec {

/// Attention weights that an output asks for: `heads` of them from `firstHead`
/// on, [batch, heads, queries, keys], of one layer or of several, stacked.
struct AttentionTap {
  size_t stream = 0;
  bool cross = false; ///< those of a block's attention to another stream
  int64_t firstHead = 0, heads = 0;
  /// Layers of the stream; the repeats of each follow one another from `slot`.
  struct Part {
    size_t layer = 0;
    int64_t slot = 0;
  };
  std::vector<Part> parts;
  int64_t count = 0;             ///< of stacked maps; 0: one, without a stack
  std::optional<int64_t> repeat; ///< of the one layer that is asked for
};

/// The attention of a layer that a tap means; null if it has none.
const Attention *getTapped(const Layer &layer, bool cross);

/// Columns of the probabilities of low-rank attention, one for each sum of
/// tokens; nothing for other attention, whose columns are the tokens.
std::optional<int64_t> columnsOf(const Attention &attention);

/// The attention that `target` names, one of
///   LAYER.attention, LAYER.cross   of a layer ("h.3") or of all its repeats
///                                  ("h.{i}")
///   attentions, cross_attentions   of all blocks of the last stream with
///   blocks STREAM_attentions              of all blocks of a stream
/// with ":heads=N" or ":heads=N-M" behind it. Without a result `problem` says
/// why; it is empty if `target` asks for no attention at all.
std::optional<AttentionTap> findAttentionTap(const Model &model,
                                             const std::string &target,
                                             std::string &problem);

/// Everything that can be asked for, for messages.
std::vector<std::string> attentionNames(const Model &model);

} // namespace attune::spec

#endif // ATTUNE_SPEC_TAPS_H
