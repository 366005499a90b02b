//===- MeshAxes.h - How many ranks share what -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_MESHAXES_H
#define ATTUNE_TRANSFORMS_MESHAXES_H

#include "llvm/ADT/StringRef.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

namespace attune {

/// The ranks that share a model: what --mesh takes, and "mesh" in a
/// description.
struct MeshAxes {
  int64_t tp = 1; ///< ranks that share heads, widths and the vocabulary
  int64_t ep = 1; ///< ranks that share the experts of mixtures: the same ranks
  int64_t sp = 1; ///< times as many, which share the positions of a sequence
  int64_t dp = 1; ///< groups of all of these, which share texts

  /// That share the weights.
  int64_t ranks() const { return std::max(tp, ep); }
  int64_t ranksOfGroup() const { return ranks() * sp; }
  int64_t processes() const { return ranksOfGroup() * dp; }
  /// Reads `tp=N`, `ep=N`, of as many ranks, `sp=N` and `dp=N`, in any order;
  /// nothing, with what was expected in `problem`, if it is not that.
  static std::optional<MeshAxes> parse(llvm::StringRef text,
                                       std::string &problem);
};

} // namespace attune

#endif // ATTUNE_TRANSFORMS_MESHAXES_H
