//===- GpuScheduleTest.cpp - Tiles that a schedule asks for ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuSchedule.h"

#include "gtest/gtest.h"

using namespace attune;

static std::string refusalOf(const ProductNumbers &numbers,
                             int64_t groupBits = 0) {
  auto choice = scheduleProduct(numbers, 2, 2, groupBits);
  auto *refused = std::get_if<TileRefusal>(&choice);
  return refused ? refused->why : "";
}
static std::string refusalOf(const AttentionNumbers &numbers,
                             const AttentionShape &shape) {
  auto choice = scheduleAttention(numbers, shape);
  auto *refused = std::get_if<TileRefusal>(&choice);
  return refused ? refused->why : "";
}

// Whatever is taken fits, and every thread has whole copies of each stage.
TEST(ScheduledProducts, Fit) {
  for (int64_t rows : {32, 64, 128})
    for (int64_t columns : {32, 64, 128})
      for (int64_t inputBytes : {2, 4})
        for (int64_t weightBytes : {2, 4}) {
          if (inputBytes < weightBytes)
            continue;
          auto choice = scheduleProduct({rows, columns, 0}, inputBytes,
                                        weightBytes, /*groupBits=*/0);
          auto *tile = std::get_if<ProductTile>(&choice);
          ASSERT_TRUE(tile);
          int64_t bytes = tile->stageBytes(inputBytes, weightBytes);
          EXPECT_LE(tile->stages * bytes, 48 << 10);
          EXPECT_EQ(bytes / 16 % tile->threads(), 0);
          EXPECT_EQ(rows * 4 % tile->threads(), 0);
          EXPECT_LE(tile->rowsOfWarp() * tile->columnsOfWarp() / 32, 64);
          EXPECT_EQ(tile->rowsOfWarp() % 16, 0);
          EXPECT_EQ(tile->columnsOfWarp() % 16, 0);
          EXPECT_EQ(kTaskRows % tile->rows, 0);
        }
}

TEST(ScheduledProducts, WhatIsLeftOutIsTheLargeTiles) {
  auto large = std::get<ProductTile>(scheduleProduct({0, 0, 2}, 2, 2, 0));
  EXPECT_EQ(large.rows, 128);
  EXPECT_EQ(large.columns, 128);
  EXPECT_EQ(large.warpRows, kLargeTile.warpRows);
  EXPECT_EQ(large.warpColumns, kLargeTile.warpColumns);
  EXPECT_EQ(large.stages, 2);
  auto small = std::get<ProductTile>(scheduleProduct({64, 64, 0}, 4, 2, 0));
  EXPECT_EQ(small.warpRows, kSmallTile.warpRows);
  EXPECT_EQ(small.warpColumns, kSmallTile.warpColumns);
  EXPECT_EQ(small.stages, 4);
}

TEST(ScheduledProducts, OfWarpgroups) {
  for (auto [columns, stages] :
       {std::pair<int64_t, int64_t>{64, 6}, {128, 6}, {192, 5}, {256, 4}}) {
    auto tile =
        std::get<WarpgroupTile>(scheduleProduct({128, columns, 0}, 2, 2, 16));
    EXPECT_EQ(tile.stages, stages);
    EXPECT_LE(tile.sharedBytes(), 227 << 10);
    EXPECT_EQ(tile.stageBytes() % kTileAlignment, 0);
  }
  EXPECT_TRUE(std::holds_alternative<ProductTile>(
      scheduleProduct({64, 128, 0}, 2, 2, 16)));
  for (int64_t bits : {4, 8}) {
    auto tile = std::get<WarpgroupTile>(scheduleProduct({0, 0, 0}, 2, 1, bits));
    EXPECT_EQ(tile.columns, groupTileOf(bits).columns);
    EXPECT_EQ(tile.stages, groupTileOf(bits).stages);
    EXPECT_EQ(tile.weightBits, bits);
    EXPECT_EQ(tile.stageBytes(), 128 * 128 + 128 * 64 * bits / 8);
    EXPECT_LE(tile.sharedBytes(), 227 << 10);
  }
}

