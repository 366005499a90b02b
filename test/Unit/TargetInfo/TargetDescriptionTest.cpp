//===- TargetDescriptionTest.cpp - Tile sizes that follow from a machine --===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/TargetInfo/TargetDescription.h"

#include "gtest/gtest.h"

using attune::TargetDescription;

// 16 registers of 8 lanes: 6 rows of 16 columns leave 4 for what they multiply.
TEST(TargetDescription, SmallCore) {
  TargetDescription target;
  EXPECT_EQ(target.getTileRows(), 6);
  EXPECT_EQ(target.getTileColumns(), 16);
  // 8 KiB hold scores of 6 rows and 341 keys, of which 336 are whole panels.
  EXPECT_EQ(target.getKeyBlock(), 336);
  EXPECT_EQ(target.getKeyBytes(), 128 << 10);
  EXPECT_EQ(target.getPanelBytes(), 256 << 10);
  EXPECT_EQ(target.getTileBytes(), 16 << 10);
  EXPECT_EQ(target.getValueBytes(), 8 << 10);
  EXPECT_EQ(target.getWayBytes(), 4096);
}

// 32 registers of 16 lanes and larger caches: 12 rows, 12 KiB for 256 keys.
TEST(TargetDescription, LargeCore) {
  TargetDescription target;
  target.vectorBits = 512;
  target.vectorRegisters = 32;
  target.level1Bytes = 48 << 10;
  target.level2Bytes = 2 << 20;
  EXPECT_EQ(target.getTileRows(), 12);
  EXPECT_EQ(target.getTileColumns(), 32);
  EXPECT_EQ(target.getKeyBlock(), 256);
  EXPECT_EQ(target.getKeyBytes(), 512 << 10);
}

// A line is fetched in about the time that memory takes for it: 25 cycles, of
// which a step takes so many as a tile has multiply-adds for each port.
TEST(TargetDescription, FetchingAhead) {
  auto stepsOf = [](const char *cpu) {
    return attune::describeTarget(cpu)->getFetchSteps();
  };
  EXPECT_EQ(stepsOf("x86-64-v3"), 4);   // 6 rows, two ports: 6 cycles
  EXPECT_EQ(stepsOf("neoverse-v2"), 4); // 12 rows, four ports
  EXPECT_EQ(stepsOf("znver5"), 4);      // 12 cycles, but no fewer steps
  TargetDescription target;
  EXPECT_EQ(target.getFetchBytes(), 1024); // 400 cycles are 16 lines
  EXPECT_EQ(target.getUnrolled(), 64);
  target.fmaPorts = 1000; // no step is shorter than a cycle
  EXPECT_EQ(target.getFetchSteps(), 16);
}

// What attention fetches to the first-level cache takes two thirds of it, and
// none where the second-level one is fetched to.
TEST(TargetDescription, FetchingNear) {
  EXPECT_EQ(attune::describeTarget("znver5")->getNearBytes(), 32 << 10);
  EXPECT_EQ(attune::describeTarget("znver4")->getNearBytes(), 0);
  EXPECT_EQ(attune::describeTarget("sapphirerapids")->getNearBytes(), 0);
}

// Zen 3 asks for weights of 16 bits and fewer, and leaves those of 32 to the
// core; so does what runs on any CPU with AVX2.
TEST(TargetDescription, Streams) {
  EXPECT_EQ(attune::describeTarget("znver3")->narrowStreamBytes, 1024);
  EXPECT_EQ(attune::describeTarget("znver3")->streamBytes, 0);
  EXPECT_EQ(attune::describeTarget("x86-64-v3")->narrowStreamBytes, 1024);
  EXPECT_EQ(attune::describeTarget("znver5")->narrowStreamBytes, 0);
}

// 512 queries of 128 channels are one tile, which packs their keys once.
TEST(TargetDescription, QueriesOfOneTile) {
  for (const char *cpu : {"znver5", "znver3", "x86-64-v2", "neoverse-n1"}) {
    auto target = *attune::describeTarget(cpu);
    int64_t rows = target.getTileRows();
    EXPECT_GE(target.getQueryBytes() / (2 * 128 * 4) / rows * rows, 512) << cpu;
  }
}

