//===- RequestMessages.cpp - Prompts of conversations ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CompletionRequest.h"

#include "../Chat/PlainTools.h"
#include "../JsonMembers.h"
#include "MessageParts.h"

#include <algorithm>

namespace attune::runtime {

static constexpr size_t mostMessages = 4096, mostVariables = 256;

/// Moves a schema to `place` of another one: what it refers to, as
/// #/$defs/NAME, moves with it. Data in it (const, enum, examples) stays as it
/// is.
static void moveReferences(JsonValue &schema, const std::string &place) {
  for (size_t i = 0; schema.isObject() && i < schema.keys.size(); ++i) {
    std::string_view key = schema.keys[i];
    JsonValue &value = schema.items[i];
    if (key == "$ref" && value.isString() && value.string.substr(0, 1) == "#")
      value.string.insert(1, place);
    else if (key == "properties" || key == "$defs" || key == "definitions" ||
             key == "prefixItems" || key == "anyOf" || key == "oneOf" ||
             key == "allOf")
      for (JsonValue &part : value.items)
        moveReferences(part, place);
    else if (key == "items" || key == "additionalProperties")
      moveReferences(value, place);
  }
}

/// The name in {"type": "function", "function": {"name": ...}}, or null if a
/// tool is no function with a name. `type` may be absent.
static const std::string *functionOf(const JsonValue &tool) {
  if (!tool.isObject())
    return nullptr;
  const JsonValue *type = tool.find("type"), *function = tool.find("function");
  if (type && !type->isNull() && type->string != "function")
    return nullptr;
  return function && function->isObject() ? textOf(*function, "name") : nullptr;
}

/// `tools` are functions: calls of others, such as "custom", would have a form
/// that no answer is read for.
static bool checkTools(const JsonValue &tools, RequestError &error) {
  for (size_t i = 0; i < tools.items.size(); ++i) {
    const std::string *name = functionOf(tools.items[i]);
    if (name && !name->empty())
      continue;
    const std::string *type =
        tools.items[i].isObject() ? textOf(tools.items[i], "type") : nullptr;
    return error.set("'tools[" + std::to_string(i) +
                         "]': expected {\"type\": \"function\", \"function\": "
                         "{\"name\": ...}}" +
                         (type && *type != "function"
                              ? ", found the type '" + *type + "'"
                              : ""),
                     "tools");
  }
  return true;
}

/// The texts that are a call of one of the tools, `only` this one if it is not
/// empty, as a schema. False: none is called `only`.
static bool describeCalls(const JsonValue &tools, const std::string &only,
                          std::string &schema) {
  size_t count = 0;
  schema = "{\"anyOf\":[";
  for (const JsonValue &tool : tools.items) {
    const JsonValue *function = tool.find("function");
    const std::string &name = *functionOf(tool);
    if (!only.empty() && name != only)
      continue;
    schema += std::string(count ? "," : "") +
              "{\"type\":\"object\",\"properties\":{\"name\":{\"const\":";
    appendJsonString(schema, name);
    schema += "},\"arguments\":";
    const JsonValue *parameters = function->find("parameters");
    if (parameters && !parameters->isNull()) {
      JsonValue moved = *parameters;
      moveReferences(moved, "/anyOf/" + std::to_string(count) +
                                "/properties/arguments");
      appendJson(schema, moved);
    } else {
      schema += "{\"type\":\"object\"}";
    }
    schema += "},\"required\":[\"name\",\"arguments\"],"
              "\"additionalProperties\":false}";
    ++count;
  }
  schema += "]}";
  return count > 0;
}

/// {"type": "allowed_tools", "allowed_tools": {"mode": ..., "tools": ...}}:
/// leaves those of `tools` that are named, and `mode` says whether one must be
/// called.
static bool takeAllowed(const JsonValue &choice, JsonValue &tools,
                        std::string_view &mode, RequestError &error) {
  const JsonValue *allowed = choice.find("allowed_tools");
  const std::string *word =
      allowed && allowed->isObject() ? textOf(*allowed, "mode") : nullptr;
  const JsonValue *list = word ? allowed->find("tools") : nullptr;
  if (!list || !list->isArray() || list->items.empty() ||
      (*word != "auto" && *word != "required"))
    return error.set("'tool_choice': expected {\"type\": \"allowed_tools\", "
                     "\"allowed_tools\": {\"mode\": \"auto\" or \"required\", "
                     "\"tools\": [...]}}",
                     "tool_choice");
  mode = *word;
  std::vector<std::string> names, there;
  for (const JsonValue &tool : list->items) {
    const std::string *name = functionOf(tool);
    if (!name)
      return error.set("'tool_choice': an allowed tool is {\"type\": "
                       "\"function\", \"function\": {\"name\": ...}}",
                       "tool_choice");
    names.push_back(*name);
  }
  std::sort(names.begin(), names.end());
  std::vector<JsonValue> kept;
  for (JsonValue &tool : tools.items) {
    const std::string &name = *functionOf(tool);
    if (!std::binary_search(names.begin(), names.end(), name))
      continue;
    there.push_back(name);
    kept.push_back(std::move(tool));
  }
  tools.items = std::move(kept);
  std::sort(there.begin(), there.end());
  for (const std::string &name : names)
    if (!std::binary_search(there.begin(), there.end(), name))
      return error.set("'tool_choice': 'tools' has no function '" + name + "'",
                       "tool_choice");
  return true;
}

/// `tool_choice`: whether tools may be called is in `tools`, which becomes null
/// if not; if one must be, the text has no other form.
bool CompletionRequest::readToolChoice(RequestFields &fields,
                                       const ServedModel &model,
                                       const JsonValue *&tools,
                                       RequestError &error) {
  const JsonValue *choice = fields.find("tool_choice");
  if (!choice)
    return true;
  std::string_view word;
  if (choice->isString())
    word = choice->string;
  if (word == "auto")
    return true;
  if (word == "none") {
    tools = nullptr;
    return true;
  }
  const std::string *type =
      choice->isObject() ? textOf(*choice, "type") : nullptr;
  const std::string *name = nullptr;
  if (type && *type == "allowed_tools") {
    JsonValue allowed;
    if (tools)
      allowed = *tools;
    if (!takeAllowed(*choice, allowed, word, error))
      return false;
    this->tools.reset(new JsonValue(std::move(allowed)));
    tools = this->tools.get();
    if (word == "auto")
      return true;
  } else {
    name = functionOf(*choice);
  }
  if (word != "required" && !name)
    return fields.expected("tool_choice",
                           "\"none\", \"auto\", \"required\", {\"type\": "
                           "\"function\", \"function\": {\"name\": ...}} or "
                           "{\"type\": \"allowed_tools\", ...}",
                           *choice);
  TextForm form;
  form.kind = TextForm::Kind::JsonSchema;
  if (!tools || !describeCalls(*tools, name ? *name : "", form.source))
    return error.set(name ? "'tool_choice': 'tools' has no function '" + *name +
                                "'"
                          : "'tool_choice': 'tools' has no function",
                     "tool_choice");
  if (options.automaton)
    return error.set("'tool_choice': a call of a tool has a form of its own, "
                     "which 'response_format' cannot change",
                     "tool_choice");
  Error problem;
  options.automaton = model.constraints->make(form, problem);
  return options.automaton || error.set("'tools': " + problem.message, "tools");
}

/// Variables of the chat template. Templates call what `reasoning_effort` says
/// by one of three names; they pass over others.
static bool readVariables(RequestFields &fields, JsonValue &variables,
                          RequestError &error) {
  variables.kind = JsonValue::Kind::Object;
  auto set = [&](const char *name, JsonValue value) {
    variables.keys.push_back(name);
    variables.items.push_back(std::move(value));
  };
  std::string effort;
  if (!fields.take("reasoning_effort", effort))
    return false;
  if (!effort.empty()) {
    JsonValue thinks, level;
    thinks.kind = JsonValue::Kind::Bool;
    thinks.boolean = effort != "none";
    level.kind = JsonValue::Kind::String;
    level.string = effort;
    set("enable_thinking", thinks); // Qwen 3, GLM 4.5, SmolLM 3
    set("thinking", thinks);        // DeepSeek V3.1, Granite 3
    set("reasoning_effort", level); // gpt-oss
  }
  const JsonValue *documents = fields.find("documents");
  if (documents && !documents->isArray())
    return fields.expected("documents", "an array of documents", *documents);
  if (documents)
    set("documents", *documents);
  const JsonValue *given = fields.find("chat_template_kwargs");
  if (given && !given->isObject())
    return fields.expected("chat_template_kwargs", "an object", *given);
  if (given && given->items.size() > mostVariables)
    return error.set("'chat_template_kwargs': expected at most " +
                         std::to_string(mostVariables) + " members, found " +
                         std::to_string(given->items.size()),
                     "chat_template_kwargs");
  for (size_t i = 0; given && i < given->items.size(); ++i)
    set(given->keys[i].c_str(), given->items[i]);
  return true;
}

bool CompletionRequest::readMessages(RequestFields &fields,
                                     const ServedModel &model,
                                     RequestError &error) {
  if (!model.chat)
    return error.set(model.noChat, "messages");
  const JsonValue *list = fields.find("messages");
  if (!list)
    return error.set("'messages' is missing: what was said so far", "messages",
                     "missing_required_parameter");
  if (!list->isArray())
    return fields.expected("messages", "an array of messages", *list);
  if (list->items.empty())
    return error.set("'messages': expected at least one message", "messages");
  if (list->items.size() > mostMessages)
    return error.set("'messages': expected at most " +
                         std::to_string(mostMessages) + " messages",
                     "messages");
  JsonValue messages = *list;
  MessageReader reader(*model.info, model.capacity, model.mostPixels,
                       model.chat->takesParts(), error);
  for (JsonValue &message : messages.items)
    if (!reader.read(message))
      return false;
  const JsonValue *tools = fields.find("tools");
  if (tools && !tools->isArray())
    return fields.expected("tools", "an array of tools", *tools);
  if (tools && tools->items.empty())
    tools = nullptr;
  if ((tools && !checkTools(*tools, error)) ||
      !readToolChoice(fields, model, tools, error))
    return false;
  if (tools && tools != this->tools.get())
    this->tools.reset(new JsonValue(*tools));
  bool callsMany = true;
  ChatPrompt::Request request;
  JsonValue variables;
  if (!fields.take("parallel_tool_calls", callsMany) ||
      !fields.take("continue_final_message", request.continuesLast) ||
      !readVariables(fields, variables, error))
    return false;
  callsOnce = !callsMany;
  request.opensAnswer = !request.continuesLast;
  if (!fields.take("add_generation_prompt", request.opensAnswer))
    return false;
  if (request.continuesLast && request.opensAnswer)
    return error.set("'continue_final_message' goes on with the last message: "
                     "'add_generation_prompt' cannot open another one",
                     "continue_final_message");
  request.variables = &variables;
  CompletionPrompt prompt;
  std::string text;
  Error problem;
  if (!layOutMessages(*list, std::move(messages), tools, request, model, text,
                      error) ||
      !cutText(text, /*addSpecial=*/false, model, prompt.ids, "messages",
               error))
    return false;
  if (!placePictures(*model.info, model.tokenizer, reader.pictures, prompt.ids,
                     problem))
    return error.set(problem.message, "messages");
  startsInReasoning =
      model.answers.opensReasoning(*model.tokenizer, prompt.ids);
  if (startsInReasoning)
    options.formBehind = model.answers.closing;
  prompt.pictures = std::move(reader.pictures);
  prompts.push_back(std::move(prompt));
  return true;
}

/// Makes a text of messages that were read, `given` so. Templates differ in how
/// arguments of calls come, and some know no tools at all.
bool CompletionRequest::layOutMessages(const JsonValue &given,
                                       JsonValue messages,
                                       const JsonValue *tools,
                                       ChatPrompt::Request request,
                                       const ServedModel &model,
                                       std::string &text, RequestError &error) {
  const ChatPrompt &chat = *model.chat;
  Error problem, ignored;
  tellsOfTools = tools && !chat.takesTools();
  if (tellsOfTools) {
    tellOfTools(messages, describeTools(*tools), chat.takesSystem());
    return chat.render(messages, request, text, problem) ||
           error.set(problem.message, "messages");
  }
  // Such a template may as well leave calls out.
  if (!chat.takesTools() && !chat.contains("tool_calls") && hasCalls(messages))
    tellOfTools(messages, "", chat.takesSystem());
  request.tools = tools;
  if (chat.render(messages, request, text, problem))
    return true;
  // Some put arguments behind texts, as the texts that they were (DeepSeek's).
  JsonValue other = messages;
  if (restoreArguments(other, given) &&
      chat.render(other, request, text, ignored))
    return true;
  if (hasCalls(messages)) {
    tellOfTools(messages, "", chat.takesSystem());
    if (chat.render(messages, request, text, ignored))
      return true;
  }
  return error.set(problem.message, "messages");
}

} // namespace attune::runtime
