//===- JsonTest.cpp - The runtime's JSON reader ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Json.h"
#include "attune/Runtime/Utf8.h"

#include <gtest/gtest.h>

using namespace attune::runtime;

static std::string roundTrip(std::string_view text) {
  JsonValue value;
  std::string error, out;
  if (!parseJson(text, value, error))
    return "error: " + error;
  appendJson(out, value);
  return out;
}

TEST(Json, ReadsEveryKindOfValue) {
  EXPECT_EQ(
      roundTrip(R"( {"a": [1, -2, 0, true, false, null, "x"], "b": {}} )"),
      R"({"a":[1,-2,0,true,false,null,"x"],"b":{}})");
  EXPECT_EQ(roundTrip("9223372036854775807"), "9223372036854775807");
  EXPECT_EQ(roundTrip("-9223372036854775808"), "-9223372036854775808");
  JsonValue value;
  std::string error;
  ASSERT_TRUE(parseJson("9223372036854775808", value, error));
  EXPECT_EQ(value.kind, JsonValue::Kind::Real);
  ASSERT_TRUE(parseJson("[1e-05, 10000.0, 2.5E+2, -0.125]", value, error));
  EXPECT_DOUBLE_EQ(value.items[0].real, 1e-5);
  EXPECT_DOUBLE_EQ(value.items[1].real, 10000.0);
  EXPECT_DOUBLE_EQ(value.items[2].real, 250.0);
  EXPECT_DOUBLE_EQ(value.items[3].real, -0.125);
  // Digits without end, before and behind the point.
  const std::string zeros(5000, '0');
  for (const auto &[text, number] : std::vector<std::pair<std::string, double>>{
           {"0.5" + zeros, 0.5},
           {"25" + zeros + "e-5001", 2.5},
           {"0." + zeros + "25e5000", 0.25},
           {"1." + std::string(5000, '3'), 4.0 / 3},
           {std::string(5000, '1') + "e-4999", 1.0 / 0.9}}) {
    JsonValue real;
    std::string why;
    ASSERT_TRUE(parseJson(text, real, why)) << why;
    EXPECT_DOUBLE_EQ(real.real, number) << text.substr(0, 10);
  }
}

TEST(Json, DecodesEscapes) {
  JsonValue value;
  std::string error;
  ASSERT_TRUE(parseJson(R"("\u0120\ud83d\ude00\n\\\"\/\u0000")", value, error));
  EXPECT_EQ(value.string, std::string("\xC4\xA0\xF0\x9F\x98\x80\n\\\"/\0", 11));
  EXPECT_EQ(roundTrip("\"caf\xC3\xA9\\u0001\""), "\"caf\xC3\xA9\\u0001\"");
}

TEST(Json, RefusesWhatIsNotJson) {
  for (std::string_view bad : {"",
                               " ",
                               "{",
                               "[1,]",
                               "{\"a\":1,}",
                               "{'a':1}",
                               "01",
                               "1.",
                               ".5",
                               "+1",
                               "1e",
                               "nul",
                               "tru",
                               "\"",
                               "\"\\x\"",
                               "\"\\ud800\"",
                               "\"\\udc00\"",
                               "\"\\ud800\\u0041\"",
                               "[1 2]",
                               "{\"a\" 1}",
                               "1 2",
                               "\"a\nb\"",
                               "NaN",
                               "Infinity",
                               "-",
                               "\"\xC0\x80\"",
                               "\"\xED\xA0\x80\"",
                               "\"\xFF\"",
                               "[1]x",
                               "\xEF\xBB\xBF{}"})
    EXPECT_EQ(roundTrip(bad).substr(0, 6), "error:") << bad;
}

TEST(Json, RefusesDuplicateKeys) {
  EXPECT_NE(roundTrip(R"({"a":1,"b":2,"a":3})").find("names 'a' twice"),
            std::string::npos);
}

TEST(Json, LimitsDepthAndSize) {
  EXPECT_NE(roundTrip(std::string(1000000, '[')).find("nested deeper than 64"),
            std::string::npos);
  JsonValue value;
  std::string error;
  JsonLimits limits;
  limits.maxBytes = 8;
  EXPECT_FALSE(parseJson("[1,2,3,4,5]", value, error, limits));
}

TEST(Json, EveryTruncationIsAnError) {
  std::string text = R"({"a":[1,2.5e3,"x\u0041\ud83d\ude00"],"b":{"c":null}})";
  for (size_t n = 0; n < text.size(); ++n)
    EXPECT_EQ(roundTrip(std::string_view(text).substr(0, n)).substr(0, 6),
              "error:");
}

TEST(Utf8, FindsTheCompletePrefix) {
  EXPECT_EQ(completeUtf8Prefix("abc"), 3u);
  EXPECT_EQ(completeUtf8Prefix("a\xC3"), 1u);
  EXPECT_EQ(completeUtf8Prefix("a\xC3\xA9"), 3u);
  EXPECT_EQ(completeUtf8Prefix("\xF0\x9F\x98"), 0u);
  EXPECT_EQ(completeUtf8Prefix("\xF0\x9F\x98\x80"), 4u);
  EXPECT_EQ(completeUtf8Prefix("\x80\x80\x80\x80"), 4u);
  EXPECT_EQ(completeUtf8Prefix(""), 0u);
  EXPECT_EQ(sanitizeUtf8("a\xFF"
                         "b"),
            "a\xEF\xBF\xBD"
            "b");
}
