//===- StoredFormTest.cpp - Forms of numbers, and what holds them ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Weights/StoredForm.h"
#include "attune/Transforms/QuantizationRules.h"

#include <gtest/gtest.h>

using namespace attune;

static StoredForm parse(const char *text) {
  auto form = QuantizationRules::parseForm(text);
  EXPECT_TRUE(form) << text;
  return form.value_or(QuantizedForm{});
}

TEST(StoredForm, IsWhatItsNameSays) {
  for (const char *text :
       {"int8:g16", "int8:g128", "int8:g32:asym", "int4:g32", "int4:g64:asym",
        "int4:g32:f32", "int4:g128:asym:f32", "mxfp4", "fp8:g64",
        "int4:g64:asym:f32:ordered", "int4:g32:asym:i8", "int8:g16:i8",
        "int8:g16:asym:i8"})
    EXPECT_EQ(parse(text).text(), text);
  EXPECT_EQ(parse("int4:asym"), StoredForm::withZeros(4, 32, ScaleType::Half));
  EXPECT_EQ(parse("int8").kind(), "int8");
  for (const char *text :
       {"int4:g16", "int4:g32:g64", "int8:f32", "mxfp4:asym", "int4:", "int2",
        "stored:g32", "fp8:asym", "fp8:g16", "fp8:ordered", "fp8:i8",
        "int8:g16:i8:i8", "int4:g32:f32:i8:f32", "mxfp4:i8"})
    EXPECT_FALSE(QuantizationRules::parseForm(text)) << text;
}

TEST(StoredForm, HoldsWhatHasNoMoreThanItHas) {
  auto holds = [](const char *form, const char *other) {
    return parse(form).holds(parse(other));
  };
  EXPECT_TRUE(holds("int8:g16:asym", "int4:g32:asym:f32"));
  EXPECT_TRUE(holds("int8:g32", "int4:g64"));
  EXPECT_TRUE(holds("int8:g32", "mxfp4"));
  EXPECT_TRUE(holds("int4:g32:asym:f32", "int4:g64"));
  EXPECT_TRUE(holds("mxfp4", "mxfp4"));
  EXPECT_FALSE(holds("int8:g128", "int8:g32"));
  EXPECT_FALSE(holds("int4:g32", "int8:g32"));
  EXPECT_FALSE(holds("int8:g32", "int8:g32:asym"));
  EXPECT_FALSE(holds("int4:g32", "int4:g32:f32"));
  EXPECT_FALSE(holds("int4:g32:f32", "mxfp4"));
  EXPECT_FALSE(holds("mxfp4", "int4:g32"));
  EXPECT_FALSE(holds("int8:g32", "none"));
  EXPECT_TRUE(holds("fp8:g32", "fp8:g128"));
  EXPECT_FALSE(holds("int8:g32", "fp8:g32"));
  EXPECT_FALSE(holds("fp8:g32", "int4:g32"));
  EXPECT_TRUE(holds("int8:g32:ordered", "int4:g32"));
  EXPECT_FALSE(holds("int8:g32", "int4:g32:ordered"));
  // Scales in two levels are numbers of f32, and of nothing less.
  EXPECT_TRUE(holds("int8:g16:asym:i8", "int4:g32:asym:i8"));
  EXPECT_TRUE(holds("int4:g32:asym:f32", "int4:g32:asym:i8"));
  EXPECT_FALSE(holds("int4:g32:asym", "int4:g32:asym:i8"));
  EXPECT_FALSE(holds("int8:g16:i8", "int4:g32:asym:i8"));
  EXPECT_FALSE(holds("int8:g16:asym:i8", "int4:g32"));
}

TEST(StoredForm, CountsTheBytesOfScales) {
  EXPECT_EQ(parse("int4:g32").scaleBytes(512), 32);
  EXPECT_EQ(parse("int4:g32:asym:f32").scaleBytes(512), 128);
  EXPECT_EQ(parse("int4:g32:asym:i8").scaleBytes(512), 40);
  EXPECT_EQ(parse("int8:g16:i8").scaleBytes(512), 36);
  EXPECT_EQ(parse("int8:g16:asym:i8").flat(), parse("int8:g16:asym"));
  EXPECT_EQ(parse("int8:g16").flat(), parse("int8:g16"));
}

TEST(StoredForm, JoinsInTheSmallestThatHoldsBoth) {
  const char *all[] = {
      "int8:g16",      "int8:g128",         "int8:g32:asym", "int4:g32",
      "int4:g64:asym", "int4:g32:asym:f32", "mxfp4",         "int4:g32:asym:i8",
      "int8:g16:i8",   "int8:g32:asym:i8"};
  for (const char *a : all)
    for (const char *b : all) {
      StoredForm joined = parse(a).join(parse(b));
      EXPECT_TRUE(joined.holds(parse(a))) << a << ' ' << b;
      EXPECT_TRUE(joined.holds(parse(b))) << a << ' ' << b;
      EXPECT_EQ(joined, parse(b).join(parse(a))) << a << ' ' << b;
      if (parse(a).holds(parse(b))) {
        EXPECT_EQ(joined, parse(a)) << a << ' ' << b;
      }
    }
  // As files mix them.
  EXPECT_EQ(parse("int4:g32:asym:f32").join(parse("int8:g16")),
            parse("int8:g16:asym"));
  EXPECT_EQ(parse("int4:g32:asym:i8").join(parse("int8:g16:i8")),
            parse("int8:g16:asym:i8"));
  EXPECT_EQ(parse("int4:g32:asym:i8").join(parse("int8:g32")),
            parse("int8:g32:asym"));
  EXPECT_EQ(parse("int4:g32").join(StoredForm{}), StoredForm{});
  EXPECT_EQ(parse("fp8:g64").join(parse("fp8:g128")), parse("fp8:g64"));
  EXPECT_EQ(parse("fp8").join(parse("int8")), StoredForm{});
  EXPECT_EQ(parse("int4:g32:ordered").join(parse("int8")),
            parse("int8:g32:ordered"));
}
