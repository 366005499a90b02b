//===- GpuTilesTest.cpp - Banks and the choice of tiles -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Banks.h"
#include "attune/TargetInfo/GpuFragments.h"

#include "gtest/gtest.h"

#include <algorithm>
#include <set>
#include <vector>

using namespace attune;

//===----------------------------------------------------------------------===//
// Banks
//===----------------------------------------------------------------------===//

TEST(Banks, TheCheckSeesConflicts) {
  std::vector<int64_t> column;
  for (int row = 0; row < 8; ++row)
    column.push_back(row * 64);
  EXPECT_EQ(conflicts(column, 16), 4);
}

TEST(Banks, EveryElementHasItsPlace) {
  for (int64_t bytes : {2, 4}) {
    SwizzledRows rows{bytes};
    std::set<int64_t> places;
    for (int row = 0; row < 128; ++row)
      for (int chunk = 0; chunk < 4; ++chunk)
        places.insert(rows.placeOf(row, chunk));
    EXPECT_EQ(places.size(), 512u);
    EXPECT_EQ(*places.rbegin(),
              128 * rows.elementsOfRow() - rows.elementsOfChunk());
  }
}

TEST(Banks, CopiesOfRows) {
  for (int64_t bytes : {2, 4}) {
    SwizzledRows rows{bytes};
    std::vector<int64_t> addresses;
    for (int64_t lane = 0; lane < 32; ++lane)
      addresses.push_back(rows.placeOf(lane / 4, lane % 4) * bytes);
    EXPECT_EQ(conflicts(addresses, 16), 1);
  }
}

TEST(Banks, MatricesOfRows) {
  SwizzledRows rows{2};
  for (int k = 0; k < rows.elementsOfRow(); k += 16) {
    std::vector<int64_t> addresses;
    for (int64_t lane = 0; lane < 32; ++lane)
      addresses.push_back(2 * rows.placeOf(namedDown(lane).row,
                                           namedDown(lane).column + k / 8));
    EXPECT_EQ(conflicts(addresses, 16), 1);
  }
}

TEST(Banks, PairsOfWideRows) {
  SwizzledRows rows{4};
  for (int pair = 0; pair < 4; ++pair) {
    std::vector<int64_t> addresses;
    for (int64_t lane = 0; lane < 32; ++lane) {
      PlaceIn<int64_t> place = placeInA(lane, pair);
      addresses.push_back(4 * rows.placeOfElement(place.row, place.column));
    }
    EXPECT_EQ(conflicts(addresses, 8), 1);
  }
}

// Panels: rows of 16 bytes one behind the other, of panels `step` rows long.
TEST(Banks, Panels) {
  for (int64_t step : {16, 32}) {
    std::vector<int64_t> copies, matrices;
    for (int64_t lane = 0; lane < 32; ++lane) {
      copies.push_back(lane * 16);
      PlaceIn<int64_t> named = namedDown(lane);
      matrices.push_back(2 * placeInPanels(named.column, named.row, step));
    }
    EXPECT_EQ(conflicts(copies, 16), 1);
    EXPECT_EQ(conflicts(matrices, 16), 1);
  }
}

// Panels of f32, eight channels wide: a copy is half a row; lane 4 * group +
// member reads channel `group` of rows 2 * member and 2 * member + 1.
TEST(Banks, WidePanels) {
  std::set<int64_t> rows;
  for (int64_t place = 0; place < 16; ++place) {
    EXPECT_EQ(placeOfWideRow(wideRowAt(place)), place);
    rows.insert(wideRowAt(place));
  }
  EXPECT_EQ(rows.size(), 16u);
  EXPECT_EQ(*rows.rbegin(), 15);
  for (int64_t half : {0, 8})
    for (int64_t odd : {0, 1}) {
      std::vector<int64_t> addresses;
      for (int64_t lane = 0; lane < 32; ++lane) {
        int64_t place = placeInWidePanel(lane, half + odd);
        EXPECT_EQ(wideRowAt(place / 8), half + odd + 2 * (lane % 4));
        addresses.push_back(4 * place);
      }
      EXPECT_EQ(conflicts(addresses, 4), 1);
    }
}

//===----------------------------------------------------------------------===//
// Warpgroups
//===----------------------------------------------------------------------===//

// The swizzle of 128 bytes by its definition, on addresses: bits 4 to 6 are
// exchanged with bits 7 to 9.
TEST(Warpgroups, Swizzle) {
  for (int64_t row = 0; row < 128; ++row)
    for (int64_t chunk = 0; chunk < 8; ++chunk) {
      int64_t address = row * 128 + chunk * 16;
      EXPECT_EQ(placeInAtom(row, chunk), address ^ ((address >> 7 & 7) << 4));
    }
  // A fragment of eight rows touches every bank once.
  for (int64_t chunk = 0; chunk < 8; ++chunk) {
    std::vector<int64_t> addresses;
    for (int64_t row = 0; row < 8; ++row)
      addresses.push_back(placeInAtom(row, chunk));
    EXPECT_EQ(conflicts(addresses, 16), 1);
  }
}

