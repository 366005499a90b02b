//===- MemoryPlanTest.cpp - Sizes in words --------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Analysis/MemoryPlan.h"

#include <gtest/gtest.h>

using namespace attune;

static const std::map<std::string, int64_t> dims = {
    {"batch", 3}, {"seq", 10}, {"decoder.seq", 7}};

TEST(MemoryPlan, SizesAreEvaluated) {
  EXPECT_EQ(evaluateSize("12", dims), 12);
  EXPECT_EQ(evaluateSize("512 * batch * seq", dims), 15360);
  EXPECT_EQ(evaluateSize("32 * ((seq + decoder.seq) - 1)", dims), 512);
  EXPECT_EQ(evaluateSize("(((seq + -4) / 4) + 1)", dims), 2);
  EXPECT_EQ(evaluateSize("ceil(seq / 4)", dims), 3);
  EXPECT_EQ(evaluateSize("min(batch , seq) + max(batch , 5)", dims), 8);
  EXPECT_EQ(evaluateSize("2 + 3 * 4 - 1", dims), 13);
}

TEST(MemoryPlan, WhatIsNotKnownIsNoNumber) {
  for (const char *text :
       {"", "?", "8 * ?", "width", "batch seq", "(batch", "batch)", "seq / 0",
        "4 *", "min(1)", "9223372036854775807 + 1", "9223372036854775807 * 2",
        "99999999999999999999"})
    EXPECT_EQ(evaluateSize(text, dims), std::nullopt) << text;
  EXPECT_EQ(evaluateSize(std::string(100000, '('), dims), std::nullopt);
}
