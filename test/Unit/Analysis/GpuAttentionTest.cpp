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

TEST(WarpgroupAttention, FitsRegistersAndSharedMemory) {
  for (bool reads : {false, true})
    for (int64_t width = 1; width <= 300; ++width)
      for (int64_t valueWidth : {int64_t(16), int64_t(64), width}) {
        auto tile = chooseWarpgroupAttention(width, valueWidth, reads);
        if (width % 8 != 0 || valueWidth % 8 != 0) {
          EXPECT_FALSE(tile);
          continue;
        }
        if (!tile)
          continue;
        EXPECT_LE(tile->sharedBytes(), 227 * 1024);
        EXPECT_LE(tile->heldRegisters() + 48, tile->kManyRegisters);
        EXPECT_GE(tile->boxes(width) * tile->kBoxChannels, width);
        EXPECT_LE(tile->keys, 256); // the most rows of a box
        // Every matrix starts where its swizzle does.
        for (int64_t bytes :
             {tile->queryBytes(), tile->keyBytes(), tile->valueBytes()})
          EXPECT_EQ(bytes % kTileAlignment, 0);
      }
  // A multiprocessor's registers, dealt out.
  WarpgroupAttentionTile tile = {128, 128, 128};
  EXPECT_LE(128 * (tile.kFewRegisters +
                   int64_t(tile.kManyRegisters) * tile.consumers),
            64 * 1024);
  EXPECT_LE(tile.kFewRegisters + tile.kManyRegisters * tile.consumers,
            168u * (1 + tile.consumers));
}

TEST(WarpgroupAttention, TakesUsualHeads) {
  for (int64_t width : {64, 80, 96, 128})
    EXPECT_EQ(chooseWarpgroupAttention(width, width, false)->keys, 128);
  EXPECT_EQ(chooseWarpgroupAttention(192, 128, false)->keys, 128);
  EXPECT_EQ(chooseWarpgroupAttention(256, 256, false)->keys, 64);
  EXPECT_EQ(chooseWarpgroupAttention(48, 48, true)->keys, 128);
  EXPECT_EQ(chooseWarpgroupAttention(64, 64, true)->keys, 64);
  EXPECT_EQ(chooseWarpgroupAttention(128, 128, true)->keys, 64);
  EXPECT_FALSE(chooseWarpgroupAttention(576, 512, false));
  EXPECT_FALSE(chooseWarpgroupAttention(100, 100, false));
}

// What a descriptor makes of a row and a place in the depth is where a copy of
// boxes, or a thread that stores queries, puts it.
TEST(WarpgroupAttention, DescriptorsFindWhatCopiesWrite) {
  WarpgroupAttentionTile tile = {128, 128, 128};
  auto field = [](uint64_t descriptor, int at) {
    return int64_t(descriptor >> at & 0x3fff) << 4;
  };
  auto swizzled = [](int64_t address) {
    return address ^ ((address >> 7 & 7) << 4);
  };
  // As the box of a tensor map, row by row, or chunkAt of the kernel.
  auto copied = [](int64_t boxRows, int64_t row, int64_t channel) {
    int64_t box = channel / 64, inside = channel % 64;
    return box * boxRows * 128 + placeInAtom(row, inside / 8) + inside % 8 * 2;
  };
  uint64_t rows = tile.rowDescriptor(), values = tile.valueDescriptor();
  EXPECT_EQ(rows >> 62, 1u);
  EXPECT_EQ(values >> 62, 1u);
  for (int64_t step = 0; step < 8; ++step)
    for (int64_t row = 0; row < 128; ++row)
      for (int64_t k = 0; k < 16; ++k) {
        int64_t atom = row / 8 * field(rows, 32) + row % 8 * 128 + k * 2;
        EXPECT_EQ(swizzled(tile.keyStep(step) + atom),
                  copied(tile.keys, row, 16 * step + k));
        if (row < 64) // of a warpgroup
          EXPECT_EQ(swizzled(tile.queryStep(step) + 64 * 128 + atom),
                    copied(tile.rows(), 64 + row, 16 * step + k));
        // Of values the depth is keys, and columns are channels.
        int64_t side = row / 64 * field(values, 16) +
                       k / 8 * field(values, 32) + k % 8 * 128 + row % 64 * 2;
        EXPECT_EQ(swizzled(tile.valueStep(step) + side),
                  copied(tile.keys, 16 * step + k, row));
      }
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

// Sums of wgmma (PTX manual, 9.7.15.5.1.1) are sums of mma.sync side by side:
// number 4 n + 2 half + i of a thread is element i of pair `half` of tile n,
// and its A in registers is that of mma.m16n8k16. So tiles 2 s and 2 s + 1 are
// A of step s.
TEST(AttentionFragments, SumsOfWarpgroupsAreA) {
  for (int lane = 0; lane < 32; ++lane)
    for (int number = 0; number < 64; ++number) {
      // By the manual's figure of D.
      int64_t row = lane / 4 + 8 * (number / 2 % 2);
      int64_t column = number / 4 * 8 + lane % 4 * 2 + number % 2;
      FragmentPlace sum = placeInSum(lane, number / 2 % 2);
      EXPECT_EQ(sum.row, row);
      EXPECT_EQ(sum.column + number / 4 * 8 + number % 2, column);
      FragmentPlace a = placeInA(lane, number / 2 % 4);
      EXPECT_EQ(a.row, row);
      EXPECT_EQ(a.column + number / 8 * 16 + number % 2, column);
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

// Queries for wgmma: eight threads store a row of 128 bytes. A core matrix of
// wgmma is a chunk of eight rows, of values eight rows of a chunk.
TEST(AttentionBanks, WarpgroupQueries) {
  std::vector<int64_t> stored;
  for (int thread = 0; thread < 32; ++thread)
    stored.push_back(placeInAtom(thread / 8, thread % 8));
  EXPECT_EQ(conflicts(stored, 16), 1);
  for (int chunk = 0; chunk < 8; ++chunk) {
    std::vector<int64_t> matrix;
    for (int row = 0; row < 8; ++row)
      matrix.push_back(placeInAtom(row, chunk));
    EXPECT_EQ(conflicts(matrix, 16), 1);
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
