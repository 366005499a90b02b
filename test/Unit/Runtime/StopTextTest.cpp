//===- StopTextTest.cpp - Ending a text where it says something -----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Generation/StopText.h"

#include <gtest/gtest.h>

using namespace attune::runtime;

namespace {

TEST(StopText, HoldsBackWhatMayBeginAStop) {
  StopText text({"###", "END"});
  EXPECT_EQ(text.push("a#"), "a");
  EXPECT_EQ(text.push("b##"), "#b");
  EXPECT_EQ(text.push("E"), "##");
  EXPECT_EQ(text.push("N"), "");
  EXPECT_FALSE(text.isStopped());
  EXPECT_EQ(text.push("Dx"), "");
  EXPECT_TRUE(text.isStopped());
  EXPECT_EQ(text.push("more"), "");
  EXPECT_EQ(text.finish(), "");
}

TEST(StopText, TheFirstStopCounts) {
  StopText text({"later", "x"});
  EXPECT_EQ(text.push("one x two later"), "one ");
  EXPECT_TRUE(text.isStopped());
}

TEST(StopText, GivesBackTheRestAtTheEnd) {
  StopText text({"abcd"});
  EXPECT_EQ(text.push("xabc"), "x");
  EXPECT_EQ(text.finish(), "abc");
  StopText none({});
  EXPECT_EQ(none.push("all"), "all");
  EXPECT_EQ(none.finish(), "");
}

/// Whatever the pieces, the text is that before the first stop.
TEST(StopText, PiecesMakeNoDifference) {
  uint64_t state = 3;
  auto random = [&](uint64_t below) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % below;
  };
  for (int round = 0; round < 3000; ++round) {
    auto word = [&](uint64_t longest) {
      std::string result;
      for (uint64_t n = random(longest) + 1; n > 0; --n)
        result += static_cast<char>('a' + random(2));
      return result;
    };
    std::vector<std::string> stops = {word(4), word(6)};
    std::string whole = word(30), shown;
    size_t end = std::string::npos;
    StopText text(stops);
    for (size_t at = 0; at < whole.size() && !text.isStopped();) {
      size_t size = random(4) + 1;
      shown += text.push(whole.substr(at, size));
      at += size;
      // Of what was said so far the first stop counts.
      for (const std::string &stop : stops)
        end = std::min(end, whole.substr(0, at).find(stop));
      EXPECT_EQ(text.isStopped(), end != std::string::npos);
    }
    EXPECT_EQ(shown + text.finish(), whole.substr(0, end));
  }
}

} // namespace
