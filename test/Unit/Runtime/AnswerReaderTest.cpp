//===- AnswerReaderTest.cpp - The parts of an answer ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Chat/AnswerReader.h"

#include "gtest/gtest.h"

using namespace attune::runtime;

namespace {

JsonValue parse(const std::string &text) {
  JsonValue value;
  std::string problem;
  EXPECT_TRUE(parseJson(text, value, problem)) << problem;
  return value;
}

/// "REASONING|CONTENT|NAME(ARGUMENTS)...", however the text is cut into pieces.
std::string read(const AnswerFormat &format, const std::string &text,
                 bool inReasoning = false, const JsonValue *tools = nullptr) {
  std::string result;
  for (size_t step = 1; step <= text.size(); ++step) {
    auto reader = AnswerReader::create(format, inReasoning, tools);
    std::string reasoning, content;
    auto add = [&](const AnswerText &part) {
      reasoning += part.reasoning;
      content += part.content;
    };
    for (size_t at = 0; at < text.size(); at += step)
      add(reader->push(std::string_view(text).substr(at, step)));
    std::vector<ToolCall> calls;
    add(reader->finish(calls));
    std::string all = reasoning + "|" + content + "|";
    for (const ToolCall &call : calls)
      all += call.name + "(" + call.arguments + ")";
    EXPECT_TRUE(step == 1 || all == result) << step << ": " << all;
    result = all;
  }
  return result;
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

/// The content and the calls; `f` takes a text and a number.
std::string find(const std::string &text,
                 std::string_view opening = "<tool_call>") {
  AnswerFormat format;
  format.calls = opening;
  JsonValue tools = parse(
      R"([{"type": "function", "function": {"name": "f", "parameters": {
        "type": "object", "properties": {"text": {"type": "string"},
                                         "number": {"type": "integer"}}}}}])");
  return read(format, text, false, &tools).substr(1);
}

