//===- PrintTest.cpp - Canonical JSON and back ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Parsing.h"

using namespace attune;
using namespace attune::test;

static void expectRoundTrip(const std::string &text) {
  Parsed first = parseText(text);
  ASSERT_EQ(first.text(), "");
  std::string printed = spec::print(*first.model);
  Parsed second = parseText(printed);
  ASSERT_EQ(second.text(), "") << printed;
  EXPECT_EQ(spec::print(*second.model), printed);
}

TEST(Print, EveryKeyComesBack) { expectRoundTrip(everyKey()); }

TEST(Print, ExamplesComeBack) {
  for (const std::string &path : exampleFiles()) {
    SCOPED_TRACE(path);
    expectRoundTrip(readText(path));
  }
}

TEST(Print, CanonicalForm) {
  Parsed parsed = parseText(
      R"({"attune": 1, "dims": {"D": 8}, "layers": [
            {"embedding": {"vocab": 5, "width": "D"}, "name": "e"},
            {"norm": {"kind": "rms_norm", "eps": 0.00001}},
            {"linear": {"tied": "e"}}]})");
  ASSERT_EQ(parsed.text(), "");
  EXPECT_EQ(spec::print(*parsed.model), R"({
  "attune": 1,
  "name": "model",
  "dims": {"D": 8},
  "inputs": {"input_ids": {"dtype": "i64", "shape": ["batch", "seq"]}},
  "layers": [
    {"embedding": {"vocab": 5, "width": 8}, "name": "e"},
    {"rms_norm": {"eps": 1e-05}, "name": "layers.1"},
    {"linear": {"tied": "e"}, "name": "layers.2"}
  ],
  "outputs": {"logits": "layers.2"}
}
)");
}

TEST(Print, AStreamThatIsNotTheDefaultIsNamed) {
  Parsed parsed = parseText(
      R"({"attune": 1,
          "inputs": {"a": {"dtype": "f32", "shape": ["n", "t", 8]},
                     "b": {"dtype": "f32", "shape": ["n", "t", 8]}},
          "streams": {"main": {"input": "b", "layers": [{"ffn": {"width": 4}}]}}})");
  ASSERT_EQ(parsed.text(), "");
  std::string printed = spec::print(*parsed.model);
  EXPECT_NE(printed.find("\"streams\""), std::string::npos) << printed;
  expectRoundTrip(printed);
}

TEST(Print, OddStringsSurvive) {
  expectRoundTrip(
      R"({"attune": 1, "name": "quote \" slash \\ tab \t é \u0001",
          "layers": [{"embedding": {"vocab": 5, "width": 8},
                      "name": "a/b~c\"d"}]})");
}
