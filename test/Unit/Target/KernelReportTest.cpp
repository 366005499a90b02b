//===- KernelReportTest.cpp - What ptxas says, and occupancy --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/PTXBackend.h"

#include "gtest/gtest.h"

using namespace attune;

TEST(KernelReport, ReadsPtxas) {
  auto kernels = readKernelUse(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'second' for 'sm_80'\n"
      "ptxas info    : Function properties for second\n"
      "    6448 bytes stack frame, 16 bytes spill stores, 24 bytes spill "
      "loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 4096 bytes smem, "
      "448 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function 'first' for 'sm_80'\n"
      "ptxas info    : Function properties for first\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 10 registers, used 0 barriers, 408 bytes "
      "cmem[0]\n");
  ASSERT_EQ(kernels.size(), 2u);
  EXPECT_EQ(kernels[0].name, "first");
  EXPECT_EQ(kernels[0].registers, 10);
  EXPECT_EQ(kernels[0].sharedBytes, 0);
  EXPECT_EQ(kernels[1].name, "second");
  EXPECT_EQ(kernels[1].registers, 168);
  EXPECT_EQ(kernels[1].sharedBytes, 4096);
  EXPECT_EQ(kernels[1].stackBytes, 6448);
  EXPECT_EQ(kernels[1].spilledBytes, 40);
}

/// By hand: 65536 registers, 64 warps and 32 blocks per multiprocessor.
TEST(KernelReport, Occupancy) {
  KernelUse kernel;
  kernel.registers = 32; // 1024 a warp: all 64 warps
  EXPECT_EQ(occupancyPercent(kernel, 128, "sm_80"), 100);
  kernel.registers = 128; // 4096 a warp: 16 warps
  EXPECT_EQ(occupancyPercent(kernel, 128, "sm_80"), 25);
  kernel.registers = 168; // 5376 a warp: 12 warps, 3 blocks
  EXPECT_EQ(occupancyPercent(kernel, 128, "sm_90a"), 18);
  kernel.registers = 32;
  kernel.sharedBytes = 81 << 10; // two blocks in 164 KiB
  EXPECT_EQ(occupancyPercent(kernel, 128, "sm_80"), 12);
  kernel.sharedBytes = 0;
  EXPECT_EQ(occupancyPercent(kernel, 1, "sm_80"), 50); // 32 blocks of a warp
  EXPECT_EQ(occupancyPercent(kernel, 128, "sm_89"), 100);
}
