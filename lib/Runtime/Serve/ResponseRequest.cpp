//===- ResponseRequest.cpp - What /v1/responses is asked ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResponseRequest.h"

#include "../JsonMembers.h"

#include <algorithm>
#include <iterator>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

namespace {
/// Makes messages of items.
class ItemReader {
public:
  ItemReader(RequestError &error) : error(error) {
    messages.kind = JsonValue::Kind::Array;
  }

  bool read(const JsonValue &item);
  void addMessage(const std::string &role, JsonValue content);
  JsonValue messages;

private:
  bool fail(const std::string &what) {
    return error.set("'input': " + what, "input");
  }
  bool readContent(const JsonValue &from, JsonValue &content);
  bool readMessage(const JsonValue &item);
  bool readCall(const JsonValue &item);
  bool readResult(const JsonValue &item);
  bool readReasoning(const JsonValue &item);
  JsonValue &openAnswer();

  RequestError &error;
  std::string reasoning; ///< of the next answer
  bool answers = false;  ///< the last message is an answer that may go on
  bool hasText = false;  ///< and has its text
};
} // namespace

void ItemReader::addMessage(const std::string &role, JsonValue content) {
  // Templates take one message of a system.
  JsonValue *last = messages.items.empty() ? nullptr : &messages.items.back();
  JsonValue *before = last ? memberOf(*last, "content") : nullptr;
  if (role == "system" && before && textOf(*last, "role") &&
      *textOf(*last, "role") == role && before->isString() &&
      content.isString()) {
    before->string += "\n\n" + content.string;
    return;
  }
  messages.items.emplace_back();
  setMember(messages.items.back(), "role", makeText(role));
  setMember(messages.items.back(), "content", std::move(content));
  answers = false;
}

/// The answer that items of a model belong to.
JsonValue &ItemReader::openAnswer() {
  if (!answers)
    addMessage("assistant", JsonValue());
  hasText = answers && hasText;
  answers = true;
  JsonValue &answer = messages.items.back();
  if (!reasoning.empty())
    setMember(answer, "reasoning_content", makeText(std::move(reasoning)));
  reasoning.clear();
  return answer;
}

bool ItemReader::readContent(const JsonValue &from, JsonValue &content) {
  content = from;
  if (from.isString())
    return true;
  if (!from.isArray())
    return fail("expected a text or an array of parts as content, found " +
                std::string(from.kindName()));
  bool isText = true;
  std::string text;
  for (JsonValue &part : content.items) {
    const std::string *type = textOf(part, "type"), *words = nullptr;
    JsonValue plain;
    if (type &&
        (*type == "input_text" || *type == "output_text" || *type == "text"))
      words = textOf(part, "text");
    else if (type && *type == "refusal")
      words = textOf(part, "refusal");
    if (words) {
      text += *words;
      setMember(plain, "type", makeText("text"));
      setMember(plain, "text", makeText(*words));
    } else if (const std::string *url = textOf(part, "image_url");
               type && *type == "input_image" && url) {
      isText = false;
      JsonValue inner;
      setMember(inner, "url", makeText(*url));
      setMember(plain, "type", makeText("image_url"));
      setMember(plain, "image_url", std::move(inner));
    } else {
      return fail("expected parts {\"type\": \"input_text\", \"text\": ...} "
                  "and {\"type\": \"input_image\", \"image_url\": ...}, found "
                  "one of type '" +
                  (type ? *type : std::string()) + "'");
    }
    part = std::move(plain);
  }
  if (isText && content.items.size() == 1)
    content = makeText(std::move(text));
  return true;
}

bool ItemReader::readMessage(const JsonValue &item) {
  const std::string *role = textOf(item, "role");
  const JsonValue *given = item.find("content");
  JsonValue content;
  if (!role || !given)
    return fail("expected messages {\"role\": ..., \"content\": ...}");
  if (!readContent(*given, content))
    return false;
  if (*role != "assistant") {
    reasoning.clear(); // no answer came
    addMessage(*role == "developer" ? "system" : *role, std::move(content));
    return true;
  }
  if (hasText)
    answers = false; // two answers
  setMember(openAnswer(), "content", std::move(content));
  hasText = true;
  return true;
}

