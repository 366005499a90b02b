//===- CpuAttentionTest.cpp - Which way attention takes on a CPU ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/CpuAttention.h"

#include "gtest/gtest.h"

#include <limits>

using attune::AttentionBudget;
using attune::AttentionPlan;
using attune::AttentionWay;
using attune::CpuAttentionSizes;
using attune::planAttention;

namespace {
/// Zen 5: 32 registers of 16 lanes, 48 KiB and 1 MiB of cache.
AttentionBudget zen5() {
  AttentionBudget budget = {};
  budget.queryBlock = 192;
  budget.queryBytes = 512 << 10;
  budget.keyBlock = 256;
  budget.keyBytes = budget.partBytes = 256 << 10;
  budget.rows = 12;
  budget.threads = 16;
  budget.cacheBytes = 1 << 20;
  budget.lineCycles = 25;
  budget.multiplyAdds = 32;
  return budget;
}

CpuAttentionSizes heads(int64_t number, int64_t group, int64_t width) {
  CpuAttentionSizes sizes;
  sizes.heads = number;
  sizes.group = group;
  sizes.width = sizes.valueWidth = width;
  return sizes;
}
} // namespace

// Prompts of any length: as many queries as half a megabyte holds.
TEST(CpuAttention, Prompts) {
  AttentionPlan plan = planAttention(heads(12, 1, 64), zen5());
  EXPECT_EQ(plan.way, AttentionWay::Flash);
  EXPECT_EQ(plan.keys, 256);
  EXPECT_EQ(plan.fewQueries, 192);
  EXPECT_EQ(plan.tileQueries, 1020); // 1024 rows of 512 bytes, in twelves
  EXPECT_TRUE(plan.adapts());
  EXPECT_EQ(plan.range(), "192 to 1020");
  // A batch of unknown size has tiles enough.
  ASSERT_EQ(plan.others.size(), 1u);
  EXPECT_EQ(plan.others[0].first, AttentionWay::Unfused);
}

// Wide heads: packed keys and values of a block stay in a quarter of the cache.
TEST(CpuAttention, WideHeads) {
  AttentionPlan plan = planAttention(heads(8, 1, 256), zen5());
  EXPECT_EQ(plan.keys, 128);
  EXPECT_EQ(plan.tileQueries, 252);
}

// Queries of heads that share keys: still a multiple of the register tile.
TEST(CpuAttention, Groups) {
  AttentionPlan plan = planAttention(heads(28, 7, 128), zen5());
  EXPECT_EQ(plan.fewQueries, 24); // of 27
  EXPECT_EQ(plan.tileQueries, 72);
  // With fewer queries than a register has rows, heads fill it.
  plan = planAttention(heads(71, 71, 64), zen5());
  EXPECT_EQ(plan.tileQueries, 2);
  EXPECT_EQ(plan.even, 0);
}

// All scores at once where they fit half of the first-level cache.
TEST(CpuAttention, OnePass) {
  CpuAttentionSizes sizes = heads(12, 1, 64);
  sizes.batch = 1;
  auto wayOf = [&](int64_t tokens) {
    sizes.queries = sizes.keys = tokens;
    return planAttention(sizes, zen5()).way;
  };
  EXPECT_EQ(wayOf(197), AttentionWay::OnePass);
  EXPECT_EQ(wayOf(257), AttentionWay::OnePass);
  EXPECT_EQ(wayOf(512), AttentionWay::OnePass);
  EXPECT_EQ(wayOf(513), AttentionWay::Flash);
  sizes.queries = sizes.keys = 257;
  AttentionPlan plan = planAttention(sizes, zen5());
  EXPECT_EQ(plan.keys, 257);
  ASSERT_EQ(plan.others.size(), 2u);
  EXPECT_EQ(plan.others[0].first, AttentionWay::Flash);
  EXPECT_GT(plan.others[0].second, plan.cycles);
  // A schedule's block of keys is what it says.
  AttentionBudget scheduled = zen5();
  scheduled.keyBlock = 64;
  scheduled.keyBytes = 0;
  EXPECT_EQ(planAttention(sizes, scheduled).way, AttentionWay::Flash);
  EXPECT_EQ(planAttention(sizes, scheduled).keys, 64);
}

