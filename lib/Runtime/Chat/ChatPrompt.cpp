//===- ChatPrompt.cpp - From messages to ids ------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/Chat.h"

#include "../JsonMembers.h"

#include "attune/Runtime/Picture.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace attune::runtime {

const OptionSpecs &TemplateOptions::specs() {
  static const OptionSpecs specs = {
      {"system", "TEXT", "what the model is told before the conversation"},
      {"chat-template", "FILE|NAME",
       "a chat template (Jinja) instead of the model's own, or the name of one "
       "of these, such as rag"},
      {"template-variable", "NAME=JSON",
       "a variable of the chat template, such as enable_thinking=false; may be "
       "repeated"},
  };
  return specs;
}

bool TemplateOptions::set(const ParsedOption &option, bool &mine,
                          Error &error) {
  mine = true;
  if (option.name == "system") {
    hasSystem = true;
    system = option.value;
  } else if (option.name == "chat-template") {
    file = option.value;
  } else if (option.name == "template-variable") {
    size_t equals = option.value.find('=');
    JsonValue value;
    std::string problem;
    if (equals == std::string::npos || equals == 0)
      return error.set(ExitBadCommandLine,
                       "--template-variable: expected NAME=JSON, found '" +
                           option.value + "'");
    std::string name = option.value.substr(0, equals);
    if (!parseJson(option.value.substr(equals + 1), value, problem))
      return error.set(
          ExitBadCommandLine,
          "--template-variable: the value of '" + name +
              "' is not JSON (a text stands in quotes): " + problem);
    variables.emplace_back(std::move(name), std::move(value));
  } else {
    mine = false;
  }
  return true;
}

/// Reads a file that is no larger than a template may be.
static bool readFile(const std::string &path, std::string &text, Error &error) {
  FILE *file = std::fopen(path.c_str(), "rb");
  if (!file)
    return error.badInput(path + ": " + std::strerror(errno));
  text.resize((size_t(1) << 20) + 1);
  text.resize(std::fread(&text[0], 1, text.size(), file));
  bool broken = std::ferror(file) != 0;
  std::fclose(file);
  return !broken || error.badInput(path + ": cannot be read");
}

std::unique_ptr<ChatTemplate> ChatPrompt::parse(const std::string &source,
                                                Error &error) const {
  TemplateProblem problem;
  std::unique_ptr<ChatTemplate> made = ChatTemplate::parse(source, problem);
  if (!made)
    error.badInput(place + ":" + ChatTemplate::describe(source, problem));
  return made;
}

/// The text of the template: the named one, that of a file, or the model's.
static bool findTemplate(const ModelInfo &info, const std::string &wanted,
                         std::string &source, std::string &place,
                         Error &error) {
  std::string names;
  for (const std::string &name : info.namedTemplates.keys)
    names += (names.empty() ? "" : ", ") + name;
  place = "the model's chat template";
  if (const JsonValue *named = info.namedTemplates.find(wanted)) {
    place += " '" + wanted + "'";
    source = named->string;
    return true;
  }
  if (!wanted.empty()) {
    place = wanted;
    if (readFile(wanted, source, error))
      return true;
    if (!names.empty())
      error.message += "; the model's own templates are called " + names;
    return false;
  }
  source = info.chatTemplate;
  if (!source.empty())
    return true;
  if (!names.empty())
    return error.badInput("model '" + info.name +
                          "' has no default chat template; --chat-template "
                          "takes one of: " +
                          names);
  return error.badInput("model '" + info.name +
                        "' has no chat template: it continues texts "
                        "('generate') but was not taught to talk. "
                        "--chat-template=FILE names a Jinja template that lays "
                        "out the messages");
}

