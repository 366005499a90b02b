//===- LowRank.h - Ranks that values decide ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TRANSFORMS_LOWRANK_H
#define ATTUNE_TRANSFORMS_LOWRANK_H

#include "Attune/AttuneDialect.h"
#include "attune/Transforms/Passes.h"
#include "attune/Weights/Checkpoint.h"

#include <map>
#include <memory>
#include <optional>
#include <string>

namespace attune {

/// The ranks that matrices of a checkpoint need. Each is found once, however
/// often a model is lowered.
class MatrixRanks {
public:
  explicit MatrixRanks(Checkpoint checkpoint)
      : checkpoint(std::move(checkpoint)) {}

  /// The least multiple of `step` at which every layer of the weight is off by
  /// at most `error`; nothing if it is more than `most`, or if `failed`, since
  /// the checkpoint has no such tensors, which is reported.
  std::optional<int64_t> find(WeightOp weight, double error, int64_t step,
                              int64_t most, DiagnosticEngine &diags,
                              bool &failed);

private:
  Checkpoint checkpoint;
  std::map<std::string, std::optional<int64_t>> ranks;
};

/// The pass `attune-low-rank` with weights that are open already.
std::unique_ptr<mlir::Pass> createLowRank(const LowRankOptions &options,
                                          std::shared_ptr<MatrixRanks> ranks);

} // namespace attune

#endif // ATTUNE_TRANSFORMS_LOWRANK_H