// One query of a few heads leaves threads idle, of many it does not.
TEST(CpuAttention, SplitKeys) {
  auto cached = [](int64_t keyHeads, int64_t bytes = 4) {
    CpuAttentionSizes sizes = heads(keyHeads, 1, 64);
    sizes.cached = true;
    sizes.elementBytes = bytes;
    return planAttention(sizes, zen5());
  };
  EXPECT_EQ(cached(4).way, AttentionWay::SplitKeys);
  EXPECT_EQ(cached(4).leastKeys, 512);
  EXPECT_EQ(cached(4, 2).leastKeys, 1024); // as many bytes
  EXPECT_EQ(cached(4).mostParts, 16);
  EXPECT_EQ(cached(32).way, AttentionWay::SplitKeys);
  EXPECT_EQ(cached(96).way, AttentionWay::Flash);
  EXPECT_GT(cached(4).others[0].second, 1.5 * cached(4).cycles);

  // Without a cache: where there are few queries of few sequences.
  CpuAttentionSizes sizes = heads(8, 1, 64);
  sizes.keys = 4096;
  sizes.queries = 1;
  EXPECT_EQ(planAttention(sizes, zen5()).way, AttentionWay::Flash);
  sizes.batch = 1;
  EXPECT_EQ(planAttention(sizes, zen5()).way, AttentionWay::SplitKeys);
  sizes.batch = 64;
  EXPECT_EQ(planAttention(sizes, zen5()).way, AttentionWay::Flash);
  sizes.batch = 1;
  sizes.queries = 16; // no parts of its own for a query
  EXPECT_EQ(planAttention(sizes, zen5()).way, AttentionWay::Flash);
  sizes.queries = 1;
  sizes.keys = 512; // what is one part
  EXPECT_NE(planAttention(sizes, zen5()).way, AttentionWay::SplitKeys);
}

// A tile lies in one block of the mask.
TEST(CpuAttention, MaskBlocks) {
  CpuAttentionSizes sizes = heads(4, 1, 64);
  sizes.maskBlock = {64, 96};
  AttentionPlan plan = planAttention(sizes, zen5());
  EXPECT_EQ(plan.tileQueries, 64);
  EXPECT_EQ(plan.keys, 96);
  EXPECT_EQ(plan.even, 0);
}

// A thread of a GPU has a register tile for itself.
TEST(CpuAttention, Gpu) {
  AttentionBudget budget = zen5();
  budget.queryBlock = budget.rows = 4;
  budget.queryBytes = budget.keyBytes = 0;
  budget.keyBlock = 8;
  AttentionPlan plan = planAttention(heads(12, 1, 64), budget);
  EXPECT_EQ(plan.tileQueries, 4);
  EXPECT_EQ(plan.even, 0);
  EXPECT_EQ(plan.keys, 8);
}

// Descriptions may pin any number.
TEST(CpuAttention, HugeSizes) {
  CpuAttentionSizes sizes = heads(12, 1, 64);
  sizes.batch = sizes.queries = sizes.keys =
      std::numeric_limits<int64_t>::max();
  AttentionPlan plan = planAttention(sizes, zen5());
  EXPECT_EQ(plan.way, AttentionWay::Flash);
  EXPECT_GT(plan.cycles, 0);
  sizes = heads(1, 1, std::numeric_limits<int64_t>::max() / 16);
  plan = planAttention(sizes, zen5());
  EXPECT_GE(plan.keys, 64);
  EXPECT_GE(plan.tileQueries, 1);
}

TEST(CpuAttention, Reason) {
  CpuAttentionSizes sizes = heads(32, 8, 64);
  sizes.cached = true;
  AttentionPlan plan = planAttention(sizes, zen5());
  EXPECT_EQ(plan.explain(sizes),
            "flash attention: tiles of 24 to 120 queries by 256 keys, no "
            "matrix of scores in memory; few queries split the keys of a "
            "cache into up to 16 parts of at least 512");
  // 32 x 4096 x 128 multiply-adds are 524 thousand cycles, 4 x 4096 keys and
  // values of 8 lines 3277 thousand, and rescaling is 8: a quarter each without
  // parts. With parts a thread has more than 2 of 32 tasks, an eighth more
  // long. The four ways of the matrix to the cache and back are 66.
  EXPECT_EQ(
      plan.reason(),
      "1 query by 4096 keys take each of 16 threads 335 thousand cycles, "
      "952 thousand by blocks of keys, and 969 thousand unfused (a matrix "
      "of scores of 0.5 MB)");
}

// What fusion saves: the way of the matrix, to memory where no cache holds it.
TEST(CpuAttention, Unfused) {
  auto saved = [](int64_t tokens) {
    CpuAttentionSizes sizes = heads(12, 1, 64);
    sizes.batch = 1;
    sizes.queries = sizes.keys = tokens;
    AttentionPlan plan = planAttention(sizes, zen5());
    EXPECT_EQ(plan.others.back().first, AttentionWay::Unfused);
    return (plan.others.back().second - plan.cycles) / plan.scoreBytes;
  };
  // 16 threads share the work; the last tile may be theirs alone.
  EXPECT_NEAR(saved(256), 4 / 32.0 / 16, 0.004);
  EXPECT_GT(saved(8192), 4 * 25 / 64.0 / 16);
  EXPECT_LT(saved(8192), 4 * 25 / 64.0 / 16 * 1.5);
}
