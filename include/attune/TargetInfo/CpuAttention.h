//===- CpuAttention.h - How a CPU computes attention, and why ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Tiles of queries and blocks of keys, and which of three ways to take: scores
// of all keys at once, flash attention over blocks of keys, or flash attention
// of parts of the keys whose states are merged. Each is estimated in cycles.
//
// Unfused attention, with a matrix of all scores in memory, is estimated beside
// them. It has the products of flash attention and the matrix's way there and
// back in addition, so it is never the best, and has no code but the reference
// path's: the estimate says how much fusion is worth.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGETINFO_CPUATTENTION_H
#define ATTUNE_TARGETINFO_CPUATTENTION_H

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace attune {

/// Up to this many query rows read keys in place; more amortise packing.
constexpr int64_t kQueriesInPlace = 16;
/// Fewer keys at a time are not worth the rescaling of sums, which costs as
/// much as half a key.
constexpr int64_t kFewKeys = 64;
/// Tiles of queries times heads that keep a thread as busy as the others. How
/// many threads there are is known when a program runs.
constexpr int64_t kTilesOfThread = 4;

/// Sizes of one attention; those that only a run knows are nothing.
struct CpuAttentionSizes {
  std::optional<int64_t> batch, queries, keys;
  int64_t heads;             ///< of queries
  int64_t group;             ///< of them, which walk the keys together
  int64_t width, valueWidth; ///< of a head's keys and values
  int64_t elementBytes = 4;  ///< of them, where they are stored
  /// Keys come from a cache: most of the time there is one query.
  bool cached = false;
  /// Queries and keys of a block of the mask, if it has such. A tile lies in
  /// one.
  std::optional<std::pair<int64_t, int64_t>> maskBlock;
};

/// Limits of a tile and costs of the machine; the options of
/// convert-attune-attention-to-online, which describes them.
struct AttentionBudget {
  int64_t queryBlock, queryBytes, keyBlock, keyBytes;
  int64_t rows;         ///< of a register tile
  int64_t matrixRows;   ///< of a tile of bf16 in a matrix unit; 0: none
  int64_t threads;      ///< that tiles are cut for
  int64_t partBytes;    ///< of stored keys and values of a part, at least
  int64_t cacheBytes;   ///< of the second level
  int64_t lineCycles;   ///< from one line of memory to the next
  int64_t multiplyAdds; ///< of one element each, in a cycle
};

enum class AttentionWay { Unfused, OnePass, Flash, SplitKeys };

/// Tiles of one attention, and the way that it takes.
struct AttentionPlan {
  AttentionWay way;
  /// Queries of a tile: at most, and where tiles are few.
  int64_t tileQueries, fewQueries;
  /// Tiles but the last have a multiple of this many queries, and all tiles
  /// have about as many; 0: each but the last is as large as allowed.
  int64_t even;
  int64_t keys; ///< at a time
  /// Parts of the keys times queries at most, and keys of a part at least.
  int64_t mostParts, leastKeys;

  /// Cycles of each thread, for these sizes: those of the attention, or typical
  /// ones in place of what is not known.
  int64_t queriesTaken, keysTaken;
  double cycles;
  /// The other ways that there are for the sizes, and their cycles; the best
  /// first.
  std::vector<std::pair<AttentionWay, double>> others;
  double scoreBytes; ///< of the matrix that unfused attention makes

  /// Tiles may be smaller where there would be few.
  bool adapts() const { return tileQueries > fewQueries; }
  /// The number of queries of a tile: "12 to 192".
  std::string range() const;
  /// The way and its tiles.
  std::string explain(const CpuAttentionSizes &sizes) const;
  /// Why so, in figures.
  std::string reason() const;
};

AttentionPlan planAttention(const CpuAttentionSizes &sizes,
                            const AttentionBudget &budget);

} // namespace attune

#endif // ATTUNE_TARGETINFO_CPUATTENTION_H
