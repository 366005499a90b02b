//===- ToolCalls.h - Calls of tools in a model's text -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Models are taught to write calls in several ways. `ARGUMENTS` is a JSON
// object.
//
//   {"name": NAME, "arguments": ARGUMENTS}, or "parameters", or an array of
//     such objects, and nothing else               Llama 3, Phi 4
//   <tool_call>{"name": ...}</tool_call>...        Hermes, Qwen, Granite 4
//   <tool_call><function=NAME><parameter=KEY>VALUE</parameter></function>
//     </tool_call>...                              Qwen 3 Coder, Nemotron 3
//   <tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>
//     </tool_call>...                              GLM 4.5 and later
//   <minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE
//     </parameter></invoke></minimax:tool_call>    MiniMax M2
//   [TOOL_CALLS][{"name": ...}], or [TOOL_CALLS]NAME[ARGS]ARGUMENTS...
//                                                  Mistral
//   <｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>NAME and
//     ARGUMENTS in a block of ```json, or NAME<｜tool▁sep｜>ARGUMENTS
//                                                  DeepSeek V3 and R1, V3.1
//   <|tool_calls_section_begin|><|tool_call_begin|>functions.NAME:0
//     <|tool_call_argument_begin|>ARGUMENTS<|tool_call_end|>...  Kimi K2
//   [NAME(KEY=VALUE, ...), ...], values as Python's literals, alone or between
//     <|tool_call_start|> and <|tool_call_end|>    Llama 4, LFM2
//
// Values between tags are texts where a tool's schema says so, and else JSON if
// they are any.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CHAT_TOOLCALLS_H
#define ATTUNE_LIB_RUNTIME_CHAT_TOOLCALLS_H

#include "attune/Runtime/Json.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace attune::runtime {

struct ToolCall {
  std::string name;
  std::string arguments; ///< JSON
};

/// A way that has marks, which may be special tokens.
struct CallSyntax {
  std::string_view opening; ///< before the first call
  std::vector<std::string_view> inner;
  /// Reads a text that begins with the opening; the calls mean nothing after a
  /// failure.
  bool (*read)(std::string_view text, const JsonValue *tools,
               std::vector<ToolCall> &calls);
};
/// All of them. A chat template that has an opening tells of that way; the
/// first one counts.
const std::vector<CallSyntax> &callSyntaxes();

/// The calls that a text holds, which is nothing but calls; `tools` may be
/// null. False: it is something else.
bool readToolCalls(std::string_view text, const JsonValue *tools,
                   std::vector<ToolCall> &calls);
/// The same of calls in Python's syntax alone.
bool readPythonCalls(std::string_view text, std::vector<ToolCall> &calls);
/// A call whose arguments are `text`, if that is a JSON object.
bool addToolCall(std::string_view name, std::string_view text,
                 std::vector<ToolCall> &calls);

/// How many of the last bytes of a text may be the beginning of a mark.
size_t countBegun(std::string_view text, std::string_view mark);

/// Finds calls in a text that comes in pieces. They stand behind all other
/// text.
class ToolCallFinder {
public:
  /// `openings` are what calls begin with that are not mere JSON.
  ToolCallFinder(std::vector<std::string_view> openings, const JsonValue *tools)
      : openings(std::move(openings)), tools(tools) {}
  /// Takes the next piece; the text that is certainly no call.
  std::string push(std::string_view piece);
  /// The rest of the text: all that was held back if it is no call.
  std::string finish(std::vector<ToolCall> &calls);

private:
  std::vector<std::string_view> openings;
  const JsonValue *tools;
  std::string held;
  bool hasBegun = false; ///< something but white space came
  bool isCall = false;   ///< from the beginning of `held` on
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CHAT_TOOLCALLS_H