bool ItemReader::readCall(const JsonValue &item) {
  const std::string *name = textOf(item, "name"), *id = textOf(item, "call_id"),
                    *arguments = textOf(item, "arguments");
  if (!name || !id || !arguments)
    return fail("expected a function_call with 'call_id', 'name' and "
                "'arguments'");
  JsonValue &answer = openAnswer();
  JsonValue function, call, list;
  setMember(function, "name", makeText(*name));
  setMember(function, "arguments", makeText(*arguments));
  setMember(call, "id", makeText(*id));
  setMember(call, "type", makeText("function"));
  setMember(call, "function", std::move(function));
  if (!memberOf(answer, "tool_calls")) {
    list.kind = JsonValue::Kind::Array;
    setMember(answer, "tool_calls", std::move(list));
  }
  memberOf(answer, "tool_calls")->items.push_back(std::move(call));
  return true;
}

bool ItemReader::readResult(const JsonValue &item) {
  const std::string *id = textOf(item, "call_id");
  const JsonValue *output = item.find("output");
  JsonValue content;
  if (!id || !output)
    return fail("expected a function_call_output with 'call_id' and 'output'");
  if (!readContent(*output, content))
    return false;
  reasoning.clear();
  addMessage("tool", std::move(content));
  setMember(messages.items.back(), "tool_call_id", makeText(*id));
  return true;
}

/// What a model wrote to think comes back as a summary, or as it was. The
/// answer behind it may be missing.
bool ItemReader::readReasoning(const JsonValue &item) {
  std::string text;
  for (const char *name : {"content", "summary"}) {
    const JsonValue *parts = text.empty() ? item.find(name) : nullptr;
    for (size_t i = 0; parts && i < parts->items.size(); ++i)
      if (const std::string *part = textOf(parts->items[i], "text"))
        text += (text.empty() ? "" : "\n") + *part;
  }
  answers = answers && !hasText;
  reasoning += (reasoning.empty() || text.empty() ? "" : "\n") + text;
  return true;
}

bool ItemReader::read(const JsonValue &item) {
  if (!item.isObject())
    return fail("expected a text or an array of items");
  const std::string *type = textOf(item, "type");
  if (!type || *type == "message")
    return readMessage(item);
  if (*type == "function_call")
    return readCall(item);
  if (*type == "function_call_output")
    return readResult(item);
  if (*type == "reasoning")
    return readReasoning(item);
  return fail("expected items message, function_call, function_call_output or "
              "reasoning, found '" +
              *type +
              (*type == "item_reference"
                   ? "': this server keeps no items from earlier requests"
                   : "'"));
}

//===----------------------------------------------------------------------===//
// Members
//===----------------------------------------------------------------------===//

namespace {
/// Names of members here and in chats.
struct Name {
  const char *here, *inChats;
};
} // namespace

static constexpr Name names[] = {{"input", "messages"},
                                 {"max_output_tokens", "max_completion_tokens"},
                                 {"text", "response_format"},
                                 {"reasoning", "reasoning_effort"}};

void nameMembersOfResponse(RequestError &error) {
  for (const Name &name : names) {
    std::string quoted = "'" + std::string(name.inChats) + "'";
    if (error.parameter != name.inChats)
      continue;
    error.parameter = name.here;
    if (size_t at = error.message.find(quoted); at != std::string::npos)
      error.message.replace(at, quoted.size(),
                            "'" + std::string(name.here) + "'");
  }
}

