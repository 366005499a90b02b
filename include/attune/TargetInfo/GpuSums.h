//===- GpuSums.h - Tiles of attention by sums over keys ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_GPUSUMS_H
#define ATTUNE_TARGETINFO_GPUSUMS_H

#include <cstdint>
#include <optional>

namespace attune {

/// The tile of a block that computes attention by sums over keys: `tokens` at a
/// time against some columns of the values. Features of keys and queries,
/// scores, values and sums lie in shared memory as f32; the depth and both
/// sides are multiples of 4, which threads read at once.
struct SumsTile {
  int64_t width;   ///< of a head's features
  int64_t tokens;  ///< of a chunk
  int64_t columns; ///< of the sums, besides the one that normalises

  static constexpr int64_t kThreads = 128;

  int64_t depth() const { return (width + 3) / 4 * 4; }
  /// Elements from row to row: an odd number of fours, so that as many rows as
  /// threads read at once have banks of their own.
  static int64_t strideOf(int64_t columns) { return (columns / 4 | 1) * 4; }
  int64_t featureElements() const { return tokens * strideOf(depth()); }
  int64_t scoreElements() const { return tokens * strideOf(tokens); }
  int64_t sharedBytes() const {
    return 4 * (2 * featureElements() + scoreElements() + tokens * columns +
                depth() * (columns + 1));
  }
};

/// None for features too wide for shared memory. `fewTokens`: at most
/// kFewTokens, for which there are many small blocks.
std::optional<SumsTile> chooseSumsTile(int64_t width, int64_t valueWidth,
                                       bool fewTokens);
constexpr int64_t kFewTokens = 4;

/// Least tokens of a part, and most parts, where tokens are split into parts
/// that are summed on their own.
constexpr int64_t kLeastTokensOfPart = 256, kMostPartsOfTokens = 64;

} // namespace attune

#endif // ATTUNE_TARGETINFO_GPUSUMS_H
