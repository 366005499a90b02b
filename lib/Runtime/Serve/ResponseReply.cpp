//===- ResponseReply.cpp - Answers of /v1/responses -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ResponseReply.h"

namespace attune::runtime {

/// A member of the request, or what it is if the request leaves it out.
static void repeat(std::string &out, const JsonValue &body, const char *name,
                   const char *otherwise) {
  const JsonValue *value = body.find(name);
  out += ",\"" + std::string(name) + "\":";
  if (value && !value->isNull())
    appendJson(out, *value);
  else
    out += otherwise;
}

ResponseReply::ResponseReply(ExchangePtr exchange, Outbox &outbox,
                             const ServedModel &model,
                             CompletionRequest request, const JsonValue &body)
    : Completion(std::move(exchange), outbox, model, std::move(request)) {
  static constexpr std::pair<const char *, const char *> members[] = {
      {"instructions", "null"},
      {"max_output_tokens", "null"},
      {"max_tool_calls", "null"},
      {"metadata", "{}"},
      {"parallel_tool_calls", "true"},
      {"reasoning", "{\"effort\":null,\"summary\":null}"},
      {"temperature", "null"},
      {"text", "{\"format\":{\"type\":\"text\"}}"},
      {"tool_choice", "\"auto\""},
      {"tools", "[]"},
      {"top_logprobs", "0"},
      {"top_p", "null"},
      {"truncation", "\"disabled\""},
      {"user", "null"}};
  for (auto [name, otherwise] : members)
    repeat(repeated, body, name, otherwise);
}

//===----------------------------------------------------------------------===//
// Items
//===----------------------------------------------------------------------===//

/// Of a message or of reasoning: what its text stands in.
std::string ResponseReply::formatPart(const Item &item) const {
  std::string out = item.kind == Kind::Message
                        ? "{\"type\":\"output_text\",\"text\":"
                        : "{\"type\":\"summary_text\",\"text\":";
  appendJsonString(out, item.text);
  if (item.kind == Kind::Message)
    out += ",\"annotations\":[],\"logprobs\":[" + item.logprobs + "]";
  return out + "}";
}

std::string ResponseReply::formatItem(const Item &item) const {
  std::string out = "{\"id\":\"" + item.id + "\",\"type\":\"";
  std::string part = item.isDone ? formatPart(item) : "";
  if (item.kind == Kind::Reasoning) {
    out += "reasoning\",\"summary\":[" + part + "]";
  } else if (item.kind == Kind::Message) {
    out += "message\",\"role\":\"assistant\",\"content\":[" + part + "]";
  } else {
    out += "function_call\",\"call_id\":\"" + item.callId + "\",\"name\":";
    appendJsonString(out, item.name);
    out += ",\"arguments\":";
    appendJsonString(out, item.isDone ? item.text : "");
  }
  return out + ",\"status\":\"" + item.status + "\"}";
}

/// Where the last item is.
std::string ResponseReply::place() const {
  const Item &item = items.back();
  std::string out = "\"item_id\":\"" + item.id +
                    "\",\"output_index\":" + std::to_string(items.size() - 1);
  if (item.kind == Kind::Message)
    out += ",\"content_index\":0";
  if (item.kind == Kind::Reasoning)
    out += ",\"summary_index\":0";
  return out;
}

/// The last item, if it is of this kind and goes on, or a new one.
ResponseReply::Item &ResponseReply::open(Kind kind) {
  begin();
  if (!items.empty() && !items.back().isDone && items.back().kind == kind)
    return items.back();
  close();
  items.emplace_back();
  Item &item = items.back();
  item.kind = kind;
  item.id = makeId(kind == Kind::Reasoning ? "rs_"
                   : kind == Kind::Message ? "msg_"
                                           : "fc_");
  if (kind == Kind::Call)
    item.callId = makeCallId();
  return item;
}

void ResponseReply::close() {
  if (items.empty() || items.back().isDone)
    return;
  Item &item = items.back();
  std::string text;
  appendJsonString(text, item.text);
  if (item.kind == Kind::Reasoning) {
    send("response.reasoning_summary_text.done", place() + ",\"text\":" + text);
    send("response.reasoning_summary_part.done",
         place() + ",\"part\":" + formatPart(item));
  } else if (item.kind == Kind::Message) {
    send("response.output_text.done", place() + ",\"text\":" + text +
                                          ",\"logprobs\":[" + item.logprobs +
                                          "]");
    send("response.content_part.done",
         place() + ",\"part\":" + formatPart(item));
  } else {
    std::string name;
    appendJsonString(name, item.name);
    send("response.function_call_arguments.done",
         place() + ",\"name\":" + name + ",\"arguments\":" + text);
  }
  item.isDone = true;
  item.status = status;
  send("response.output_item.done",
       "\"output_index\":" + std::to_string(items.size() - 1) +
           ",\"item\":" + formatItem(item));
}

void ResponseReply::addText(Kind kind, const std::string &piece,
                            const std::string &logprobs) {
  size_t before = items.size();
  Item &item = open(kind);
  if (items.size() > before) {
    send("response.output_item.added",
         "\"output_index\":" + std::to_string(before) +
             ",\"item\":" + formatItem(item));
    send(kind == Kind::Message ? "response.content_part.added"
                               : "response.reasoning_summary_part.added",
         place() + ",\"part\":" + formatPart(item));
  }
  item.text += piece;
  std::string members = place() + ",\"delta\":";
  appendJsonString(members, piece);
  if (kind == Kind::Message) {
    // {"content":[...]} of chats, or null
    constexpr std::string_view start = "{\"content\":[", end = "]}";
    std::string tokens;
    if (logprobs.size() > start.size() + end.size())
      tokens = logprobs.substr(start.size(),
                               logprobs.size() - start.size() - end.size());
    if (!tokens.empty())
      item.logprobs += (item.logprobs.empty() ? "" : ",") + tokens;
    members += ",\"logprobs\":[" + tokens + "]";
  }
  if (!piece.empty())
    send(kind == Kind::Message ? "response.output_text.delta"
                               : "response.reasoning_summary_text.delta",
         members);
}

void ResponseReply::addCalls(Choice &choice) {
  for (const ToolCall &call : choice.calls) {
    close();
    Item &item = open(Kind::Call);
    item.name = call.name;
    send("response.output_item.added",
         "\"output_index\":" + std::to_string(items.size() - 1) +
             ",\"item\":" + formatItem(item));
    item.text = call.arguments;
    std::string members = place() + ",\"delta\":";
    appendJsonString(members, item.text);
    send("response.function_call_arguments.delta", members);
    close();
  }
}

void ResponseReply::addEnd(Choice &choice) {
  if (choice.reason == "length" || choice.reason == "context")
    status = "incomplete";
  bool isSilent = true;
  for (const Item &item : items)
    isSilent = isSilent && item.kind == Kind::Reasoning;
  if (isSilent)
    addText(Kind::Message, "", "");
  close();
}

//===----------------------------------------------------------------------===//
// The whole
//===----------------------------------------------------------------------===//

std::string ResponseReply::format(const char *state) const {
  std::string out =
      "{\"id\":\"" + id +
      "\",\"object\":\"response\",\"created_at\":" + std::to_string(created) +
      ",\"status\":\"" + state + "\",\"background\":false,\"error\":" +
      (failure.empty() ? "null" : failure) + ",\"incomplete_details\":";
  bool isOver = state != std::string_view("in_progress");
  out += state == std::string_view("incomplete")
             ? "{\"reason\":\"max_output_tokens\"}"
             : "null";
  out += ",\"model\":";
  appendJsonString(out, nameModel());
  out += ",\"output\":[";
  for (size_t i = 0; i < items.size(); ++i)
    out += (i ? "," : "") + formatItem(items[i]);
  out += "]" + repeated +
         ",\"previous_response_id\":null,\"store\":false,\"usage\":";
  if (!isOver)
    return out + "null}";
  int64_t read = exchange->promptTokens, written = exchange->newTokens;
  return out + "{\"input_tokens\":" + std::to_string(read) +
         ",\"input_tokens_details\":{\"cached_tokens\":" +
         std::to_string(exchange->cachedTokens) +
         "},\"output_tokens\":" + std::to_string(written) +
         ",\"output_tokens_details\":{\"reasoning_tokens\":" +
         std::to_string(exchange->reasoningTokens) +
         "},\"total_tokens\":" + std::to_string(read + written) + "}}";
}

void ResponseReply::send(const char *name, const std::string &members) {
  if (!request.streams)
    return;
  sendEvent("{\"type\":\"" + std::string(name) + "\",\"sequence_number\":" +
                std::to_string(numEvents++) + "," + members + "}",
            name);
}

void ResponseReply::begin() {
  if (numEvents > 0 || !request.streams)
    return;
  for (const char *name : {"response.created", "response.in_progress"})
    send(name, "\"response\":" + format("in_progress"));
}

void ResponseReply::sendPiece(Choice &, const char *member,
                              const std::string &piece,
                              const std::string &logprobs) {
  addText(member == std::string_view("content") ? Kind::Message
                                                : Kind::Reasoning,
          piece, logprobs);
}

void ResponseReply::sendCalls(Choice &choice) { addCalls(choice); }

void ResponseReply::sendEnd(Choice &choice, const std::string &logprobs) {
  begin();
  if (!items.empty() && items.back().kind == Kind::Message &&
      !items.back().isDone)
    addText(Kind::Message, "", logprobs);
  addEnd(choice);
}

void ResponseReply::sendError(int, const std::string &message,
                              const char *code) {
  begin();
  failure = "{\"code\":";
  appendJsonString(failure, *code ? code : "server_error");
  failure += ",\"message\":";
  appendJsonString(failure, message);
  failure += "}";
  send("response.failed", "\"response\":" + format("failed"));
}

void ResponseReply::sendLast(ReplyPart part) {
  send(status == std::string_view("incomplete") ? "response.incomplete"
                                                : "response.completed",
       "\"response\":" + format(status));
  outbox.post(std::move(part));
}

std::string ResponseReply::formatReply() {
  Choice &choice = *choices[0];
  if (!choice.text.reasoning.empty())
    addText(Kind::Reasoning, choice.text.reasoning, "");
  if (!choice.text.content.empty())
    addText(Kind::Message, choice.text.content, choice.formatLogprobs(0));
  addCalls(choice);
  addEnd(choice);
  return format(status);
}

} // namespace attune::runtime
