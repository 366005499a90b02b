//===- GpuSumsTest.cpp - Tiles of attention by sums over keys -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/GpuSums.h"

#include "gtest/gtest.h"

using namespace attune;

TEST(SumsTiles, FitWhereABlockMayPutThem) {
  for (bool few : {false, true})
    for (int64_t width = 1; width <= 768; ++width)
      for (int64_t valueWidth : {int64_t(1), int64_t(16), width}) {
        auto tile = chooseSumsTile(width, valueWidth, few);
        ASSERT_TRUE(tile);
        EXPECT_LE(tile->sharedBytes(), 48 * 1024);
        EXPECT_GE(tile->depth(), width);
        EXPECT_EQ(tile->depth() % 4, 0);
        EXPECT_EQ(tile->tokens % 4, 0);
        EXPECT_EQ(tile->columns % 4, 0);
        if (few)
          EXPECT_EQ(tile->tokens, kFewTokens);
      }
  EXPECT_FALSE(chooseSumsTile(1024, 64, false));
}

TEST(SumsTiles, GrowWithTheRoom) {
  auto sizes = [](int64_t width, int64_t valueWidth) {
    auto tile = chooseSumsTile(width, valueWidth, false);
    return std::pair(tile->tokens, tile->columns);
  };
  EXPECT_EQ(sizes(64, 64), std::pair(int64_t(32), int64_t(32)));
  EXPECT_EQ(sizes(64, 10), std::pair(int64_t(32), int64_t(16)));
  EXPECT_EQ(sizes(128, 128), std::pair(int64_t(16), int64_t(32)));
  EXPECT_EQ(sizes(256, 256), std::pair(int64_t(8), int64_t(16)));
}

// Eight threads read 16 bytes each at once; the rows they are in differ by one.
TEST(SumsTiles, ReadRowsFromBanksOfTheirOwn) {
  for (int64_t columns = 4; columns <= 512; columns += 4) {
    int64_t stride = SumsTile::strideOf(columns);
    EXPECT_GE(stride, columns);
    uint32_t banks = 0;
    for (int64_t row = 0; row < 8; ++row)
      banks |= 15u << (row * stride % 32);
    EXPECT_EQ(banks, ~0u);
  }
}
