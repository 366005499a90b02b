//===- CpuAttention.cpp - How a CPU computes attention, and why -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/CpuAttention.h"

#include "attune/TargetInfo/TargetDescription.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FormatVariadic.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace attune {
namespace {

/// Least scratch of a row of queries and a row of sums.
constexpr int64_t kLeastRowBytes = 256;
/// Sizes in place of those that only a run knows: a prompt, and a cache.
constexpr int64_t kTypicalQueries = 1024, kTypicalCache = 4096;
/// Bytes between the first-level cache and the second in a cycle.
constexpr double kCacheRate = 32;
/// A tile whose states go to memory to be merged takes this much longer.
constexpr double kSplitting = 1.125;

int64_t largestDivisor(int64_t number, int64_t most) {
  int64_t divisor = std::min(number, most);
  while (number % divisor != 0)
    --divisor;
  return divisor;
}

/// The cost of each strategy, for sizes that are known or typical.
struct Estimate {
  Estimate(const CpuAttentionSizes &sizes, const AttentionBudget &budget,
           const AttentionPlan &plan)
      : sizes(sizes), budget(budget), plan(plan),
        batch(double(sizes.batch.value_or(1))),
        queries(double(plan.queriesTaken)), keys(double(plan.keysTaken)),
        heads(double(sizes.heads)) {
    double sequences = batch * heads / double(sizes.group);
    double wanted = std::min(
        std::ceil(double(kTilesOfThread * budget.threads) / sequences),
        std::ceil(queries / double(std::max<int64_t>(1, plan.fewQueries))));
    tiles = std::ceil(queries / double(plan.tileQueries));
    if (plan.adapts())
      tiles = std::max(tiles, wanted);
    tiles *= sequences;
  }

  /// Cycles of each thread: for blocks of `step` keys, in `parts` parts.
  /// Unfused, scores are written, softmax reads and writes them, and the
  /// product with values reads them again.
  double cycles(double step, double parts = 1, bool unfused = false) const {
    double rows = batch * heads * queries;
    double channels = double(sizes.width + sizes.valueWidth);
    double threads = double(budget.threads);
    double products = rows * keys * channels / double(budget.multiplyAdds);
    // From memory once for a tile; then packed, if queries are many, and read.
    double elements = tiles * keys * channels;
    double fromMemory = double(budget.lineCycles) / double(kLineBytes);
    double reading = elements * double(sizes.elementBytes) * fromMemory;
    bool packs = queries * double(sizes.group) > kQueriesInPlace;
    if (packs)
      reading = elements * 4 * (3 / kCacheRate);
    double sums = rows * double(sizes.valueWidth) * 4;
    double rescaling = (std::ceil(keys / step) - 1) * 2 * sums / kCacheRate;
    double work = products + reading + rescaling;
    if (unfused) {
      bool fits = plan.scoreBytes / threads <= double(budget.cacheBytes);
      work += 4 * plan.scoreBytes * (fits ? 1 / kCacheRate : fromMemory);
    }
    if (parts > 1)
      work = work * kSplitting + 2 * parts * sums / kCacheRate;
    // The last tile of a thread begins when others are done: half a tile lost.
    double tasks = tiles * parts;
    return work * std::max(1 / tasks, 1 / threads + 0.5 / tasks);
  }

  /// Parts of the keys, if they are split.
  double parts() const {
    double most = std::floor(double(plan.mostParts) / queries);
    return std::clamp(std::ceil(keys / double(plan.leastKeys)), 1.0,
                      std::max(1.0, most));
  }

  const CpuAttentionSizes &sizes;
  const AttentionBudget &budget;
  const AttentionPlan &plan;
  double batch, queries, keys, heads, tiles;
};

const char *nameOf(AttentionWay way) {
  switch (way) {
  case AttentionWay::Unfused:
    return "unfused";
  case AttentionWay::OnePass:
    return "in one pass";
  case AttentionWay::Flash:
    return "by blocks of keys";
  case AttentionWay::SplitKeys:
    return "with split keys";
  }
  return "";
}

} // namespace

