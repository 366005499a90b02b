//===- GpuTiles.cpp - Tiles of products on tensor cores ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuTiles.h"

#include <algorithm>
#include <cstdlib>

namespace attune {

/// 90 of "sm_90a"; 0 of what has no number.
static int numberOf(const std::string &chip) {
  size_t at = chip.find('_');
  return at == std::string::npos ? 0 : std::atoi(chip.c_str() + at + 1);
}

int64_t countMultiprocessors(const std::string &chip) {
  struct Chip {
    int number, count;
  };
  constexpr Chip chips[] = {{80, 108}, {86, 84},   {87, 16},  {89, 128},
                            {90, 132}, {100, 148}, {120, 170}};
  int number = numberOf(chip);
  for (const Chip &known : chips)
    if (known.number == number)
      return known.count;
  return 108;
}

bool hasWarpgroups(const std::string &chip) { return chip == "sm_90a"; }

bool hasDependentLaunch(const std::string &chip) {
  return numberOf(chip) >= 90;
}

int64_t threadsOfPanel(int64_t panels, int64_t depth, int64_t multiprocessors) {
  // Registers of a multiprocessor are enough for about this many threads.
  constexpr int64_t residents = 640, loadsAtOnce = 4;
  int64_t threads = 128;
  while (threads < 512 && 2 * threads * panels <= residents * multiprocessors &&
         2 * threads * loadsAtOnce <= depth)
    threads *= 2;
  return threads;
}

int64_t blocksAtOnce(int64_t panels, int64_t threads, int64_t rows,
                     int64_t multiprocessors) {
  // With fewer registers a thread would keep some in memory.
  constexpr int64_t registers = 65536;
  int64_t ofThread = rows == 1 ? 80 : 128;
  int64_t wanted = (panels + multiprocessors - 1) / multiprocessors;
  return std::max<int64_t>(1,
                           std::min(wanted, registers / (ofThread * threads)));
}

int64_t costOfTiles(const ProductTile &tile, int64_t rows, int64_t columns,
                    int64_t multiprocessors) {
  // Moving a row or column of a tile costs as much as this many of its
  // products.
  constexpr int64_t traffic = 32;
  auto parts = [](int64_t size, int64_t of) { return (size + of - 1) / of; };
  int64_t blocks = parts(rows, tile.rows) * parts(columns, tile.columns);
  return parts(blocks, multiprocessors) *
         (tile.rows * tile.columns + traffic * (tile.rows + tile.columns));
}

int64_t rowsForLargeTiles(int64_t columns, int64_t multiprocessors) {
  // With enough rows for many waves the larger tile wins.
  auto better = [&](int64_t rows) {
    return costOfTiles(kLargeTile, rows, columns, multiprocessors) <=
           costOfTiles(kSmallTile, rows, columns, multiprocessors);
  };
  int64_t first = 16 * kLargeTile.rows * multiprocessors;
  while (first > kLargeTile.rows && better(first - kSmallTile.rows))
    first -= kSmallTile.rows;
  return first;
}

//===----------------------------------------------------------------------===//
// Plans of warpgroups
//===----------------------------------------------------------------------===//

static int64_t ceilOf(int64_t number, int64_t by) {
  return (number + by - 1) / by;
}

WarpgroupTile groupTileOf(const GroupPlan &plan, int64_t weightBits) {
  if (weightBits < 16)
    return plan.rows == groupTileOf(weightBits).rows
               ? groupTileOf(weightBits)
               : fewRowsTileOf(weightBits);
  return plan.columns == kNarrowGroupTile.columns ? kNarrowGroupTile
         : plan.columns == kGroupTile.columns     ? kGroupTile
                                                  : kWideGroupTile;
}

int64_t GroupProduct::stagesOfGroup() const {
  constexpr int64_t stage = kGroupTile.depth;
  return weightBits == 16
             ? 1
             : std::clamp<int64_t>(group / stage, 1, ceilOf(depth, stage));
}

/// Instructions of PTX of a warp that multiplies for a stage of numbers in few
/// bits: they are widened, and sums of groups meet their scales.
static int64_t instructionsOf(const WarpgroupTile &tile,
                              const GroupProduct &product) {
  int64_t widen = product.weightBits == 4 ? 176 : 143;
  int64_t end = tile.rows / 2 + 10;
  if (product.zeros) {
    widen += 94;
    end += tile.rows / 2 + tile.rows / 8 + 20;
  }
  return widen + end * tile.depth / std::max<int64_t>(product.group, 1);
}

int64_t costOfGroups(const GroupPlan &plan, int64_t rows,
                     const GroupProduct &product, int64_t multiprocessors) {
  // What a multiprocessor does in a cycle: multiply-adds, bytes of shared
  // memory, bytes that come from a cache or go there, and from memory.
  constexpr int64_t products = 2048, shared = 128, cached = 32, fromMemory = 20;
  // The first operands' way, and the start of one more kernel.
  constexpr int64_t start = 1500, anotherKernel = 2500;
  const WarpgroupTile tile = groupTileOf(plan, product.weightBits);
  bool few = product.weightBits < 16;
  // A warpgroup multiplies 64 rows by all columns; or, in few bits, all rows by
  // 64 columns.
  constexpr int64_t half = 64;
  int64_t groups = few || rows > half ? 2 : 1;
  int64_t others = few ? tile.rows : tile.columns;
  int64_t step = groups * half * others * tile.depth / products;
  // A product of 16 of the depth reads its operands, and copies write the
  // stage.
  int64_t reads = groups * tile.depth * ((few ? 0 : half) + others) * 2;
  step = std::max(step, (reads + tile.stageBytes()) / shared);
  // Two of these warps share a scheduler.
  if (few)
    step = std::max(step, 2 * instructionsOf(tile, product));
  int64_t unit = product.stagesOfGroup();
  int64_t units = ceilOf(ceilOf(product.depth, tile.depth), unit);
  int64_t steps = ceilOf(units, plan.parts) * unit;
  int64_t store = tile.rows * tile.columns * (plan.parts > 1 ? 4 : 2) / cached;
  int64_t blocks = ceilOf(rows, tile.rows) *
                   ceilOf(product.columns, tile.columns) * plan.parts;
  int64_t cost =
      ceilOf(blocks, multiprocessors) * (start + steps * step + store);
  int64_t bytes = product.columns * product.depth * product.weightBits / 8;
  cost = std::max(cost, bytes / (fromMemory * multiprocessors));
  if (plan.parts > 1)
    cost += anotherKernel + rows * product.columns * 4 * plan.parts /
                                (cached * multiprocessors);
  return cost;
}

/// All plans there are.
static std::vector<GroupPlan> plansOf(const GroupProduct &product, bool split) {
  // Fewer stages are not worth a block.
  constexpr int64_t leastSteps = 4;
  std::vector<GroupPlan> whole, plans;
  if (product.weightBits < 16)
    for (const WarpgroupTile &tile :
         {groupTileOf(product.weightBits), fewRowsTileOf(product.weightBits)})
      whole.push_back({tile.columns, 1, tile.rows});
  else
    for (const WarpgroupTile &tile :
         {kWideGroupTile, kGroupTile, kNarrowGroupTile})
      whole.push_back({tile.columns});
  int64_t unit = product.stagesOfGroup();
  int64_t units = ceilOf(ceilOf(product.depth, kGroupTile.depth), unit);
  for (GroupPlan plan : whole) {
    plans.push_back(plan);
    if (!split || plan.columns != kGroupTile.columns)
      continue;
    for (plan.parts = 2; plan.parts <= kMostDepthParts; ++plan.parts)
      // No part may be empty.
      if (units * unit / plan.parts >= leastSteps &&
          ceilOf(units, ceilOf(units, plan.parts)) == plan.parts)
        plans.push_back(plan);
  }
  return plans;
}

std::vector<PlannedRows> planGroups(const GroupProduct &product,
                                    int64_t multiprocessors, bool split) {
  // Rows are few in steps of these, then in larger ones; beyond the last ones
  // they are many for any tile.
  constexpr int64_t few = 32, lastFew = 128, lastRows = 8192;
  std::vector<GroupPlan> plans = plansOf(product, split);
  std::vector<PlannedRows> found;
  for (int64_t rows = few; rows <= lastRows;
       rows += rows < lastFew ? few : lastFew) {
    auto cost = [&](const GroupPlan &plan) {
      return costOfGroups(plan, rows, product, multiprocessors);
    };
    GroupPlan best = *std::min_element(
        plans.begin(), plans.end(),
        [&](const auto &a, const auto &b) { return cost(a) < cost(b); });
    // Another kernel for a few rows has to be clearly better.
    if (!found.empty() && 20 * cost(found.back().plan) <= 21 * cost(best))
      best = found.back().plan;
    if (found.empty() || !(found.back().plan == best))
      found.push_back({rows, best});
    found.back().rows = rows;
  }
  return found;
}

int64_t WarpgroupTile::sharedBytes() const {
  return ringBytes() + rowSumBytes() + kTileAlignment;
}

uint64_t WarpgroupTile::rowDescriptor() const {
  // Atoms of eight rows one below the other. Along the depth there is one.
  return describeMatrix(16, 8 * 128, /*swizzle=*/1);
}

uint64_t WarpgroupTile::panelDescriptor() const {
  // Eight of the depth are one behind the other, panels a stage's depth apart.
  return describeMatrix(8 * 16, uint64_t(depth) * 16, /*swizzle=*/0);
}

} // namespace attune