/// {"type": "function", "name": ...} becomes {"type": "function", "function":
/// {"name": ...}}.
static bool makeFunction(const JsonValue &tool, const char *member,
                         JsonValue &made, RequestError &error) {
  const std::string *type = textOf(tool, "type");
  if (!type || *type != "function" || !textOf(tool, "name"))
    return error.set("'" + std::string(member) +
                         "': expected {\"type\": \"function\", \"name\": ...}" +
                         (type && *type != "function"
                              ? ", found the type '" + *type +
                                    "': this server has no tools of its own"
                              : ""),
                     member);
  JsonValue function;
  for (size_t i = 0; i < tool.keys.size(); ++i)
    if (tool.keys[i] != "type" && !tool.items[i].isNull())
      addMember(function, tool.keys[i], tool.items[i]);
  setMember(made, "type", makeText("function"));
  setMember(made, "function", std::move(function));
  return true;
}

/// The same of {"type": "allowed_tools", "mode": ..., "tools": ...}, whose
/// members are in "allowed_tools" then.
static bool makeAllowed(const JsonValue &choice, JsonValue &made,
                        RequestError &error) {
  JsonValue allowed, list;
  list.kind = JsonValue::Kind::Array;
  const JsonValue *tools = choice.find("tools");
  for (size_t i = 0; tools && tools->isArray() && i < tools->items.size();
       ++i) {
    list.items.emplace_back();
    if (!makeFunction(tools->items[i], "tool_choice", list.items.back(), error))
      return false;
  }
  if (const std::string *mode = textOf(choice, "mode"))
    setMember(allowed, "mode", makeText(*mode));
  setMember(allowed, "tools", std::move(list));
  made = JsonValue();
  setMember(made, "type", makeText("allowed_tools"));
  setMember(made, "allowed_tools", std::move(allowed));
  return true;
}

/// `text`: {"format": {"type": "json_schema", "name": ..., "schema": ...}}.
static bool makeFormat(const JsonValue &text, JsonValue &chat,
                       RequestError &error) {
  const JsonValue *format = text.isObject() ? text.find("format") : nullptr;
  if (!text.isObject() || (format && !format->isObject() && !format->isNull()))
    return error.set("'text': expected {\"format\": {\"type\": ...}}", "text");
  if (!format || format->isNull())
    return true;
  JsonValue made = *format;
  const std::string *type = textOf(*format, "type");
  if (type && *type == "json_schema") {
    JsonValue inner;
    if (const JsonValue *schema = format->find("schema"))
      setMember(inner, "schema", *schema);
    setMember(made, "json_schema", std::move(inner));
  }
  setMember(chat, "response_format", std::move(made));
  return true;
}

static bool refuseState(RequestFields &fields, RequestError &error) {
  for (const char *name : {"previous_response_id", "conversation", "prompt"})
    if (fields.has(name))
      return error.set("'" + std::string(name) +
                           "': this server keeps nothing from one request to "
                           "the next; send the whole conversation as 'input'",
                       name, "unsupported_parameter");
  bool isBackground = false;
  if (!fields.take("background", isBackground))
    return false;
  return !isBackground ||
         error.set("'background': this server answers a request at once or "
                   "not at all",
                   "background", "unsupported_parameter");
}

static bool readItems(RequestFields &fields, JsonValue &chat,
                      RequestError &error) {
  ItemReader reader(error);
  std::string instructions;
  if (!fields.take("instructions", instructions))
    return false;
  if (!instructions.empty())
    reader.addMessage("system", makeText(instructions));
  const JsonValue *input = fields.find("input");
  if (!input)
    return error.set("'input' is missing: a text, or what was said so far",
                     "input", "missing_required_parameter");
  if (input->isString())
    reader.addMessage("user", *input);
  else if (!input->isArray())
    return fields.expected("input", "a text or an array of items", *input);
  else
    for (const JsonValue &item : input->items)
      if (!reader.read(item))
        return false;
  setMember(chat, "messages", std::move(reader.messages));
  return true;
}