AttentionPlan planAttention(const CpuAttentionSizes &sizes,
                            const AttentionBudget &budget) {
  AttentionPlan plan;
  int64_t channelBytes = (sizes.width + sizes.valueWidth) * 4;
  plan.keys = budget.keyBlock;
  if (budget.keyBytes > 0) {
    // A multiple of any register tile's columns, and of few such tiles.
    int64_t fit = budget.keyBytes / channelBytes / kFewKeys * kFewKeys;
    plan.keys = std::min(plan.keys, std::max(fit, kFewKeys));
  }
  int64_t queries = std::max<int64_t>(1, budget.queryBlock / sizes.group);
  plan.even = 0;
  // However narrow heads are, their rows fill registers; but what a schedule
  // says is left as it is, and a thread of a GPU has one register tile.
  if (!sizes.maskBlock && queries >= budget.rows && budget.queryBytes > 0)
    queries = queries / budget.rows * budget.rows;
  if (!sizes.maskBlock && queries % budget.rows == 0 &&
      budget.queryBlock > budget.rows)
    plan.even = budget.rows;
  plan.tileQueries = plan.fewQueries = queries;
  if (plan.even != 0) {
    int64_t rowBytes = std::max(channelBytes, kLeastRowBytes) * sizes.group;
    plan.tileQueries =
        std::max(queries, budget.queryBytes / rowBytes / plan.even * plan.even);
  }
  if (sizes.queries)
    plan.tileQueries = std::min(plan.tileQueries, *sizes.queries);
  if (sizes.maskBlock) {
    plan.tileQueries = largestDivisor(sizes.maskBlock->first, plan.tileQueries);
    plan.keys = largestDivisor(sizes.maskBlock->second, plan.keys);
  }
  plan.fewQueries = std::min(plan.fewQueries, plan.tileQueries);
  plan.mostParts = budget.threads;
  int64_t storedBytes = channelBytes / 4 * sizes.elementBytes;
  plan.leastKeys = std::max(kFewKeys, budget.partBytes / storedBytes);

  plan.queriesTaken =
      sizes.queries.value_or(sizes.cached ? 1 : kTypicalQueries);
  // A batch of unknown size is taken to have enough tiles.
  bool few = !sizes.maskBlock &&
             (sizes.cached || (sizes.batch && sizes.queries &&
                               *sizes.queries <= plan.mostParts / 2));
  plan.keysTaken = sizes.keys.value_or(few ? kTypicalCache : kTypicalQueries);
  plan.scoreBytes = double(sizes.batch.value_or(1)) * double(sizes.heads) *
                    double(plan.queriesTaken) * double(plan.keysTaken) * 4;
  Estimate estimate(sizes, budget, plan);
  struct Candidate {
    AttentionWay way;
    int64_t keys;
    double cycles;
  };
  bool whole = sizes.keys && *sizes.keys <= plan.keys;
  std::vector<Candidate> candidates = {
      {whole ? AttentionWay::OnePass : AttentionWay::Flash, plan.keys,
       estimate.cycles(double(plan.keys))},
      {AttentionWay::Unfused, plan.keys,
       estimate.cycles(double(plan.keys), 1, /*unfused=*/true)}};
  // Scores of a register tile may take half of the first-level cache instead of
  // a quarter, and packed keys and values of the second, if these are all.
  if (sizes.keys && !whole && !sizes.maskBlock && budget.keyBytes > 0 &&
      *sizes.keys <= 2 * plan.keys &&
      *sizes.keys <= budget.cacheBytes / 2 / channelBytes)
    candidates.push_back({AttentionWay::OnePass, *sizes.keys,
                          estimate.cycles(double(*sizes.keys))});
  if (few && estimate.parts() > 1)
    candidates.push_back(
        {AttentionWay::SplitKeys, plan.keys,
         estimate.cycles(double(plan.keys), estimate.parts())});
  llvm::sort(candidates, [](const Candidate &a, const Candidate &b) {
    return std::pair(a.cycles, a.way) < std::pair(b.cycles, b.way);
  });
  plan.way = candidates[0].way;
  plan.keys = candidates[0].keys;
  plan.cycles = candidates[0].cycles;
  for (const Candidate &other : llvm::drop_begin(candidates))
    plan.others.push_back({other.way, other.cycles});
  if (sizes.keys)
    plan.keys = std::min(plan.keys, *sizes.keys);
  return plan;
}

std::string AttentionPlan::range() const {
  return (adapts() ? std::to_string(fewQueries) + " to " : "") +
         std::to_string(tileQueries);
}

std::string AttentionPlan::explain(const CpuAttentionSizes &sizes) const {
  std::string text;
  if (way == AttentionWay::OnePass)
    text = llvm::formatv("attention in one pass: tiles of {0} queries by all "
                         "{1} keys, whose scores stay in the cache",
                         range(), keys);
  else
    text = llvm::formatv("flash attention: tiles of {0} queries by {1} keys, "
                         "no matrix of scores in memory",
                         range(), keys);
  if (way == AttentionWay::SplitKeys)
    text +=
        llvm::formatv("; few queries split the keys{0} into up to {1} "
                      "parts of at least {2}",
                      sizes.cached ? " of a cache" : "", mostParts, leastKeys);
  return text;
}

std::string AttentionPlan::reason() const {
  auto thousands = [](double cycles) { return std::llround(cycles / 1000); };
  std::string text =
      llvm::formatv("{0} {1} by {2} keys take each of {3} threads {4} "
                    "thousand cycles",
                    queriesTaken, queriesTaken == 1 ? "query" : "queries",
                    keysTaken, mostParts, thousands(cycles));
  for (auto [way, cycles] : others) {
    text += llvm::formatv("{0} {1} thousand {2}",
                          way == others.back().first ? ", and" : ",",
                          thousands(cycles), nameOf(way));
    if (way == AttentionWay::Unfused)
      text +=
          llvm::formatv(" (a matrix of scores of {0:F1} MB)", scoreBytes / 1e6);
  }
  return text;
}

} // namespace attune