TEST(Warpgroups, TilesFit) {
  for (const WarpgroupTile &tile :
       {kNarrowGroupTile, kGroupTile, kWideGroupTile, groupTileOf(4),
        groupTileOf(8), fewRowsTileOf(4), fewRowsTileOf(8)}) {
    // What sm_90 gives one block, and a box's most elements.
    EXPECT_LE(tile.sharedBytes(), 227 << 10);
    EXPECT_LE(tile.depth * 2, 256);
    EXPECT_LE(tile.rows, 256);
    EXPECT_EQ(tile.stageBytes() % kTileAlignment, 0);
    EXPECT_EQ(tile.rowBytes() % kTileAlignment, 0);
    EXPECT_EQ(tile.panelBytes() % kTileAlignment, 0);
  }
  EXPECT_TRUE(hasWarpgroups("sm_90a"));
  EXPECT_FALSE(hasWarpgroups("sm_90"));
  EXPECT_FALSE(hasWarpgroups("sm_100a"));
}

TEST(FewRows, KernelsStartEarlyFromHopperOn) {
  for (const char *chip : {"sm_90", "sm_90a", "sm_100a", "sm_120"})
    EXPECT_TRUE(hasDependentLaunch(chip));
  for (const char *chip : {"sm_80", "sm_89", "other"})
    EXPECT_FALSE(hasDependentLaunch(chip));
}

TEST(FewRows, FewPanelsHaveManyThreads) {
  // Llama of 1.1 billion weights: queries with keys and values, gate with up,
  // down, and the vocabulary.
  EXPECT_EQ(threadsOfPanel(320, 2048, 132), 256);
  EXPECT_EQ(threadsOfPanel(704, 2048, 132), 128);
  EXPECT_EQ(threadsOfPanel(256, 5632, 132), 256);
  EXPECT_EQ(threadsOfPanel(4000, 2048, 132), 128);
  // Each has something to load.
  EXPECT_EQ(threadsOfPanel(1, 72, 132), 128);
  EXPECT_EQ(threadsOfPanel(1, 1 << 20, 132), 512);
}

TEST(FewRows, AllPanelsAreThereAtOnceIfTheyFit) {
  EXPECT_EQ(blocksAtOnce(320, 256, 1, 132), 3);
  EXPECT_EQ(blocksAtOnce(704, 128, 1, 132), 6);
  EXPECT_EQ(blocksAtOnce(256, 256, 1, 132), 2);
  // 80 registers are for 819 threads.
  EXPECT_EQ(blocksAtOnce(4000, 128, 1, 132), 6);
  EXPECT_EQ(blocksAtOnce(4000, 128, 4, 132), 4);
  EXPECT_EQ(blocksAtOnce(1, 512, 4, 132), 1);
}

//===----------------------------------------------------------------------===//
// The choice
//===----------------------------------------------------------------------===//

TEST(ProductTiles, CostByHand) {
  // 4096 columns are 64 small tiles or 32 large ones; 108 at a time.
  EXPECT_EQ(costOfTiles(kSmallTile, 64, 4096, 108), 64 * 64 + 32 * 128);
  EXPECT_EQ(costOfTiles(kLargeTile, 64, 4096, 108), 128 * 128 + 32 * 256);
  EXPECT_EQ(costOfTiles(kSmallTile, 128, 4096, 108), 2 * (4096 + 4096));
  EXPECT_EQ(costOfTiles(kLargeTile, 8192, 8192, 108),
            38 * (128 * 128 + 32 * 256));
}

TEST(ProductTiles, LargeOnesForManyRows) {
  for (int64_t columns : {96, 768, 4096, 32000})
    for (const char *chip : {"sm_80", "sm_90a", "sm_100"}) {
      int64_t count = countMultiprocessors(chip);
      int64_t first = rowsForLargeTiles(columns, count);
      EXPECT_GE(first, kLargeTile.rows);
      EXPECT_LE(costOfTiles(kLargeTile, 1 << 20, columns, count),
                costOfTiles(kSmallTile, 1 << 20, columns, count));
      for (int64_t rows = first; rows < first + 4096; rows += 64)
        EXPECT_LE(costOfTiles(kLargeTile, rows, columns, count),
                  costOfTiles(kSmallTile, rows, columns, count));
    }
  // A short text against a small matrix does not fill the chip with them.
  EXPECT_GT(rowsForLargeTiles(768, 108), 512);
  EXPECT_EQ(countMultiprocessors("sm_90a"), 132);
  EXPECT_EQ(countMultiprocessors("sm_89"), 128);
}

