//===- ToolCallsTest.cpp - Calls of tools in a model's text ---------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Serve/ToolCalls.h"

#include "gtest/gtest.h"

using namespace attune::runtime;

namespace {

/// "TEXT|NAME(ARGUMENTS)...", however the text is cut into pieces.
std::string find(const std::string &text) {
  std::string result;
  for (size_t step = 1; step <= text.size(); ++step) {
    ToolCallFinder finder;
    std::string shown;
    for (size_t at = 0; at < text.size(); at += step)
      shown += finder.push(std::string_view(text).substr(at, step));
    std::vector<ToolCall> calls;
    shown += finder.finish(calls) + "|";
    for (const ToolCall &call : calls)
      shown += call.name + "(" + call.arguments + ")";
    EXPECT_TRUE(step == 1 || shown == result) << step << ": " << shown;
    result = shown;
  }
  return result;
}

TEST(ToolCalls, BetweenMarks) {
  EXPECT_EQ(find("<tool_call>\n{\"name\": \"f\", \"arguments\": {\"x\": 1}}\n"
                 "</tool_call>"),
            "|f({\"x\":1})");
  EXPECT_EQ(find("Well.\n<tool_call>{\"name\":\"f\",\"arguments\":{}}"
                 "</tool_call>\n<tool_call>{\"name\":\"g\",\"arguments\":"
                 "\"{}\"}"),
            "Well.\n|f({})g({})");
}

TEST(ToolCalls, NothingButJson) {
  EXPECT_EQ(find(" {\"name\":\"f\",\"parameters\":{\"a\":[1]}}"),
            "|f({\"a\":[1]})");
  EXPECT_EQ(find("[{\"name\":\"f\",\"arguments\":{}},"
                 "{\"name\":\"g\",\"arguments\":{}}]"),
            "|f({})g({})");
}

TEST(ToolCalls, WhatIsNoCallIsText) {
  for (const char *text :
       {"Hello <tool", "a <b> c", "{\"a\":1}", "[1]", "[]", "{", "  ",
        "<tool_call>{</tool_call>", "x <tool_call>{\"name\":1}</tool_call> y",
        "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> more",
        "{\"name\":\"f\",\"arguments\":{}} more", "<tool_call>"})
    EXPECT_EQ(find(text), std::string(text) + "|");
}

} // namespace
