//===- Prompts.cpp - Where prompts come from ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Cli.h"
#include "attune/Runtime/Json.h"

#include <cerrno>
#include <cstring>

namespace attune::runtime {

/// A prompt of that size fits no context.
static constexpr size_t mostBytes = size_t(64) << 20;

static bool readAll(const std::string &path, const std::string &name,
                    std::string &text, Error &error) {
  FILE *file = path == "-" ? stdin : std::fopen(path.c_str(), "rb");
  if (!file)
    return error.badInput(name +
                          ": cannot open the file: " + std::strerror(errno));
  char buffer[1 << 14];
  errno = 0;
  while (text.size() <= mostBytes) {
    size_t count = std::fread(buffer, 1, sizeof(buffer), file);
    if (count == 0)
      break;
    text.append(buffer, count);
  }
  bool broken = std::ferror(file) != 0;
  int reason = errno;
  if (file != stdin)
    std::fclose(file);
  if (broken)
    return error.badInput(name + ": cannot read: " + std::strerror(reason));
  if (text.size() > mostBytes)
    return error.set(ExitResourceLimit, name + ": has more than " +
                                            std::to_string(mostBytes) +
                                            " bytes");
  return true;
}

/// Editors and `echo` end a text with a newline that nobody means.
static void dropNewline(std::string &text) {
  if (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (!text.empty() && text.back() == '\r')
    text.pop_back();
}

/// A line of a file of prompts that begins with '"' or '{'.
static bool readJsonLine(const std::string &line, Prompt &prompt,
                         std::string &reason) {
  JsonValue value;
  if (!parseJson(line, value, reason))
    return false;
  const JsonValue *text = value.isString() ? &value : value.find("prompt");
  const JsonValue *ids = value.isString() ? nullptr : value.find("prompt_ids");
  if ((text != nullptr) == (ids != nullptr)) {
    reason = "expected a string or an object with either \"prompt\" or "
             "\"prompt_ids\"";
    return false;
  }
  if (text) {
    prompt.isText = true;
    prompt.text = text->string;
    reason = "\"prompt\" is no string";
    return text->isString();
  }
  reason = "\"prompt_ids\" is not an array of ids";
  if (!ids->isArray())
    return false;
  for (const JsonValue &id : ids->items) {
    if (!id.isInt())
      return false;
    prompt.ids.push_back(id.integer);
  }
  return true;
}

static bool readLines(const std::string &path, const std::string &text,
                      std::vector<Prompt> &prompts, Error &error) {
  size_t number = 0, empty = 0; // lines, and the first empty one
  for (size_t begin = 0; begin < text.size();) {
    size_t end = std::min(text.find('\n', begin), text.size());
    std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    ++number;
    dropNewline(line);
    // What follows would be taken for the text of another line.
    if (line.find_first_not_of(" \t") == std::string::npos) {
      empty = empty ? empty : number;
      continue;
    }
    if (empty)
      return error.badInput(path + ":" + std::to_string(empty) +
                            ": the line is empty; write \"\" for an empty "
                            "text, or leave the line out");
    Prompt prompt;
    std::string reason;
    if (line[0] != '"' && line[0] != '{') {
      prompt.isText = true;
      prompt.text = std::move(line);
    } else if (!readJsonLine(line, prompt, reason)) {
      return error.badInput(path + ":" + std::to_string(number) + ": " +
                            reason);
    }
    prompts.push_back(std::move(prompt));
  }
  return !prompts.empty() || error.badInput(path + ": has no prompt");
}

bool readPrompts(const GenerateOptions &options, std::vector<Prompt> &prompts,
                 Error &error) {
  std::string text;
  if (!options.promptsFile.empty())
    return readAll(options.promptsFile, options.promptsFile, text, error) &&
           readLines(options.promptsFile, text, prompts, error);
  Prompt prompt;
  prompt.ids = options.promptIds;
  prompt.isText = options.hasPrompt || !options.promptFile.empty();
  prompt.text = options.prompt;
  bool standard = options.hasPrompt && options.prompt == "-";
  if (standard || !options.promptFile.empty()) {
    if (!readAll(standard ? "-" : options.promptFile,
                 standard ? "the standard input" : options.promptFile, text,
                 error))
      return false;
    dropNewline(text);
    prompt.text = std::move(text);
  }
  prompts.push_back(std::move(prompt));
  return true;
}

} // namespace attune::runtime
