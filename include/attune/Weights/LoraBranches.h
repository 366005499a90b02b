//===- LoraBranches.h - Adapters that stay apart ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_WEIGHTS_LORABRANCHES_H
#define ATTUNE_WEIGHTS_LORABRANCHES_H

#include "attune/Weights/Checkpoint.h"

#include <map>
#include <string>
#include <vector>

namespace attune {

/// Adapters of PEFT that are kept beside the matrices they are for: what
/// attune-lora-branches makes room for.
class LoraBranches {
public:
  /// Adds the adapter in `folder`, times `scale`, for tensors of `checkpoint`.
  /// It goes by the folder's own name. What is no sum of a matrix and two small
  /// ones is an error, which says so.
  bool add(const std::string &folder, double scale,
           const Checkpoint &checkpoint, DiagnosticEngine &diags);

  /// The adapters, in their order.
  const std::vector<std::string> &names() const { return adapters; }
  /// "TENSOR:RANK" for each tensor that one of them changes: the greatest rank.
  std::vector<std::string> ranks() const;
  /// A [rank, inner] of an adapter, with the factor in it; zeros where it has
  /// nothing or fewer rows.
  std::vector<float> makeDown(const std::string &tensor, size_t adapter,
                              int64_t rank, int64_t inner) const;
  /// B [outer, total] of an adapter, from column `begin` on.
  std::vector<float> makeUp(const std::string &tensor, size_t adapter,
                            int64_t outer, int64_t begin, int64_t total) const;

private:
  struct Matrices {
    int64_t rank = 0;
    std::vector<float> down, up; ///< [rank, inner], [outer, rank]
  };
  const Matrices *find(const std::string &tensor, size_t adapter) const;

  std::vector<std::string> adapters;
  /// By tensor, then by adapter.
  std::map<std::string, std::map<size_t, Matrices>> matrices;
};

} // namespace attune

#endif // ATTUNE_WEIGHTS_LORABRANCHES_H
