//===- GpuAttentionTest.cpp - Fragments and banks of attention ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/GpuAttention.h"
#include "Banks.h"

#include "gtest/gtest.h"

using namespace attune;

//===----------------------------------------------------------------------===//
// Tiles
//===----------------------------------------------------------------------===//

TEST(AttentionTiles, FitWhereABlockMayPutThem) {
  for (int64_t bytes : {2, 4})
    for (bool few : {false, true})
      for (int64_t width = 1; width <= kWidestHead; ++width)
        for (int64_t valueWidth : {int64_t(16), width, kWidestHead}) {
          AttentionTile tile =
              chooseAttentionTile(bytes, width, valueWidth, few);
          EXPECT_LE(tile.sharedBytes(), 48 * 1024);
          EXPECT_EQ(tile.keys % (bytes == 4 ? 8 : 16), 0);
          EXPECT_GE(tile.columns(width) * tile.swizzle().elementsOfRow(),
                    width);
        }
}

TEST(AttentionTiles, GrowWithTheRoom) {
  EXPECT_EQ(chooseAttentionTile(2, 64, 64, false).keys, 64);
  EXPECT_EQ(chooseAttentionTile(2, 128, 128, false).keys, 32);
  EXPECT_EQ(chooseAttentionTile(4, 64, 64, false).keys, 32);
  EXPECT_EQ(chooseAttentionTile(2, 64, 64, true).keys, 32);
  EXPECT_TRUE(chooseAttentionTile(2, 128, 128, false).holdsQuery);
  EXPECT_FALSE(chooseAttentionTile(4, 128, 128, false).holdsQuery);
  EXPECT_FALSE(chooseAttentionTile(2, 256, 256, false).holdsQuery);
}

TEST(AttentionTiles, LieInOneBlockOfAMask) {
  auto tile = chooseTileOfBlocks(2, 64, 64, 2, 32, 64);
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->rows(), 64);
  EXPECT_EQ(tile->keys, 64);
  tile = chooseTileOfBlocks(4, 64, 64, 1, 48, 24);
  ASSERT_TRUE(tile);
  EXPECT_EQ(tile->rows(), 16);
  EXPECT_EQ(tile->keys, 8);
  EXPECT_FALSE(chooseTileOfBlocks(2, 64, 64, 1, 64, 24));
  EXPECT_FALSE(chooseTileOfBlocks(2, 64, 64, 3, 64, 64));
  EXPECT_FALSE(chooseTileOfBlocks(2, 64, 64, 1, 20, 64));
}

//===----------------------------------------------------------------------===//
// From scores to weights
//===----------------------------------------------------------------------===//

// Sums of two tiles of eight keys, pair by pair, are A of sixteen.
TEST(AttentionFragments, SumsAreA) {
  for (int lane = 0; lane < 32; ++lane)
    for (int pair = 0; pair < 4; ++pair) {
      FragmentPlace sum = placeInSum(lane, pair % 2), a = placeInA(lane, pair);
      EXPECT_EQ(sum.row, a.row);
      EXPECT_EQ(8 * (pair / 2) + sum.column, a.column);
    }
}

// Of tf32 (PTX manual, 9.7.14.5.6): lane 4 group + member has columns member
// and member + 4 of A, and these rows of B. Both are the keys of its sums.
TEST(AttentionFragments, WideWeightsMeetTheirValues) {
  std::set<int64_t> keys;
  for (int64_t column = 0; column < 8; ++column)
    keys.insert(keyOfColumn(column));
  EXPECT_EQ(keys.size(), 8u);
  EXPECT_EQ(*keys.rbegin(), 7);
  for (int64_t member = 0; member < 4; ++member) {
    EXPECT_EQ(keyOfColumn(2 * member), member);
    EXPECT_EQ(keyOfColumn(2 * member + 1), 4 + (member ^ 1));
  }
}

//===----------------------------------------------------------------------===//
// Banks
//===----------------------------------------------------------------------===//

// Keys and values of 16 bits: eight rows of one chunk for each matrix.
TEST(AttentionBanks, Matrices) {
  SwizzledRows rows{2};
  for (int chunk = 0; chunk < 4; chunk += 2) {
    std::vector<int64_t> keys, values;
    for (int lane = 0; lane < 32; ++lane) {
      int matrix = lane / 8, line = lane % 8;
      keys.push_back(2 *
                     rows.placeOf(matrix / 2 * 8 + line, chunk + matrix % 2));
      values.push_back(2 *
                       rows.placeOf(matrix % 2 * 8 + line, chunk + matrix / 2));
    }
    EXPECT_EQ(conflicts(keys, 16), 1);
    EXPECT_EQ(conflicts(values, 16), 1);
  }
}

// Keys of f32: a chunk of the row of each group.
TEST(AttentionBanks, WideKeys) {
  SwizzledRows rows{4};
  std::vector<int64_t> addresses;
  for (int lane = 0; lane < 32; ++lane)
    addresses.push_back(4 * rows.placeOf(keyOfColumn(lane / 4), lane % 4));
  EXPECT_EQ(conflicts(addresses, 16), 1);
}

// Values of f32: one number of each lane, of two rows.
TEST(AttentionBanks, WideValues) {
  SwizzledRows rows{4};
  for (int half = 0; half < 2; ++half)
    for (int tile = 0; tile < 2; ++tile) {
      std::vector<int64_t> addresses;
      for (int lane = 0; lane < 32; ++lane) {
        int group = lane / 4, member = lane % 4;
        addresses.push_back(4 * (rows.placeOf(keyOfColumn(2 * member + half),
                                              2 * tile + group / 4) +
                                 group % 4));
      }
      EXPECT_EQ(conflicts(addresses, 4), 1);
    }
}
