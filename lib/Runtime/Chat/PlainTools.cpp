//===- PlainTools.cpp - Tools for templates that know none ----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PlainTools.h"

#include "../JsonMembers.h"

#include <algorithm>

namespace attune::runtime {

std::string describeTools(const JsonValue &tools) {
  std::string out =
      "You may call functions. A line each says what a function is called, "
      "what it does and, as a JSON schema, which arguments it takes:\n";
  for (const JsonValue &tool : tools.items) {
    const JsonValue *function =
        tool.isObject() ? tool.find("function") : nullptr;
    appendJson(out, function ? *function : tool);
    out += '\n';
  }
  return out +
         "To call one, write nothing but this, once for each call, with the "
         "function's name and its arguments:\n"
         "<tool_call>{\"name\": \"NAME\", \"arguments\": {\"KEY\": VALUE}}"
         "</tool_call>\n"
         "What comes out is told to you between <tool_response> and "
         "</tool_response>. Where no function is of help, answer as you would "
         "without them.";
}

static void removeMember(JsonValue &object, std::string_view key) {
  for (size_t i = 0; i < object.keys.size(); ++i)
    if (object.keys[i] == key) {
      object.keys.erase(object.keys.begin() + static_cast<ptrdiff_t>(i));
      object.items.erase(object.items.begin() + static_cast<ptrdiff_t>(i));
      return;
    }
}

static JsonValue makeObject(const char *first, std::string text,
                            const char *second, JsonValue value) {
  JsonValue object;
  object.kind = JsonValue::Kind::Object;
  object.keys = {first, second};
  object.items.push_back(makeText(std::move(text)));
  object.items.push_back(std::move(value));
  return object;
}

static bool hasRole(const JsonValue &message, std::string_view role) {
  const JsonValue *own = message.find("role");
  return own && own->isString() && own->string == role;
}

/// A content as parts: of type "text" and others.
static void makeParts(JsonValue &content) {
  if (content.isArray())
    return;
  JsonValue part = makeObject("type", "text", "text", std::move(content));
  content = JsonValue();
  content.kind = JsonValue::Kind::Array;
  content.items.push_back(std::move(part));
}

/// Puts a content behind another one, with `between` between texts.
static void append(JsonValue &content, JsonValue more, const char *between) {
  if (content.isString() && more.isString()) {
    content.string += (content.string.empty() ? "" : between) + more.string;
    return;
  }
  makeParts(content);
  makeParts(more);
  content.items.push_back(
      makeObject("type", "text", "text", makeText(between)));
  for (JsonValue &part : more.items)
    content.items.push_back(std::move(part));
}

/// The content of a message, which it gets if it has none.
static JsonValue &contentOf(JsonValue &message) {
  if (JsonValue *content = memberOf(message, "content")) {
    if (content->isNull())
      *content = makeText("");
    return *content;
  }
  message.keys.push_back("content");
  message.items.push_back(makeText(""));
  return message.items.back();
}

bool hasCalls(const JsonValue &messages) {
  return std::any_of(messages.items.begin(), messages.items.end(),
                     [](const JsonValue &message) {
                       return message.find("tool_calls") ||
                              hasRole(message, "tool");
                     });
}

/// Puts the calls of an answer behind its text.
static void writeCalls(JsonValue &message) {
  JsonValue *calls = memberOf(message, "tool_calls");
  if (!calls)
    return;
  std::string text;
  for (JsonValue &call : calls->items) {
    JsonValue *function = memberOf(call, "function");
    JsonValue *name = function ? memberOf(*function, "name") : nullptr;
    JsonValue *arguments =
        function ? memberOf(*function, "arguments") : nullptr;
    if (!name || !name->isString())
      continue;
    text +=
        text.empty() ? "<tool_call>{\"name\": " : "\n<tool_call>{\"name\": ";
    appendJsonString(text, name->string);
    text += ", \"arguments\": ";
    if (arguments)
      appendJson(text, *arguments);
    else
      text += "{}";
    text += "}</tool_call>";
  }
  removeMember(message, "tool_calls");
  if (!text.empty())
    append(contentOf(message), makeText(std::move(text)), "\n");
}

static void describe(JsonValue &messages, const std::string &description,
                     bool takesSystem) {
  if (takesSystem && !messages.items.empty() &&
      hasRole(messages.items[0], "system")) {
    append(contentOf(messages.items[0]), makeText(description), "\n\n");
    return;
  }
  auto first = std::find_if(
      messages.items.begin(), messages.items.end(),
      [](const JsonValue &message) { return hasRole(message, "user"); });
  if (takesSystem || first == messages.items.end()) {
    messages.items.insert(messages.items.begin(),
                          makeObject("role", takesSystem ? "system" : "user",
                                     "content", makeText(description)));
    return;
  }
  JsonValue told = makeText(description);
  append(told, std::move(contentOf(*first)), "\n\n");
  contentOf(*first) = std::move(told);
}

void tellOfTools(JsonValue &messages, const std::string &description,
                 bool takesSystem) {
  std::vector<JsonValue> out;
  bool isResult = false; // the last one has a result
  for (JsonValue &message : messages.items) {
    writeCalls(message);
    bool wasResult = isResult;
    isResult = hasRole(message, "tool");
    if (isResult) {
      JsonValue told = makeText("<tool_response>\n");
      append(told, std::move(contentOf(message)), "");
      append(told, makeText("\n</tool_response>"), "");
      message = makeObject("role", "user", "content", std::move(told));
    }
    bool joins = !out.empty() && hasRole(out.back(), "user") &&
                 hasRole(message, "user") && (isResult || wasResult);
    if (joins)
      append(contentOf(out.back()), std::move(contentOf(message)), "\n");
    else
      out.push_back(std::move(message));
  }
  messages.items = std::move(out);
  if (!description.empty())
    describe(messages, description, takesSystem);
}

} // namespace attune::runtime
