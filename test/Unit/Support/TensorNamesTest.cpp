//===- TensorNamesTest.cpp --------------------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Support/TensorNames.h"

#include "gtest/gtest.h"

using namespace attune;

namespace {

TEST(TensorNames, NumbersOfLayers) {
  EXPECT_EQ(substituteLayer("h.{i}.w.{i}", 3), "h.3.w.3");
  EXPECT_EQ(substituteLayer("h.{i+12}.w", 3), "h.15.w");
  EXPECT_EQ(substituteLayer("h.{i=7}.w", 0), "h.7.w");
  for (auto [entry, name] : {std::pair(0, "h.0.w"), std::pair(1, "h.2.w"),
                             std::pair(3, "h.4.w"), std::pair(4, "h.9.w")})
    EXPECT_EQ(substituteLayer("h.{i=0,2-4,9}.w", entry), name);
}

TEST(TensorNames, OtherBracesStay) {
  for (const char *name :
       {"h.{i", "h.{e}.w", "h.{i+}.w", "h.{i+x}.w", "h.{i=}.w", "h.{i=0,2}.w",
        "h.{i=3-1}.w", "h.{i=0-}.w", "h.{i+1234567890}.w"})
    EXPECT_EQ(substituteLayer(name, 2), name);
}

TEST(TensorNames, ListsOfNumbers) {
  EXPECT_EQ(placeOfNumbers({0, 1, 2}), "{i}");
  EXPECT_EQ(placeOfNumbers({4, 5}), "{i+4}");
  EXPECT_EQ(placeOfNumbers({0, 1, 2, 5, 7, 8}), "{i=0-2,5,7-8}");
  EXPECT_EQ(placeOfNumbers({3, 2, 3}), "{i=3,2-3}");
}

TEST(TensorNames, Parts) {
  EXPECT_EQ(substitutePart("h.{i}.e.{e}.w", 5), "h.{i}.e.5.w");
}

} // namespace
