//===- IRTextTest.cpp - Guards before MLIR's parser -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/IRText.h"

#include <gtest/gtest.h>
#include <string>

using namespace attune;

static std::string repeat(const std::string &text, unsigned times) {
  std::string all;
  while (times-- > 0)
    all += text;
  return all;
}

TEST(IRText, FindsTheFirstBracketThatIsTooDeep) {
  std::string most = repeat("{", kMaxIRDepth) + repeat("}", kMaxIRDepth);
  EXPECT_EQ(findTooDeep(most + most), std::string::npos);
  EXPECT_EQ(findTooDeep("x\n" + repeat("{", kMaxIRDepth) + " ["),
            2u + kMaxIRDepth + 1);
  EXPECT_EQ(findTooDeep(repeat("tuple<", kMaxIRDepth + 1)),
            6u * kMaxIRDepth + 5);
}

TEST(IRText, CountsNeitherStringsNorCommentsNorArrows) {
  EXPECT_EQ(findTooDeep(repeat("\"((\\\"((\" ", kMaxIRDepth)),
            std::string::npos);
  EXPECT_EQ(findTooDeep(repeat("// ((((\n", kMaxIRDepth)), std::string::npos);
  // A string that does not end goes no further than its line.
  EXPECT_EQ(findTooDeep("\"\n" + repeat("(", kMaxIRDepth + 1)),
            2u + kMaxIRDepth);
  // The arrow and the comparison close nothing.
  std::string arrows = repeat("<() -> (i1), d0 >= 0", kMaxIRDepth + 1);
  EXPECT_NE(findTooDeep(arrows), std::string::npos);
}

TEST(IRText, CountsMinusSigns) {
  EXPECT_EQ(findTooDeep(repeat("- ", kMaxIRDepth) + "d0"), std::string::npos);
  EXPECT_EQ(findTooDeep(repeat("- ", kMaxIRDepth + 1) + "d0"),
            2u * kMaxIRDepth);
  EXPECT_EQ(findTooDeep(repeat("-1 ", 3 * kMaxIRDepth)), std::string::npos);
}

TEST(IRText, KnowsBytecode) {
  EXPECT_TRUE(isBytecode("ML\xefR\x0d"));
  EXPECT_FALSE(isBytecode("module {}"));
  EXPECT_FALSE(isBytecode("ML"));
}
