//===- ToolCalls.cpp - Calls of tools in a model's text -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolCalls.h"

#include <algorithm>

namespace attune::runtime {

static constexpr std::string_view whiteSpace = " \t\r\n";

//===----------------------------------------------------------------------===//
// Cutting texts
//===----------------------------------------------------------------------===//

static std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(whiteSpace);
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(whiteSpace) + 1 - begin);
}

/// Takes white space and then `mark` off the front.
static bool take(std::string_view &text, std::string_view mark) {
  std::string_view rest = trim(text);
  if (rest.substr(0, mark.size()) != mark)
    return false;
  text = rest.substr(mark.size());
  return true;
}

/// Takes all before `mark` off the front, and the mark.
static bool takeUntil(std::string_view &text, std::string_view mark,
                      std::string_view &before) {
  size_t at = text.find(mark);
  if (at == std::string_view::npos)
    return false;
  before = text.substr(0, at);
  text.remove_prefix(at + mark.size());
  return true;
}

size_t countBegun(std::string_view text, std::string_view mark) {
  size_t count = std::min(text.size(), mark.size() - 1);
  while (text.substr(text.size() - count) != mark.substr(0, count))
    --count;
  return count;
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

bool addToolCall(std::string_view name, std::string_view text,
                 std::vector<ToolCall> &calls) {
  JsonValue value;
  std::string problem;
  name = trim(name);
  if (name.empty() || !parseJson(text, value, problem) || !value.isObject())
    return false;
  ToolCall call;
  call.name = name;
  appendJson(call.arguments, value);
  calls.push_back(std::move(call));
  return true;
}

static const JsonValue *memberOf(const JsonValue *object,
                                 std::string_view key) {
  return object && object->isObject() ? object->find(key) : nullptr;
}

/// Whether a tool's schema has a text here.
static bool takesText(const JsonValue *tools, std::string_view name,
                      std::string_view key) {
  for (size_t i = 0; tools && i < tools->items.size(); ++i) {
    const JsonValue *function = memberOf(&tools->items[i], "function");
    const JsonValue *called = memberOf(function, "name");
    if (!called || !called->isString() || called->string != name)
      continue;
    const JsonValue *type = memberOf(
        memberOf(memberOf(memberOf(function, "parameters"), "properties"), key),
        "type");
    return type && type->isString() && type->string == "string";
  }
  return false;
}

namespace {
/// A call whose arguments come one by one, as texts between tags.
class TaggedCall {
public:
  TaggedCall(std::string_view name, const JsonValue *tools)
      : name(trim(name)), tools(tools) {}

  void add(std::string_view key, std::string_view text) {
    key = trim(key);
    arguments += arguments.empty() ? "{" : ",";
    appendJsonString(arguments, key);
    arguments += ':';
    JsonValue value;
    std::string problem;
    // Models that learned from Python's texts.
    std::string_view word = trim(text);
    word = word == "True"    ? "true"
           : word == "False" ? "false"
           : word == "None"  ? "null"
                             : word;
    if (takesText(tools, name, key) || !parseJson(word, value, problem))
      appendJsonString(arguments, text);
    else
      appendJson(arguments, value);
  }
  bool finish(std::vector<ToolCall> &calls) {
    if (name.empty())
      return false;
    calls.push_back(
        {std::string(name), arguments.empty() ? "{}" : arguments + "}"});
    return true;
  }

private:
  std::string_view name;
  const JsonValue *tools;
  std::string arguments;
};
} // namespace

/// A value on lines of its own, without their ends.
static std::string_view withoutLineEnds(std::string_view value) {
  if (value.substr(0, 1) == "\n")
    value.remove_prefix(1);
  if (!value.empty() && value.back() == '\n')
    value.remove_suffix(1);
  return value;
}

//===----------------------------------------------------------------------===//
// One way each
//===----------------------------------------------------------------------===//

/// A call, or an array of calls.
static bool readJsonCalls(std::string_view text, std::vector<ToolCall> &calls) {
  JsonValue value;
  std::string problem;
  if (!parseJson(text, value, problem))
    return false;
  std::vector<const JsonValue *> all;
  if (value.isArray())
    for (const JsonValue &item : value.items)
      all.push_back(&item);
  else
    all.push_back(&value);
  for (const JsonValue *each : all) {
    const JsonValue *name = memberOf(each, "name");
    const JsonValue *arguments = memberOf(each, "arguments");
    if (!arguments)
      arguments = memberOf(each, "parameters");
    if (!name || !name->isString() || !arguments)
      return false;
    ToolCall call;
    call.name = name->string;
    if (arguments->isString())
      call.arguments = arguments->string;
    else
      appendJson(call.arguments, *arguments);
    calls.push_back(std::move(call));
  }
  return !calls.empty();
}

/// NAME><parameter=KEY>VALUE</parameter>...</function>
static bool readFunction(std::string_view text, const JsonValue *tools,
                         std::vector<ToolCall> &calls) {
  std::string_view name, key, value;
  if (!takeUntil(text, ">", name))
    return false;
  TaggedCall call(name, tools);
  while (take(text, "<parameter=")) {
    if (!takeUntil(text, ">", key) || !takeUntil(text, "</parameter>", value))
      return false;
    call.add(key, withoutLineEnds(value));
  }
  return take(text, "</function>") && trim(text).empty() && call.finish(calls);
}

/// NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>...
static bool readPairs(std::string_view text, const JsonValue *tools,
                      std::vector<ToolCall> &calls) {
  std::string_view name = text.substr(0, text.find('<')), key, value;
  text.remove_prefix(name.size());
  if (trim(name).find_first_of(whiteSpace) != std::string_view::npos)
    return false;
  TaggedCall call(name, tools);
  while (take(text, "<arg_key>")) {
    if (!takeUntil(text, "</arg_key>", key) || !take(text, "<arg_value>") ||
        !takeUntil(text, "</arg_value>", value))
      return false;
    call.add(key, value);
  }
  return trim(text).empty() && call.finish(calls);
}

/// One or more calls between <tool_call> and </tool_call>, which the last one
/// may lack.
static bool readSections(std::string_view text, const JsonValue *tools,
                         std::vector<ToolCall> &calls) {
  while (!trim(text).empty()) {
    std::string_view section;
    if (!take(text, "<tool_call>"))
      return false;
    if (!takeUntil(text, "</tool_call>", section)) {
      section = text;
      text = {};
    }
    section = trim(section);
    bool isJson = !section.empty() && (section[0] == '{' || section[0] == '[');
    bool isFunction = take(section, "<function=");
    if (!(isJson       ? readJsonCalls(section, calls)
          : isFunction ? readFunction(section, tools, calls)
                       : readPairs(section, tools, calls)))
      return false;
  }
  return true;
}

static bool readInvokes(std::string_view text, const JsonValue *tools,
                        std::vector<ToolCall> &calls) {
  if (!take(text, "<minimax:tool_call>"))
    return false;
  std::string_view name, key, value;
  while (take(text, "<invoke name=\"")) {
    if (!takeUntil(text, "\">", name))
      return false;
    TaggedCall call(name, tools);
    while (take(text, "<parameter name=\"")) {
      if (!takeUntil(text, "\">", key) ||
          !takeUntil(text, "</parameter>", value))
        return false;
      call.add(key, value);
    }
    if (!take(text, "</invoke>") || !call.finish(calls))
      return false;
  }
  take(text, "</minimax:tool_call>");
  return trim(text).empty();
}

static bool readMistral(std::string_view text, const JsonValue *,
                        std::vector<ToolCall> &calls) {
  if (!take(text, "[TOOL_CALLS]"))
    return false;
  text = trim(text);
  if (!text.empty() && (text[0] == '[' || text[0] == '{'))
    return readJsonCalls(text, calls);
  do {
    std::string_view name, next;
    if (!takeUntil(text, "[ARGS]", name))
      return false;
    name = name.substr(0, name.find("[CALL_ID]"));
    next = text.substr(0, text.find("[TOOL_CALLS]"));
    text.remove_prefix(next.size());
    if (!addToolCall(name, next, calls))
      return false;
  } while (take(text, "[TOOL_CALLS]"));
  return true;
}

static bool readDeepSeek(std::string_view text, const JsonValue *,
                         std::vector<ToolCall> &calls) {
  if (!take(text, "<｜tool▁calls▁begin｜>"))
    return false;
  std::string_view name, arguments;
  while (take(text, "<｜tool▁call▁begin｜>")) {
    if (!takeUntil(text, "<｜tool▁sep｜>", name) ||
        !takeUntil(text, "<｜tool▁call▁end｜>", arguments))
      return false;
    std::string_view block = arguments;
    if (name == "function" && takeUntil(block, "\n", name) &&
        !(take(block, "```json") && takeUntil(block, "```", arguments)))
      return false;
    if (!addToolCall(name, arguments, calls))
      return false;
  }
  take(text, "<｜tool▁calls▁end｜>");
  return trim(text).empty();
}

static bool readKimi(std::string_view text, const JsonValue *,
                     std::vector<ToolCall> &calls) {
  if (!take(text, "<|tool_calls_section_begin|>"))
    return false;
  std::string_view name, arguments;
  while (take(text, "<|tool_call_begin|>")) {
    if (!takeUntil(text, "<|tool_call_argument_begin|>", name) ||
        !takeUntil(text, "<|tool_call_end|>", arguments))
      return false;
    take(name, "functions.");
    if (!addToolCall(name.substr(0, name.rfind(':')), arguments, calls))
      return false;
  }
  take(text, "<|tool_calls_section_end|>");
  return trim(text).empty();
}

/// Calls in Python's syntax between marks.
static bool readMarkedPython(std::string_view text, const JsonValue *,
                             std::vector<ToolCall> &calls) {
  std::string_view section;
  if (!take(text, "<|tool_call_start|>"))
    return false;
  if (!takeUntil(text, "<|tool_call_end|>", section)) {
    section = text;
    text = {};
  }
  return trim(text).empty() && readPythonCalls(section, calls);
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

const std::vector<CallSyntax> &callSyntaxes() {
  static const std::vector<CallSyntax> all = {
      {"<｜tool▁calls▁begin｜>",
       {"<｜tool▁call▁begin｜>", "<｜tool▁sep｜>", "<｜tool▁call▁end｜>",
        "<｜tool▁calls▁end｜>"},
       readDeepSeek},
      {"<|tool_calls_section_begin|>",
       {"<|tool_call_begin|>", "<|tool_call_argument_begin|>",
        "<|tool_call_end|>", "<|tool_calls_section_end|>"},
       readKimi},
      {"<minimax:tool_call>", {"</minimax:tool_call>"}, readInvokes},
      {"[TOOL_CALLS]", {"[CALL_ID]", "[ARGS]"}, readMistral},
      {"<|tool_call_start|>", {"<|tool_call_end|>"}, readMarkedPython},
      {"<tool_call>",
       {"</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>",
        "</arg_value>"},
       readSections}};
  return all;
}

bool readToolCalls(std::string_view text, const JsonValue *tools,
                   std::vector<ToolCall> &calls) {
  calls.clear();
  for (const CallSyntax &syntax : callSyntaxes()) {
    std::string_view rest = text;
    if (!take(rest, syntax.opening))
      continue;
    if (syntax.read(text, tools, calls) && !calls.empty())
      return true;
    calls.clear();
    return false;
  }
  if (readJsonCalls(text, calls))
    return true;
  calls.clear();
  if (readPythonCalls(text, calls))
    return true;
  calls.clear();
  return false;
}

std::string ToolCallFinder::push(std::string_view piece) {
  held += piece;
  if (isCall)
    return "";
  if (!hasBegun) {
    size_t begin = held.find_first_not_of(whiteSpace);
    if (begin == std::string::npos)
      return "";
    hasBegun = true;
    // Mistral's mark is a bracket, too; either is held.
    isCall = held[begin] == '{' || held[begin] == '[';
    if (isCall)
      return "";
  }
  size_t mark = held.size(), begun = 0;
  for (std::string_view opening : openings) {
    mark = std::min(mark, held.find(opening));
    begun = std::max(begun, countBegun(held, opening));
  }
  isCall = mark < held.size();
  size_t keep = isCall ? held.size() - mark : begun;
  std::string shown = held.substr(0, held.size() - keep);
  held.erase(0, held.size() - keep);
  return shown;
}

std::string ToolCallFinder::finish(std::vector<ToolCall> &calls) {
  calls.clear();
  std::string rest = std::move(held);
  held.clear();
  if (isCall && readToolCalls(rest, tools, calls))
    return "";
  return rest;
}

} // namespace attune::runtime
