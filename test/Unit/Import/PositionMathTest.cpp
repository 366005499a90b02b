//===- PositionMathTest.cpp - Rotary frequencies and ALiBi slopes -*- C++ -===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Import/PositionMath.h"

#include <cmath>
#include <gtest/gtest.h>

using namespace attune;

static spec::Rope makeRope(int64_t channels, const char *type, double factor) {
  spec::Rope rope;
  rope.channels = channels;
  rope.scaling.type = type;
  rope.scaling.factor = factor;
  return rope;
}

static void expectFrequencies(const RotaryPlan &plan,
                              const std::vector<double> &expected) {
  ASSERT_EQ(plan.frequencies.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    EXPECT_NEAR(plan.frequencies[i] / expected[i], 1, 1e-13) << "pair " << i;
}

TEST(PositionMath, PlainFrequenciesFallGeometrically) {
  RotaryPlan plan = planRotary(makeRope(8, "none", 1), 0);
  expectFrequencies(plan, {1, 0.1, 0.01, 0.001});
  EXPECT_EQ(plan.factor, 1);
  EXPECT_FALSE(plan.dynamic);
}

TEST(PositionMath, LinearDividesEveryFrequency) {
  expectFrequencies(planRotary(makeRope(8, "linear", 4), 0),
                    {0.25, 0.025, 0.0025, 0.00025});
}

// The reference numbers of this and the next test were computed in Python from
// the formulas of the papers, not with this code.
TEST(PositionMath, Llama3HasThreeBands) {
  spec::Rope rope = makeRope(16, "llama3", 8);
  rope.scaling.originalLength = 64;
  expectFrequencies(planRotary(rope, 512),
                    {1.0, 0.24438459943539834, 0.013042256043820465,
                     0.003952847075210474, 0.00125, 0.0003952847075210474,
                     0.000125, 3.952847075210474e-05});
}

TEST(PositionMath, YarnRampsByPairAndScalesBothTables) {
  spec::Rope rope = makeRope(32, "yarn", 4);
  rope.scaling.betaFast = 4;
  // No trained length of its own: the model's context serves.
  RotaryPlan plan = planRotary(rope, 64);
  expectFrequencies(plan, {1.0, 0.5623413251903491, 0.2569350598886808,
                           0.11114246312743269, 0.043750000000000004,
                           0.014058533129758728, 0.007905694150420948,
                           0.004445698525097307, 0.0025, 0.0014058533129758727,
                           0.0007905694150420948, 0.0004445698525097307,
                           0.00025, 0.00014058533129758727,
                           7.905694150420948e-05, 4.445698525097307e-05});
  EXPECT_DOUBLE_EQ(plan.factor, 0.1 * std::log(4.0) + 1);
  rope.scaling.attentionFactor = 1.5;
  EXPECT_EQ(planRotary(rope, 64).factor, 1.5);
}

TEST(PositionMath, YarnWithoutRampIsAStep) {
  spec::Rope rope = makeRope(8, "yarn", 2);
  rope.scaling.betaFast = rope.scaling.betaSlow = 1;
  rope.scaling.truncate = false;
  for (double w : planRotary(rope, 64).frequencies)
    EXPECT_TRUE(std::isfinite(w) && w > 0);
}

TEST(PositionMath, DynamicKeepsTheBaseAndSaysHowToScale) {
  RotaryPlan plan = planRotary(makeRope(8, "dynamic", 2), 128);
  expectFrequencies(plan, {1, 0.1, 0.01, 0.001});
  ASSERT_TRUE(plan.dynamic);
  EXPECT_EQ(*plan.dynamic, (std::array<double, 3>{128, 2, 8}));
}

TEST(PositionMath, SlopesOfAPowerOfTwo) {
  EXPECT_EQ(alibiSlopes(1), (std::vector<float>{0.00390625f}));
  EXPECT_EQ(alibiSlopes(8),
            (std::vector<float>{0.5f, 0.25f, 0.125f, 0.0625f, 0.03125f,
                                0.015625f, 0.0078125f, 0.00390625f}));
}

TEST(PositionMath, OtherHeadCountsTakeEverySecondOfTheNextPower) {
  std::vector<float> slopes = alibiSlopes(6);
  ASSERT_EQ(slopes.size(), 6u);
  const float expected[] = {0.25f,       0.0625f, 0.015625f,
                            0.00390625f, 0.5f,    0.125f};
  for (size_t i = 0; i < 6; ++i)
    EXPECT_FLOAT_EQ(slopes[i], expected[i]) << "head " << i;
}
