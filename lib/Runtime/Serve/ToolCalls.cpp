//===- ToolCalls.cpp - Calls of tools in a model's text -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolCalls.h"

#include "attune/Runtime/Json.h"

#include <algorithm>

namespace attune::runtime {

static constexpr std::string_view opening = "<tool_call>",
                                  closing = "</tool_call>";
static constexpr std::string_view whiteSpace = " \t\r\n";

static std::string_view trim(std::string_view text) {
  size_t begin = text.find_first_not_of(whiteSpace);
  if (begin == std::string_view::npos)
    return {};
  return text.substr(begin, text.find_last_not_of(whiteSpace) + 1 - begin);
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
    isCall = held[begin] == '{' || held[begin] == '[';
    if (isCall)
      return "";
  }
  size_t keep = held.size(), mark = held.find(opening);
  if (mark != std::string::npos) {
    isCall = true;
    keep = held.size() - mark;
  } else {
    // The end may be the beginning of the mark.
    keep = std::min(held.size(), opening.size() - 1);
    while (std::string_view(held).substr(held.size() - keep) !=
           opening.substr(0, keep))
      --keep;
  }
  std::string shown = held.substr(0, held.size() - keep);
  held.erase(0, held.size() - keep);
  return shown;
}

/// A call, or an array of calls.
static bool readCalls(std::string_view text, std::vector<ToolCall> &calls) {
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
    const JsonValue *name = each->isObject() ? each->find("name") : nullptr;
    const JsonValue *arguments = each->find("arguments");
    if (!arguments)
      arguments = each->find("parameters");
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

std::string ToolCallFinder::finish(std::vector<ToolCall> &calls) {
  calls.clear();
  std::string rest = std::move(held);
  held.clear();
  if (!isCall)
    return rest;
  std::string_view left = trim(rest);
  bool good = true;
  if (left.substr(0, opening.size()) != opening)
    good = readCalls(left, calls);
  else
    while (good && !left.empty()) {
      size_t end = left.find(closing); // the last one may be missing
      std::string_view call = left.substr(0, end);
      good = call.substr(0, opening.size()) == opening &&
             readCalls(trim(call.substr(opening.size())), calls);
      left = end == std::string_view::npos
                 ? std::string_view()
                 : trim(left.substr(end + closing.size()));
    }
  if (good)
    return "";
  calls.clear();
  return rest;
}

} // namespace attune::runtime