// Rows are copied where a set of the first-level cache has fewer than twelve
// places or than a tile has rows, or how many it has is not known.
TEST(TargetDescription, CrowdedSets) {
  for (const char *cpu :
       {"znver4", "x86-64-v4", "neoverse-n1", "znver3", "haswell"})
    EXPECT_EQ(attune::describeTarget(cpu)->getCrowdedWayBytes(), 4096) << cpu;
  // A matrix unit reads so many rows that half a way is too close, too.
  auto tiles = attune::describeTarget("sapphirerapids");
  EXPECT_EQ(tiles->getCrowdedWayBytes(), 2048);
  tiles->bf16Pairs = false; // of f32 it reads none
  EXPECT_EQ(tiles->getCrowdedWayBytes(), 0);
  for (const char *cpu : {"znver5", "icelake-server", "alderlake"})
    EXPECT_EQ(attune::describeTarget(cpu)->getCrowdedWayBytes(), 0) << cpu;
  auto gpu = *attune::describeTarget("x86-64-v4");
  ASSERT_TRUE(attune::addGpu(gpu, "sm_80"));
  EXPECT_EQ(gpu.getCrowdedWayBytes(), 0);
}

// Tiles of many rows are wide where that is so, one multiply-add starts in a
// cycle, and registers are many.
TEST(TargetDescription, WideTiles) {
  EXPECT_TRUE(attune::describeTarget("znver4")->hasWideTiles());
  for (const char *cpu : {"x86-64-v4", "neoverse-n1", "sapphirerapids",
                          "znver5", "znver3", "znver1"})
    EXPECT_FALSE(attune::describeTarget(cpu)->hasWideTiles()) << cpu;
}

// Caches of a core that is known by name, whatever machine this is.
TEST(TargetDescription, CachesByName) {
  auto zen5 = attune::describeTarget("znver5");
  ASSERT_TRUE(zen5);
  EXPECT_EQ(zen5->level1Bytes, 48 << 10);
  EXPECT_EQ(zen5->level2Bytes, 1 << 20);
  EXPECT_EQ(zen5->getKeyBlock(), 256);
  auto level = attune::describeTarget("x86-64-v3");
  ASSERT_TRUE(level);
  EXPECT_EQ(level->level1Bytes, TargetDescription().level1Bytes);
  EXPECT_EQ(level->level2Bytes, TargetDescription().level2Bytes);
}

// A cache that is too small for the scores of 64 keys still takes so many.
TEST(TargetDescription, TinyCache) {
  TargetDescription target;
  target.level1Bytes = 4 << 10;
  EXPECT_EQ(target.getKeyBlock(), 64);
}

// A tile is one thread's: no bytes to fill, and no cache to keep rows apart in.
TEST(TargetDescription, Gpu) {
  TargetDescription target;
  target.gpu = "sm_90a";
  EXPECT_EQ(target.getQueryBlock(), target.getTileRows());
  EXPECT_EQ(target.getKeyBlock(), target.getTileColumns());
  EXPECT_EQ(target.getQueryBytes(), 0);
  EXPECT_EQ(target.getKeyBytes(), 0);
  EXPECT_EQ(target.getWayBytes(), 0);
}

// The best way that a CPU has, at the width of its registers.
TEST(TargetDescription, ByteProducts) {
  auto how = [](const char *cpu) {
    return attune::describeTarget(cpu)->byteProducts;
  };
  using attune::ByteProducts;
  EXPECT_EQ(how("x86-64-v2"), ByteProducts::Words);
  EXPECT_EQ(how("x86-64-v3"), ByteProducts::Words);
  EXPECT_EQ(how("x86-64-v4"), ByteProducts::Words);
  EXPECT_EQ(how("alderlake"), ByteProducts::Quads);
  EXPECT_EQ(how("znver4"), ByteProducts::Quads);
  EXPECT_EQ(how("neoverse-n1"), ByteProducts::Any);
}

// What is read from files looks the same to all.
TEST(TargetDescription, VariantsShareWeights) {
  std::vector<attune::CpuVariant> variants = attune::describeVariants();
  ASSERT_EQ(variants.size(), 4u);
  for (const attune::CpuVariant &variant : variants) {
    EXPECT_EQ(variant.machine.getTileColumns(), 32) << variant.name;
    EXPECT_TRUE(variant.machine.keepsPairs()) << variant.name;
  }
  EXPECT_EQ(variants[0].name, "x86-64-v3");
  EXPECT_EQ(variants[0].machine.getTileRows(), 3);
  EXPECT_FALSE(variants[1].machine.multipliesPairs());
  EXPECT_EQ(variants[1].machine.getTileRows(), 12);
  EXPECT_TRUE(variants[2].machine.multipliesPairs());
  EXPECT_EQ(variants[2].machine.getMatrixRows(), 0);
  EXPECT_EQ(variants[3].machine.getMatrixRows(), 6);
}