TEST(ToolCalls, JsonBetweenMarks) {
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

TEST(ToolCalls, Functions) {
  EXPECT_EQ(find("So.\n<tool_call>\n<function=f>\n<parameter=text>\n12\n"
                 "</parameter>\n<parameter=number>\n12\n</parameter>\n"
                 "<parameter=other>\nTrue\n</parameter>\n</function>\n"
                 "</tool_call>"),
            "So.\n|f({\"text\":\"12\",\"number\":12,\"other\":true})");
  // A text keeps its inner line ends.
  EXPECT_EQ(find("<tool_call><function=g><parameter=x>\na\n\nb \n</parameter>"
                 "</function></tool_call>"),
            "|g({\"x\":\"a\\n\\nb \"})");
  EXPECT_EQ(find("<tool_call>\n<function=g>\n</function>\n</tool_call>\n"
                 "<tool_call>\n<function=h>\n</function>\n</tool_call>"),
            "|g({})h({})");
}

TEST(ToolCalls, Pairs) {
  EXPECT_EQ(
      find("<tool_call>f\n<arg_key>text</arg_key>\n<arg_value>1</arg_value>"
           "\n<arg_key>number</arg_key>\n<arg_value>[1, 2]</arg_value>\n"
           "</tool_call>\n<tool_call>g</tool_call>"),
      "|f({\"text\":\"1\",\"number\":[1,2]})g({})");
}

TEST(ToolCalls, Invokes) {
  EXPECT_EQ(find("Hm.\n<minimax:tool_call>\n<invoke name=\"f\">\n"
                 "<parameter name=\"text\">a \"b\"</parameter>\n"
                 "<parameter name=\"number\">3</parameter>\n</invoke>\n"
                 "<invoke name=\"g\">\n</invoke>\n</minimax:tool_call>",
                 "<minimax:tool_call>"),
            "Hm.\n|f({\"text\":\"a \\\"b\\\"\",\"number\":3})g({})");
}

TEST(ToolCalls, Mistral) {
  EXPECT_EQ(find("[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}}]",
                 "[TOOL_CALLS]"),
            "|f({\"a\":1})");
  EXPECT_EQ(find("Yes.[TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]x1"
                 "[ARGS]{}",
                 "[TOOL_CALLS]"),
            "Yes.|f({\"a\":1})g({})");
}

TEST(ToolCalls, DeepSeek) {
  EXPECT_EQ(
      find("A.<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function"
           "<｜tool▁sep｜>f\n```json\n{\"a\": 1}\n```<｜tool▁call▁end｜>\n"
           "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```"
           "<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
           "<｜tool▁calls▁begin｜>"),
      "A.|f({\"a\":1})g({})");
  EXPECT_EQ(find("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>"
                 "{\"a\": 1}<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
                 "<｜tool▁calls▁begin｜>"),
            "|f({\"a\":1})");
}

TEST(ToolCalls, Kimi) {
  EXPECT_EQ(find("<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0"
                 "<|tool_call_argument_begin|>{\"a\": 1}<|tool_call_end|>"
                 "<|tool_call_begin|>functions.g:1<|tool_call_argument_begin|>"
                 "{}<|tool_call_end|><|tool_calls_section_end|>",
                 "<|tool_calls_section_begin|>"),
            "|f({\"a\":1})g({})");
}

TEST(ToolCalls, Python) {
  EXPECT_EQ(find(" [f(text='it\\'s', number=-1.5e3), g.h(a=[1, True], b={'k': "
                 "None,}, c=(), )]"),
            "|f({\"text\":\"it's\",\"number\":-1.5e3})g.h({\"a\":[1,true],"
            "\"b\":{\"k\":null},\"c\":[]})");
  EXPECT_EQ(find("Hm.<|tool_call_start|>[f()]<|tool_call_end|>",
                 "<|tool_call_start|>"),
            "Hm.|f({})");
}

TEST(ToolCalls, WhatIsNoCallIsText) {
  for (const char *text :
       {"Hello <tool",
        "a <b> c",
        "{\"a\":1}",
        "[1]",
        "[]",
        "{",
        "  ",
        "<tool_call>{</tool_call>",
        "x <tool_call>{\"name\":1}</tool_call> y",
        "<tool_call>{\"name\":\"f\",\"arguments\":{}}</tool_call> more",
        "{\"name\":\"f\",\"arguments\":{}} more",
        "<tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>two words</tool_call>",
        "<tool_call><function=f</tool_call>",
        "<tool_call><function=f><parameter=a></function></tool_call>",
        "<tool_call>f<arg_key>a</arg_key></tool_call>",
        "[TOOL_CALLS]f[ARGS]{",
        "[TOOL_CALLS]f",
        "[TOOL_CALLS][ARGS]{}",
        "[f(]",
        "[f(a)]",
        "[f(a=b)]",
        "[f(a='b)]",
        "[f(a={1: 2})]",
        "[f()",
        "[f()] x",
        "[see f(x=1)]"})
    EXPECT_EQ(find(text), std::string(text) + "|");
  EXPECT_EQ(
      find("<minimax:tool_call><invoke name=\"f\">", "<minimax:tool_call>"),
      "<minimax:tool_call><invoke name=\"f\">|");
  EXPECT_EQ(find("<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>[1]"
                 "<｜tool▁call▁end｜>",
                 "<｜tool▁calls▁begin｜>"),
            "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>f<｜tool▁sep｜>[1]"
            "<｜tool▁call▁end｜>|");
}

//===----------------------------------------------------------------------===//
// Reasoning
//===----------------------------------------------------------------------===//

AnswerFormat thinking() {
  AnswerFormat format;
  format.opening = "<think>";
  format.closing = "</think>";
  return format;
}

TEST(AnswerReader, Reasoning) {
  EXPECT_EQ(read(thinking(), "<think>\nA \n B\n</think>\n\nC </think>"),
            "A \n B|C </think>|");
  EXPECT_EQ(read(thinking(), " <think>A</think>B"), "A|B|");
  // Qwen 3 without thinking.
  EXPECT_EQ(read(thinking(), "<think>\n\n</think>\n\nB"), "|B|");
  EXPECT_EQ(read(thinking(), "\n</think>\n\nB", true), "|B|");
  EXPECT_EQ(read(thinking(), "A</thin</think> B", true), "A</thin|B|");
}

TEST(AnswerReader, ReasoningThatDoesNotEnd) {
  EXPECT_EQ(read(thinking(), "<think>A </thi"), "A </thi||");
  EXPECT_EQ(read(thinking(), "A\n", true), "A||");
}

TEST(AnswerReader, NoReasoning) {
  EXPECT_EQ(read(thinking(), " B <think>C</think>"), "| B <think>C</think>|");
  EXPECT_EQ(read(thinking(), "<thi"), "|<thi|");
  EXPECT_EQ(read(AnswerFormat(), "<think>A</think>"), "|<think>A</think>|");
}

TEST(AnswerReader, CallsBehindReasoning) {
  JsonValue tools = parse("[]");
  EXPECT_EQ(read(thinking(),
                 "<think>{\"a\"</think>\n<tool_call>{\"name\":\"f\","
                 "\"arguments\":{}}</tool_call>",
                 false, &tools),
            "{\"a\"||f({})");
}

TEST(AnswerReader, Channels) {
  AnswerFormat format;
  format.hasChannels = true;
  JsonValue tools = parse("[]");
  EXPECT_EQ(read(format, "<|channel|>analysis<|message|>A<|end|><|start|>"
                         "assistant<|channel|>final<|message|>B"),
            "A|B|");
  EXPECT_EQ(read(format, "<|channel|>final<|message|>B<|return|>"), "|B|");
  EXPECT_EQ(read(format, "<|channel|>analysis<|message|>A <|e"), "A <|e||");
  // What begins as no message does: a form that was asked for.
  EXPECT_EQ(read(format, "{\"a\": 1}"), "|{\"a\": 1}|");
  EXPECT_EQ(read(format, "to"), "|to|");
  std::string call = "<|channel|>analysis<|message|>A<|end|><|start|>assistant"
                     "<|channel|>analysis<|message|>B<|end|><|start|>assistant"
                     "<|channel|>commentary<|message|>C<|end|><|start|>"
                     "assistant<|channel|>commentary to=functions.f "
                     "<|constrain|>json<|message|>{\"x\": [1]}<|call|>";
  EXPECT_EQ(read(format, call, false, &tools), "A\nB|C|f({\"x\":[1]})");
  EXPECT_EQ(read(format,
                 " to=functions.f<|channel|>commentary json<|message|>{}",
                 false, &tools),
            "||f({})");
  // Arguments that are none, and a call that nobody asked for.
  EXPECT_EQ(
      read(format, " to=f<|channel|>commentary<|message|>{", false, &tools),
      "|{|");
  EXPECT_EQ(read(format, " to=f<|channel|>commentary<|message|>{}"), "|{}|");
}

/// Pieces that are content, one behind the other.
std::string listContent(const AnswerFormat &format,
                        const std::vector<std::string> &pieces) {
  auto reader = AnswerReader::create(format, false, nullptr);
  std::string content;
  for (const std::string &piece : pieces) {
    reader->push(piece);
    content += reader->isContent() ? piece : "";
  }
  return content;
}

TEST(AnswerReader, PiecesOfContent) {
  AnswerFormat marks = thinking(), channels;
  channels.hasChannels = true;
  EXPECT_EQ(
      listContent(marks, {"<think>", "A", "</", "think>", "\n", "B", "C"}),
      "BC");
  EXPECT_EQ(listContent(marks, {" ", "A"}), " A");
  EXPECT_EQ(
      listContent(channels, {"<|channel|>", "analysis", "<|message|>", "A",
                             "<|end|>", "<|start|>", "assistant", "<|channel|>",
                             "final", "<|message|>", "B", "C", "<|return|>"}),
      "BC");
  EXPECT_EQ(listContent(channels, {"A", "B"}), "AB");
}

TEST(AnswerReader, HeaderThatDoesNotEnd) {
  AnswerFormat format;
  format.hasChannels = true;
  std::string text = "<|start|>" + std::string(600, 'a');
  EXPECT_EQ(read(format, text), "|" + std::string(600, 'a') + "|");
}

} // namespace