//===----------------------------------------------------------------------===//
// Plans of warpgroups
//===----------------------------------------------------------------------===//

static GroupPlan planFor(int64_t rows, const GroupProduct &product) {
  std::vector<PlannedRows> plans = planGroups(product, 132, true);
  for (const PlannedRows &some : plans)
    if (rows <= some.rows)
      return some.plan;
  return plans.back().plan;
}

TEST(GroupPlans, CostByHand) {
  const GroupProduct square = {2048, 2048};
  // 512 rows: 64 blocks that have 32 steps of 640 cycles, since shared memory
  // takes longer (16 KB and 16 KB copied, 48 KB read) than the tensor cores'
  // 512.
  EXPECT_EQ(costOfGroups({128}, 512, square, 132), 1500 + 32 * 640 + 1024);
  // Twice as many that have 16 steps, and a kernel that reads all sums.
  EXPECT_EQ(costOfGroups({128, 2}, 512, square, 132),
            1500 + 16 * 640 + 2048 + 2500 + 512 * 2048 * 8 / (32 * 132));
  EXPECT_EQ(costOfGroups({64}, 512, square, 132), 1500 + 32 * 448 + 512);
  // Wide tiles are bound by the tensor cores: 1024 cycles of a step.
  EXPECT_EQ(costOfGroups({256}, 8192, {8192, 8192}, 132),
            16 * (1500 + 128 * 1024 + 2048));
  // What comes from memory takes its time, however many blocks there are.
  EXPECT_EQ(costOfGroups({256}, 64, {1 << 20, 1 << 13}, 132) / 1000,
            (int64_t(2) << 33) / (20 * 132) / 1000);
  // Numbers of 8 bits are, too. Fewer are bound by instructions: 176, and 64
  // and 10 for each group.
  EXPECT_EQ(costOfGroups({128}, 128, {2048, 2048, 8, 128}, 132),
            1500 + 32 * 512 + 1024);
  EXPECT_EQ(costOfGroups({128}, 128, {2048, 2048, 4, 32}, 132),
            1500 + 32 * 2 * (176 + 2 * 74) + 1024);
  EXPECT_EQ(costOfGroups({128, 1, 32}, 32, {2048, 2048, 4, 128}, 132),
            1500 + 32 * 2 * (176 + 26 / 2) + 256);
}

TEST(GroupPlans, FewTilesShareTheDepth) {
  // Llama of 1.1 billion weights: what attention gives, and down.
  const GroupProduct out = {2048, 2048}, down = {2048, 5632};
  EXPECT_EQ(planFor(64, out), (GroupPlan{128, 8}));
  EXPECT_EQ(planFor(128, out), (GroupPlan{128, 8}));
  EXPECT_EQ(planFor(256, out), (GroupPlan{128, 4}));
  EXPECT_EQ(planFor(512, out), (GroupPlan{64, 1}));
  EXPECT_EQ(planFor(512, down), (GroupPlan{128, 2}));
  EXPECT_EQ(planFor(1 << 20, out).parts, 1);
  // Many tiles do not.
  EXPECT_EQ(planFor(512, {32000, 2048}), (GroupPlan{256, 1}));
  EXPECT_EQ(planFor(8192, {8192, 8192}), (GroupPlan{256, 1}));
  // In few bits few rows have small tiles.
  EXPECT_EQ(planFor(16, {2048, 2048, 4, 128}), (GroupPlan{128, 8, 32}));
  EXPECT_EQ(planFor(1024, {2048, 2048, 4, 128}), (GroupPlan{128, 1, 128}));
}

TEST(GroupPlans, NoPartIsEmpty) {
  for (int64_t bits : {4, 8, 16})
    for (int64_t group : {32, 64, 128, 192, 1 << 20})
      for (int64_t depth : {72, 520, 768, 2056, 5632, 14336})
        for (int64_t columns : {96, 768, 2048, 11264}) {
          const GroupProduct product = {columns, depth, bits, group};
          int64_t before = 0, unit = product.stagesOfGroup();
          EXPECT_TRUE(bits < 16 || unit == 1);
          int64_t steps = (depth + 63) / 64, units = (steps + unit - 1) / unit;
          for (const PlannedRows &some : planGroups(product, 132, true)) {
            EXPECT_GT(some.rows, before);
            before = some.rows;
            int64_t parts = some.plan.parts;
            ASSERT_GE(parts, 1);
            ASSERT_LE(parts, kMostDepthParts);
            int64_t each = (units + parts - 1) / parts;
            EXPECT_LT(each * (parts - 1), units);
          }
          for (const PlannedRows &some : planGroups(product, 132, false))
            EXPECT_EQ(some.plan.parts, 1);
        }
}
