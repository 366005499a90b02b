//===- MeshStatistics.h - What one rank has and sends -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_ANALYSIS_MESHSTATISTICS_H
#define ATTUNE_ANALYSIS_MESHSTATISTICS_H

#include "mlir/IR/BuiltinOps.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace attune {

/// One rank of a model that several share, for a generated token, or where
/// nothing is generated for one sequence.
struct MeshStatistics {
  int64_t parts = 1;   ///< of the weights, one rank each
  int64_t sharers = 1; ///< times as many ranks share positions
  int64_t ranks() const { return parts * sharers; }
  /// Tokens of the sequence; 0: the figures are for a generated token.
  int64_t tokens = 0;
  /// The parameters of each rank; what all of them have counts for each.
  std::vector<uint64_t> parameters;
  double flops = 0;     ///< 2 for each multiply-add
  double readBytes = 0; ///< weights, and cached keys and values
  /// Exchanges among all ranks, one after the other, the first rank's word of
  /// what to do included.
  int64_t exchanges = 0;
  int64_t messages = 0; ///< that one rank sends
  double sentBytes = 0; ///< by one rank

  /// Seconds that the exchanges take over links of `latency` seconds and
  /// `bandwidth` bytes a second, if each rank has one.
  double exchangeSeconds(double latency, double bandwidth) const {
    return double(exchanges) * latency + sentBytes / bandwidth;
  }
};

/// Counts what the entry `decode` of an optimised module does for one token
/// after `tokens` others (another stream has as many), or else what `forward`
/// does for one sequence of `tokens`. Nothing if there is no such entry, or if
/// something is in a loop whose length is not known.
std::optional<MeshStatistics> countMesh(mlir::ModuleOp module, int64_t tokens);

} // namespace attune

#endif // ATTUNE_ANALYSIS_MESHSTATISTICS_H