std::unique_ptr<ChatPrompt> ChatPrompt::create(const ModelInfo &info,
                                               const TemplateOptions &options,
                                               Error &error) {
  std::unique_ptr<ChatPrompt> prompt(new ChatPrompt());
  std::string source;
  if (!findTemplate(info, options.file, source, prompt->place, error))
    return nullptr;
  prompt->chat = prompt->parse(source, error);
  if (!prompt->chat)
    return nullptr;
  const JsonValue *toolUse = info.namedTemplates.find("tool_use");
  if (toolUse && options.file.empty()) {
    prompt->toolUse = prompt->parse(toolUse->string, error);
    if (!prompt->toolUse)
      return nullptr;
  }
  // As transformers calls a template: without tools and documents.
  setMember(prompt->variables, "tools", JsonValue());
  setMember(prompt->variables, "documents", JsonValue());
  for (size_t i = 0; i < info.chatTokens.items.size(); ++i)
    setMember(prompt->variables, info.chatTokens.keys[i],
              info.chatTokens.items[i]);
  for (const auto &[name, value] : options.variables)
    setMember(prompt->variables, name, value);
  prompt->images = info.images;
  prompt->readsParts = prompt->rendersTexts(/*asParts=*/true);
  prompt->wantsParts =
      prompt->readsParts && !prompt->rendersTexts(/*asParts=*/false);
  return prompt;
}

static JsonValue makePart(const char *type) {
  JsonValue part;
  setMember(part, "type", makeText(type));
  return part;
}

/// A content as templates for pictures read it.
static JsonValue makeParts(size_t pictures, const std::string &text) {
  JsonValue parts;
  parts.kind = JsonValue::Kind::Array;
  for (size_t i = 0; i < pictures; ++i)
    parts.items.push_back(makePart("image"));
  parts.items.push_back(makePart("text"));
  setMember(parts.items.back(), "text", makeText(text));
  return parts;
}

/// Whether what a user says is in the text that the template makes, and is not
/// there as a part that is printed whole: a template that looks at the first or
/// last characters of a text is given a list then.
bool ChatPrompt::rendersTexts(bool asParts) const {
  std::string mark = "qzx-question-qzx", text;
  JsonValue message, list;
  setMember(message, "role", makeText("user"));
  setMember(message, "content", asParts ? makeParts(0, mark) : makeText(mark));
  list.kind = JsonValue::Kind::Array;
  list.items.push_back(std::move(message));
  Error ignored;
  return render(*chat, variables, std::move(list), /*addPrompt=*/true, text,
                ignored) &&
         text.find(mark) != std::string::npos &&
         text.find("'text': '" + mark) == std::string::npos;
}

void ChatMessage::show(const ModelInfo &model, const Tokenizer &tokenizer,
                       const std::vector<PicturePtr> &all) {
  pictures = all;
  placesPictures = !all.empty() && namesPictures(model, tokenizer, content);
}

bool ChatPrompt::render(const ChatTemplate &chat, JsonValue all,
                        JsonValue messages, bool addPrompt, std::string &text,
                        Error &error) const {
  for (JsonValue &message : messages.items)
    for (size_t i = 0; wantsParts && i < message.keys.size(); ++i)
      if (message.keys[i] == "content" && message.items[i].isString())
        message.items[i] = makeParts(0, message.items[i].string);
  JsonValue add;
  add.kind = JsonValue::Kind::Bool;
  add.boolean = addPrompt;
  setMember(all, "messages", std::move(messages));
  setMember(all, "add_generation_prompt", std::move(add));
  TemplateProblem problem;
  return chat.render(all, text, problem) ||
         error.badInput(place + ":" + chat.describe(problem));
}

bool ChatPrompt::renderText(const std::vector<ChatMessage> &messages,
                            bool addPrompt, std::string &text,
                            Error &error) const {
  JsonValue list;
  list.kind = JsonValue::Kind::Array;
  for (const ChatMessage &message : messages) {
    JsonValue item;
    setMember(item, "role", makeText(message.role));
    size_t parts = message.placesPictures ? 0 : message.pictures.size();
    setMember(item, "content",
              parts ? makeParts(parts, message.content)
                    : makeText(message.content));
    // Templates leave reasoning of earlier turns out, but for some that read
    // it.
    if (!message.reasoning.empty())
      setMember(item, "reasoning_content", makeText(message.reasoning));
    list.items.push_back(std::move(item));
  }
  return render(*chat, variables, std::move(list), addPrompt, text, error);
}

/// Parts of messages that are pictures.
static size_t countPictures(const JsonValue &messages) {
  size_t count = 0;
  for (const JsonValue &message : messages.items)
    if (const JsonValue *content = message.find("content"))
      for (const JsonValue &part : content->items)
        if (const JsonValue *type = part.find("type"))
          count += type->string == "image";
  return count;
}

