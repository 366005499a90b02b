//===- PythonCalls.cpp - Calls of tools in Python's syntax ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ToolCalls.h"

#include <algorithm>

namespace attune::runtime {

namespace {
/// Reads `[NAME(KEY=VALUE, ...), ...]`, where values are literals.
class PythonReader {
public:
  explicit PythonReader(std::string_view text) : text(text) {}

  bool readCalls(std::vector<ToolCall> &calls);

private:
  bool readCall(std::vector<ToolCall> &calls);
  bool readValue(std::string &json, unsigned depth);
  bool readItems(char close, bool isDict, std::string &json, unsigned depth);
  bool readString(std::string &value);
  std::string_view readWord(std::string_view more);

  void skipSpace() {
    text.remove_prefix(
        std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  }
  bool take(char wanted) {
    skipSpace();
    if (text.empty() || text[0] != wanted)
      return false;
    text.remove_prefix(1);
    return true;
  }

  std::string_view text;
};
} // namespace

/// The letters, digits and these signs at the front.
std::string_view PythonReader::readWord(std::string_view more) {
  skipSpace();
  auto isOf = [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
           (c >= 'A' && c <= 'Z') || more.find(c) != std::string_view::npos;
  };
  size_t count = 0;
  while (count < text.size() && isOf(text[count]))
    ++count;
  std::string_view word = text.substr(0, count);
  text.remove_prefix(count);
  return word;
}

bool PythonReader::readString(std::string &value) {
  char quote = text[0];
  for (size_t i = 1; i < text.size(); ++i) {
    char c = text[i];
    if (c == quote) {
      text.remove_prefix(i + 1);
      return true;
    }
    if (c == '\\' && i + 1 < text.size()) {
      char next = text[++i];
      c = next == 'n' ? '\n' : next == 't' ? '\t' : next;
      // Escapes of code points stay as they are.
      if (next == 'u' || next == 'x' || next == 'U' || next == 'N')
        value += '\\';
    }
    value += c;
  }
  return false;
}

bool PythonReader::readItems(char close, bool isDict, std::string &json,
                             unsigned depth) {
  json += isDict ? '{' : '[';
  for (bool first = true; !take(close); first = false) {
    if (!first && !take(','))
      return false;
    if (take(close)) // behind a last comma
      break;
    json += first ? "" : ",";
    std::string key;
    if (isDict && (!readValue(key, depth) || key[0] != '"' || !take(':')))
      return false;
    json += isDict ? key + ":" : "";
    if (!readValue(json, depth))
      return false;
  }
  json += isDict ? '}' : ']';
  return true;
}

bool PythonReader::readValue(std::string &json, unsigned depth) {
  constexpr unsigned deepest = 32;
  skipSpace();
  if (text.empty() || depth == deepest)
    return false;
  if (text[0] == '"' || text[0] == '\'') {
    std::string value;
    if (!readString(value))
      return false;
    appendJsonString(json, value);
    return true;
  }
  if (take('['))
    return readItems(']', /*isDict=*/false, json, depth + 1);
  if (take('('))
    return readItems(')', /*isDict=*/false, json, depth + 1);
  if (take('{'))
    return readItems('}', /*isDict=*/true, json, depth + 1);
  std::string_view word = readWord("+-._");
  word = word == "True"    ? "true"
         : word == "False" ? "false"
         : word == "None"  ? "null"
                           : word;
  JsonValue value;
  std::string problem;
  json += word;
  return parseJson(word, value, problem);
}

bool PythonReader::readCall(std::vector<ToolCall> &calls) {
  ToolCall call;
  call.name = readWord("._-");
  if (call.name.empty() || !take('('))
    return false;
  call.arguments = "{";
  for (bool first = true; !take(')'); first = false) {
    if (!first && !take(','))
      return false;
    if (take(')')) // behind a last comma
      break;
    std::string_view key = readWord("_");
    if (key.empty() || !take('='))
      return false;
    call.arguments += first ? "" : ",";
    appendJsonString(call.arguments, key);
    call.arguments += ':';
    if (!readValue(call.arguments, 0))
      return false;
  }
  call.arguments += '}';
  calls.push_back(std::move(call));
  return true;
}

bool PythonReader::readCalls(std::vector<ToolCall> &calls) {
  if (!take('['))
    return false;
  do {
    if (!readCall(calls))
      return false;
  } while (take(','));
  bool ends = take(']');
  skipSpace();
  return ends && text.empty();
}

bool readPythonCalls(std::string_view text, std::vector<ToolCall> &calls) {
  return PythonReader(text).readCalls(calls);
}

} // namespace attune::runtime