static bool readTools(RequestFields &fields, JsonValue &chat,
                      RequestError &error) {
  if (const JsonValue *tools = fields.find("tools")) {
    if (!tools->isArray())
      return fields.expected("tools", "an array of tools", *tools);
    JsonValue list;
    list.kind = JsonValue::Kind::Array;
    for (const JsonValue &tool : tools->items) {
      list.items.emplace_back();
      if (!makeFunction(tool, "tools", list.items.back(), error))
        return false;
    }
    setMember(chat, "tools", std::move(list));
  }
  if (const JsonValue *choice = fields.find("tool_choice")) {
    JsonValue made = *choice;
    const std::string *type =
        choice->isObject() ? textOf(*choice, "type") : nullptr;
    if (type && *type == "allowed_tools") {
      if (!makeAllowed(*choice, made, error))
        return false;
    } else if (choice->isObject()) {
      made = JsonValue();
      if (!makeFunction(*choice, "tool_choice", made, error))
        return false;
    }
    setMember(chat, "tool_choice", std::move(made));
  }
  return true;
}

/// `include` asks for more in the reply. What is not there is left out.
static bool readInclude(RequestFields &fields, JsonValue &chat) {
  std::vector<std::string> include;
  if (!fields.take("include", 64, include))
    return false;
  bool wants = fields.has("top_logprobs") ||
               std::find(include.begin(), include.end(),
                         "message.output_text.logprobs") != include.end();
  if (wants) {
    JsonValue yes;
    yes.kind = JsonValue::Kind::Bool;
    yes.boolean = true;
    setMember(chat, "logprobs", std::move(yes));
  }
  return true;
}

bool makeChatBody(const JsonValue &body, JsonValue &chat, RequestError &error) {
  if (!body.isObject())
    return error.set("the body is not a JSON object");
  chat = JsonValue();
  chat.kind = JsonValue::Kind::Object;
  RequestFields fields(body, error);
  if (!refuseState(fields, error) || !readItems(fields, chat, error) ||
      !readTools(fields, chat, error) || !readInclude(fields, chat))
    return false;
  const JsonValue *text = fields.find("text");
  if (text && !makeFormat(*text, chat, error))
    return false;
  if (const JsonValue *reasoning = fields.find("reasoning")) {
    if (!reasoning->isObject())
      return fields.expected("reasoning", "an object", *reasoning);
    const JsonValue *effort = reasoning->find("effort");
    if (effort && !effort->isNull())
      setMember(chat, "reasoning_effort", *effort);
  }
  std::string truncation = "disabled";
  if (!fields.take("truncation", truncation))
    return false;
  if (truncation != "disabled")
    return error.set("'truncation': this server cuts nothing off an input: "
                     "expected \"disabled\"",
                     "truncation", "unsupported_parameter");
  if (const JsonValue *most = fields.find("max_output_tokens"))
    setMember(chat, "max_completion_tokens", *most);
  // `include_usage` and the like are of chats: here a stream has all.
  static constexpr std::string_view done[] = {
      "input",         "instructions",
      "tools",         "tool_choice",
      "include",       "text",
      "reasoning",     "max_output_tokens",
      "background",    "previous_response_id",
      "conversation",  "prompt",
      "truncation",    "max_tool_calls",
      "stream_options"};
  static constexpr std::string_view ofChats[] = {
      "messages",   "max_completion_tokens",
      "max_tokens", "response_format",
      "n",          "best_of",
      "logprobs",   "reasoning_effort",
      "stop",       "prompt_logprobs"};
  for (size_t i = 0; i < body.keys.size(); ++i) {
    const std::string &name = body.keys[i];
    if (std::find(std::begin(done), std::end(done), name) != std::end(done) ||
        body.items[i].isNull())
      continue;
    if (std::find(std::begin(ofChats), std::end(ofChats), name) !=
        std::end(ofChats))
      return error.set(
          "'" + name + "' is a member of chats, which responses do not have",
          name, "unsupported_parameter");
    // All that was set before is done or of chats.
    addMember(chat, name, body.items[i]);
  }
  return true;
}

} // namespace attune::runtime
