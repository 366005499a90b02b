//===- GpuAttentionTest.cpp - Tiles and banks of attention ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuAttention.h"
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

TEST(AttentionTiles, LeaveRoomForScales) {
  for (int64_t bytes : {2, 4})
    for (bool few : {false, true})
      for (int64_t width = 1; width <= kWidestScaledHead; ++width)
        for (int64_t valueWidth : {int64_t(16), width, kWidestScaledHead}) {
          AttentionTile tile = chooseAttentionTile(bytes, width, valueWidth,
                                                   few, /*scaled=*/true);
          EXPECT_LE(tile.sharedBytes(), 48 * 1024);
          AttentionTile plain = tile;
          plain.scaled = false;
          EXPECT_EQ(tile.sharedBytes() - plain.sharedBytes(),
                    tile.stages * tile.keys * 8);
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

TEST(WarpgroupAttention, FitsRegistersAndSharedMemory) {
  for (auto [reads, scaled] : {std::pair(false, false), std::pair(true, false),
                               std::pair(false, true), std::pair(true, true)})
    for (int64_t width = 1; width <= 300; ++width)
      for (int64_t valueWidth : {int64_t(16), int64_t(64), width}) {
        auto tile = chooseWarpgroupAttention(width, valueWidth, reads, scaled);
        if (width % 8 != 0 || valueWidth % 8 != 0) {
          EXPECT_FALSE(tile);
          continue;
        }
        if (!tile)
          continue;
        EXPECT_LE(tile->sharedBytes(), 227 * 1024);
        EXPECT_LE(tile->heldRegisters() + 48, tile->manyRegisters());
        EXPECT_GE(tile->boxes(width) * tile->kBoxChannels, width);
        EXPECT_LE(tile->keys, 256); // the most rows of a box
        // Every matrix starts where its swizzle does.
        for (int64_t bytes :
             {tile->queryBytes(), tile->keyBytes(), tile->valueBytes()})
          EXPECT_EQ(bytes % kTileAlignment, 0);
      }
  // A multiprocessor's registers, dealt out.
  for (bool scaled : {false, true}) {
    WarpgroupAttentionTile tile = {128, 128, 128, scaled};
    EXPECT_LE(128 * (tile.fewRegisters() +
                     int64_t(tile.manyRegisters()) * tile.consumers),
              64 * 1024);
    EXPECT_LE(tile.fewRegisters() + tile.manyRegisters() * tile.consumers,
              168u * (1 + tile.consumers));
  }
}

TEST(WarpgroupAttention, TakesUsualHeads) {
  for (int64_t width : {64, 80, 96, 128})
    EXPECT_EQ(chooseWarpgroupAttention(width, width, false)->keys, 128);
  EXPECT_EQ(chooseWarpgroupAttention(192, 128, false)->keys, 128);
  EXPECT_EQ(chooseWarpgroupAttention(256, 256, false)->keys, 64);
  EXPECT_EQ(chooseWarpgroupAttention(48, 48, true)->keys, 128);
  EXPECT_EQ(chooseWarpgroupAttention(64, 64, true)->keys, 64);
  EXPECT_EQ(chooseWarpgroupAttention(128, 128, true)->keys, 64);
  for (int64_t width : {64, 80, 96, 128}) {
    auto tile = chooseWarpgroupAttention(width, width, false, /*scaled=*/true);
    EXPECT_EQ(tile->keys, 128);
    EXPECT_EQ(tile->stages, width == 64 ? 4 : 2);
  }
  EXPECT_EQ(chooseWarpgroupAttention(256, 256, false, true)->keys, 32);
  EXPECT_EQ(chooseWarpgroupAttention(128, 128, true, true)->keys, 64);
  EXPECT_FALSE(chooseWarpgroupAttention(576, 512, false));
  EXPECT_FALSE(chooseWarpgroupAttention(100, 100, false));
}

//===----------------------------------------------------------------------===//
// Banks
//===----------------------------------------------------------------------===//

// Keys and values of 16 bits: eight rows of one chunk for each matrix.
TEST(AttentionBanks, Matrices) {
  SwizzledRows rows{2};
  for (int64_t chunk = 0; chunk < 4; chunk += 2) {
    std::vector<int64_t> keys, values;
    for (int64_t lane = 0; lane < 32; ++lane) {
      PlaceIn<int64_t> key = namedAcross(lane), value = namedDown(lane);
      keys.push_back(2 * rows.placeOf(key.row, key.column + chunk));
      values.push_back(2 * rows.placeOf(value.row, value.column + chunk));
    }
    EXPECT_EQ(conflicts(keys, 16), 1);
    EXPECT_EQ(conflicts(values, 16), 1);
  }
}

// Queries for wgmma: eight threads store a row of 128 bytes. A core matrix of
// wgmma is a chunk of eight rows, of values eight rows of a chunk.
TEST(AttentionBanks, WarpgroupQueries) {
  std::vector<int64_t> stored;
  for (int64_t thread = 0; thread < 32; ++thread)
    stored.push_back(placeInAtom(thread / 8, thread % 8));
  EXPECT_EQ(conflicts(stored, 16), 1);
  for (int64_t chunk = 0; chunk < 8; ++chunk) {
    std::vector<int64_t> matrix;
    for (int64_t row = 0; row < 8; ++row)
      matrix.push_back(placeInAtom(row, chunk));
    EXPECT_EQ(conflicts(matrix, 16), 1);
  }
}

// Keys of f32: a chunk of the row of each group.
TEST(AttentionBanks, WideKeys) {
  SwizzledRows rows{4};
  std::vector<int64_t> addresses;
  for (int64_t lane = 0; lane < 32; ++lane)
    addresses.push_back(
        4 * rows.placeOf(wideKeysOf(lane).row, wideKeysOf(lane).column));
  EXPECT_EQ(conflicts(addresses, 16), 1);
}

// Values of f32: one number of each lane, of two rows.
TEST(AttentionBanks, WideValues) {
  SwizzledRows rows{4};
  for (int64_t half = 0; half < 2; ++half)
    for (int64_t tile = 0; tile < 2; ++tile) {
      std::vector<int64_t> addresses;
      for (int64_t lane = 0; lane < 32; ++lane) {
        PlaceIn<int64_t> place = wideValueOf(lane, half);
        addresses.push_back(
            4 * rows.placeOfElement(place.row, place.column + 8 * tile));
      }
      EXPECT_EQ(conflicts(addresses, 4), 1);
    }
}