bool ChatPrompt::encodeText(const Tokenizer &tokenizer, const std::string &text,
                            size_t pictures, std::vector<int64_t> &ids,
                            Error &error) const {
  ids.clear();
  std::string whole = text;
  layOutPictures(images, pictures, whole);
  if (!tokenizer.encode(whole, ids, error, /*addSpecial=*/false))
    return false;
  return !ids.empty() ||
         error.badInput(place + ": makes an empty prompt of the messages");
}

bool ChatPrompt::encode(const Tokenizer &tokenizer,
                        const std::vector<ChatMessage> &messages,
                        std::vector<int64_t> &ids, Error &error) const {
  std::string text;
  size_t pictures = 0;
  for (const ChatMessage &message : messages)
    pictures += message.pictures.size();
  return renderText(messages, /*addPrompt=*/true, text, error) &&
         encodeText(tokenizer, text, pictures, ids, error);
}

/// Stands behind the text of the last message, to be found where the template
/// puts it. A template that takes white space off takes that at its end off.
static constexpr std::string_view endMark = "qzx-end-qzx", endSpace = " \t \t";

/// Puts a mark behind the text of the last message, if it has one.
static void markLast(JsonValue &messages) {
  JsonValue *content = memberOf(messages.items.back(), "content");
  if (content && content->isArray() && !content->items.empty())
    content = memberOf(content->items.back(), "text");
  if (content && content->isString() && !content->string.empty())
    content->string.append(endMark).append(endSpace);
}

/// Cuts a text off behind the text of the last message, which has the mark.
static bool endAtMark(std::string &text, Error &error) {
  size_t at = text.rfind(endMark);
  if (at == std::string::npos)
    return error.badInput("the chat template does not show the text of the "
                          "last message, so that nothing can go on with it");
  bool keepsSpace =
      text.compare(at + endMark.size(), endSpace.size(), endSpace) == 0;
  text.erase(at);
  if (!keepsSpace)
    text.erase(text.find_last_not_of(" \t\r\n") + 1);
  return true;
}

bool ChatPrompt::render(const JsonValue &messages, const Request &request,
                        std::string &text, Error &error) const {
  JsonValue all = variables;
  const JsonValue *more = request.variables;
  for (size_t i = 0; more && i < more->items.size(); ++i)
    setMember(all, more->keys[i], more->items[i]);
  if (request.tools)
    setMember(all, "tools", *request.tools);
  JsonValue marked = messages;
  if (request.continuesLast)
    markLast(marked);
  if (!render(request.tools && toolUse ? *toolUse : *chat, std::move(all),
              std::move(marked), request.opensAnswer, text, error) ||
      (request.continuesLast && !endAtMark(text, error)))
    return false;
  layOutPictures(images, countPictures(messages), text);
  return !text.empty() ||
         error.badInput(place + ": makes an empty prompt of the messages");
}

bool ChatPrompt::takesSystem() const {
  std::string mark = "qzx-system-qzx", text;
  Error ignored;
  return renderText({{"system", mark, {}}, {"user", "a", {}}},
                    /*addPrompt=*/true, text, ignored) &&
         text.find(mark) != std::string::npos;
}

std::vector<int64_t> ChatPrompt::findEnds(const Tokenizer &tokenizer) const {
  std::vector<int64_t> ends, ids;
  Error ignored;
  // The text that the template puts behind an answer begins with the end of a
  // turn.
  std::string text, mark = "qzx-answer-qzx";
  if (renderText({{"user", "a", {}}, {"assistant", mark, {}}},
                 /*addPrompt=*/false, text, ignored)) {
    size_t at = text.rfind(mark);
    if (at != std::string::npos &&
        tokenizer.encode(text.substr(at + mark.size()), ids, ignored,
                         /*addSpecial=*/false) &&
        !ids.empty() && tokenizer.isSpecial(ids[0]))
      ends.push_back(ids[0]);
  }
  const JsonValue *eos = variables.find("eos_token");
  if (int64_t id =
          eos && eos->isString() ? tokenizer.tokenToId(eos->string) : -1;
      id >= 0)
    ends.push_back(id);
  return ends;
}

std::vector<ChatMessage> startChat(const TemplateOptions &options,
                                   const std::string &text) {
  std::vector<ChatMessage> messages;
  if (options.hasSystem)
    messages.push_back({"system", options.system, {}});
  messages.push_back({"user", text, {}});
  return messages;
}

} // namespace attune::runtime