TEST(ScheduledProducts, Refusals) {
  EXPECT_EQ(refusalOf({48, 0, 0}),
            "'attune.tile_rows' may be 32, 64 or 128 here, got 48");
  EXPECT_EQ(refusalOf({0, 256, 0}),
            "'attune.tile_columns' may be 32, 64 or 128 here, got 256");
  EXPECT_EQ(refusalOf({0, 256, 0}, 16), "");
  EXPECT_EQ(refusalOf({128, 32, 0}, 16),
            "'attune.tile_columns' may be 64, 128, 192 or 256 here, got 32");
  EXPECT_EQ(
      refusalOf({0, 0, 4}),
      "a tile of 128 rows by 128 columns in 4 stages takes 65536 bytes of "
      "shared memory, a block has 49152: 'attune.stages' may be at most "
      "3");
  EXPECT_EQ(refusalOf({0, 0, 1}),
            "'attune.stages' must be at least 2 here, got 1");
  EXPECT_EQ(refusalOf({0, 0, 2}, 16),
            "'attune.stages' must be at least 3 here, got 2");
  EXPECT_EQ(refusalOf({0, 0, 7}, 16), "");
  EXPECT_EQ(refusalOf({0, 256, 5}, 16),
            "a tile of 128 rows by 256 columns in 5 stages takes 246864 bytes "
            "of shared memory, a block has 232448: 'attune.stages' may be at "
            "most 4");
  EXPECT_EQ(refusalOf({0, 256, 0}, 4),
            "'attune.tile_columns' may be 128 here, got 256");
}

// Nothing said is what the chip suggests.
TEST(ScheduledAttention, WithoutNumbers) {
  AttentionShape shape = {2, 64, 64, 1};
  auto plain = std::get<AttentionTiles>(scheduleAttention({}, shape));
  EXPECT_FALSE(plain.groups);
  EXPECT_EQ(plain.warps.keys, chooseAttentionTile(2, 64, 64, false).keys);
  shape.warpgroups = true;
  auto groups = std::get<AttentionTiles>(scheduleAttention({}, shape));
  ASSERT_TRUE(groups.groups);
  EXPECT_EQ(groups.groups->keys, chooseWarpgroupAttention(64, 64, false)->keys);
}

TEST(ScheduledAttention, TakesNumbers) {
  AttentionShape shape = {2, 64, 64, 1};
  auto tiles = std::get<AttentionTiles>(scheduleAttention({32, 16, 3}, shape));
  EXPECT_EQ(tiles.warps.rows(), 32);
  EXPECT_EQ(tiles.warps.keys, 16);
  EXPECT_EQ(tiles.warps.sharedBytes(), 3 * 2 * 16 * 64 * 2);
  shape.warpgroups = true;
  tiles = std::get<AttentionTiles>(scheduleAttention({0, 96, 3}, shape));
  ASSERT_TRUE(tiles.groups);
  EXPECT_EQ(tiles.groups->keys, 96);
  EXPECT_EQ(tiles.groups->stages, 3);
  EXPECT_EQ(tiles.warps.keys, 64);
  tiles = std::get<AttentionTiles>(scheduleAttention({64, 0, 0}, shape));
  EXPECT_FALSE(tiles.groups);
}

TEST(ScheduledAttention, Refusals) {
  AttentionShape shape = {2, 64, 64, 1};
  EXPECT_EQ(refusalOf({48, 0, 0}, shape),
            "'attune.query_block' may be 16, 32, 64 or 128 here, got 48");
  EXPECT_EQ(refusalOf({0, 8, 0}, shape),
            "'attune.key_block' may be 16, 32, 64 or 128 here, got 8");
  EXPECT_EQ(refusalOf({0, 8, 0}, {4, 64, 64, 1}), "");
  EXPECT_EQ(refusalOf({0, 128, 0}, shape),
            "a tile of 64 rows by 128 keys in 2 stages takes 65536 bytes of "
            "shared memory, a block has 49152");
  EXPECT_EQ(refusalOf({0, 0, 4}, shape),
            "a tile of 64 rows by 64 keys in 4 stages takes 65536 bytes of "
            "shared memory, a block has 49152: 'attune.stages' may be at most "
            "3");
  EXPECT_EQ(refusalOf({0, 0, 1}, shape),
            "'attune.stages' must be at least 2 here, got 1");
  AttentionShape blocks = {2, 64, 64, 1, 32, 64};
  EXPECT_EQ(refusalOf({64, 0, 0}, blocks),
            "a tile of 64 rows by 64 keys does not lie in a block of the mask, "
            "which has 32 queries of 1 heads by 64 keys");
  EXPECT_EQ(refusalOf({16, 32, 0}, blocks), "");
  shape.warpgroups = true;
  EXPECT_EQ(refusalOf({0, 24, 0}, shape),
            "'attune.key_block' must be a multiple of 16 and at most 256 here, "
            "got 24");
  EXPECT_EQ(refusalOf({0, 208, 0}, shape),
            "'attune.key_block' may be at most 192 for values of width 64, "
            "whose sums share registers with scores, got 208");
  EXPECT_EQ(refusalOf({0, 192, 0}, shape), "");
  EXPECT_EQ(refusalOf({128, 128, 7}, shape),
            "a tile of 128 rows by 128 keys in 7 stages takes 247008 bytes of "
            "shared memory, a block has 232448: 'attune.stages' may be at most "
            "6");
}
