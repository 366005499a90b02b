//===- MessageParts.cpp - What messages consist of ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "MessageParts.h"

#include "../JsonMembers.h"
#include "../Text/Unicode.h"

#include <algorithm>

namespace attune::runtime {

/// Pictures of a request wait for their turn in memory.
static constexpr size_t mostPictures = 32;

bool decodeDataUrl(std::string_view url, std::string &bytes,
                   std::string &problem) {
  constexpr std::string_view start = "data:image/", end = ";base64";
  size_t comma = url.find(',');
  std::string_view head = url.substr(0, std::min(comma, url.size()));
  if (comma == std::string_view::npos ||
      head.substr(0, start.size()) != start ||
      head.size() < start.size() + end.size() ||
      head.substr(head.size() - end.size()) != end) {
    problem = "expected \"data:image/png;base64,...\" or the same of "
              "image/jpeg; no addresses are fetched and no files are read";
    return false;
  }
  std::string_view digits = url.substr(comma + 1);
  size_t count = digits.size();
  // One or two signs fill up the last group of four.
  for (int i = 0; i < 2 && count % 4 != 1 && count > 0 &&
                  digits.size() % 4 == 0 && digits[count - 1] == '=';
       ++i)
    --count;
  if (count % 4 == 1) {
    problem = "the base64 of the picture ends in the middle of a byte";
    return false;
  }
  bytes.clear();
  bytes.reserve(count / 4 * 3 + 2);
  uint32_t group = 0;
  for (size_t i = 0; i < count; ++i) {
    int digit = base64Digit(digits[i]);
    if (digit < 0) {
      problem = "the picture is no base64: digit " + std::to_string(i + 1) +
                " is none";
      return false;
    }
    group = group << 6 | static_cast<uint32_t>(digit);
    if (i % 4 == 3)
      for (int shift = 16; shift >= 0; shift -= 8)
        bytes += static_cast<char>(group >> shift & 0xff);
  }
  if (count % 4 == 2)
    bytes += static_cast<char>(group >> 4 & 0xff);
  if (count % 4 == 3) {
    bytes += static_cast<char>(group >> 10 & 0xff);
    bytes += static_cast<char>(group >> 2 & 0xff);
  }
  return true;
}

bool MessageReader::readPicture(const JsonValue &part) {
  const JsonValue *inner = part.find("image_url");
  const std::string *url = inner ? textOf(*inner, "url") : nullptr;
  if (!url)
    return fail("expected a part {\"type\": \"image_url\", \"image_url\": "
                "{\"url\": ...}}");
  Error problem;
  if (!canSee(model, problem))
    return fail(problem.message);
  if (pictures.size() == mostPictures)
    return fail("expected at most " + std::to_string(mostPictures) +
                " pictures");
  // Before anything is read of it.
  int64_t each = imageToken(model).each;
  size_t count = pictures.size() + 1;
  auto fits = [&](int64_t more) {
    if (tokens + more < capacity)
      return true;
    return fail(std::to_string(count) +
                    (count == 1 ? " picture" : " pictures") + " of " +
                    std::to_string(tokens + more) +
                    " tokens or more leave no room for new ones in a context "
                    "of " +
                    std::to_string(capacity),
                "context_length_exceeded");
  };
  if (!fits(each))
    return false;
  std::string bytes, reason, name = "picture " + std::to_string(count);
  if (!decodeDataUrl(*url, bytes, reason))
    return fail(name + ": " + reason);
  PicturePtr picture =
      parsePicture(model, reinterpret_cast<const uint8_t *>(bytes.data()),
                   bytes.size(), name, pixelsLeft, problem);
  if (!picture)
    return fail(problem.message);
  // How many tiles it has is known now.
  if (!fits(picture->countTokens(each)))
    return false;
  tokens += picture->countTokens(each);
  pictures.push_back(std::move(picture));
  return true;
}

/// A content in parts: a text, one piece after the other, unless a part is a
/// picture or the template reads parts.
bool MessageReader::readParts(JsonValue &content, bool isUser) {
  size_t before = pictures.size();
  std::string text;
  for (JsonValue &part : content.items) {
    const std::string *type = textOf(part, "type");
    const std::string *piece = textOf(part, "text");
    JsonValue plain;
    plain.kind = JsonValue::Kind::Object;
    plain.keys.push_back("type");
    plain.items.resize(1);
    plain.items[0].kind = JsonValue::Kind::String;
    if (type && *type == "text" && piece) {
      text += *piece;
      plain.items[0].string = "text";
      plain.keys.push_back("text");
      plain.items.push_back(*part.find("text"));
    } else if (type && *type == "image_url" && isUser) {
      if (!readPicture(part))
        return false;
      plain.items[0].string = "image";
    } else {
      return fail("expected parts {\"type\": \"text\", \"text\": ...}, and of "
                  "the user pictures {\"type\": \"image_url\", ...}");
    }
    part = std::move(plain);
  }
  if (pictures.size() > before || keepsParts)
    return true;
  content = JsonValue();
  content.kind = JsonValue::Kind::String;
  content.string = std::move(text);
  return true;
}

bool restoreArguments(JsonValue &messages, const JsonValue &given) {
  bool any = false;
  for (size_t i = 0; i < given.items.size(); ++i) {
    const JsonValue *from = given.items[i].find("tool_calls");
    JsonValue *to = memberOf(messages.items[i], "tool_calls");
    for (size_t k = 0; from && to && k < from->items.size(); ++k) {
      const JsonValue *function = from->items[k].find("function");
      JsonValue *own = memberOf(to->items[k], "function");
      const std::string *text =
          function ? textOf(*function, "arguments") : nullptr;
      if (!text || !own)
        continue;
      setMember(*own, "arguments", makeText(*text));
      any = true;
    }
  }
  return any;
}

/// The reasoning of an earlier answer comes as `reasoning_content` or, from
/// other servers, as `reasoning`. Most templates read the first name. gpt-oss
/// reads `thinking`, in front of calls of tools alone and not beside a content.
static void nameReasoning(JsonValue &message) {
  const std::string *text = textOf(message, "reasoning_content");
  if (!text)
    text = textOf(message, "reasoning");
  if (!text)
    return;
  std::string reasoning = *text; // which setMember() may move
  const JsonValue *content = message.find("content");
  bool isSilent = !content || content->isNull() ||
                  (content->isString() && content->string.empty());
  setMember(message, "reasoning_content", makeText(reasoning));
  if (isSilent)
    setMember(message, "thinking", makeText(reasoning));
}

bool MessageReader::readArguments(JsonValue &call) {
  JsonValue *function = memberOf(call, "function");
  JsonValue *arguments = function ? memberOf(*function, "arguments") : nullptr;
  if (!arguments || !arguments->isString())
    return true;
  if (arguments->string.size() > argumentsLeft)
    return fail("the arguments of calls have more than 2 MiB");
  argumentsLeft -= arguments->string.size();
  JsonValue read;
  std::string ignored;
  if (parseJson(arguments->string, read, ignored))
    *arguments = std::move(read);
  return true;
}

bool MessageReader::read(JsonValue &message) {
  const JsonValue *role = message.isObject() ? message.find("role") : nullptr;
  if (!role || !role->isString())
    return fail("expected objects {\"role\": ..., \"content\": ...}");
  bool isDeveloper = role->string == "developer";
  bool isUser = role->string == "user";
  static const std::string_view roles[] = {"system", "developer", "user",
                                           "assistant", "tool"};
  if (std::find(std::begin(roles), std::end(roles), role->string) ==
      std::end(roles))
    return fail("expected a role system, developer, user, assistant or tool, "
                "found '" +
                role->string + "'");
  bool hasCalls = false, hasContent = false;
  for (size_t i = 0; i < message.keys.size(); ++i) {
    JsonValue &value = message.items[i];
    if (message.keys[i] == "role" && isDeveloper) {
      value.string = "system";
    } else if (message.keys[i] == "content" && !value.isNull()) {
      hasContent = true;
      if (value.isArray()) {
        if (!readParts(value, isUser))
          return false;
      } else if (!value.isString()) {
        return fail("expected a text as content, found " +
                    std::string(value.kindName()));
      }
    } else if (message.keys[i] == "tool_calls" && value.isArray()) {
      hasCalls = !value.items.empty();
      for (JsonValue &call : value.items)
        if (!readArguments(call))
          return false;
    }
  }
  nameReasoning(message);
  // Templates look into the content of an answer that is nothing but calls.
  if (!hasContent && hasCalls)
    setMember(message, "content", makeText(""));
  return hasContent || hasCalls || fail("a message has no content");
}

} // namespace attune::runtime
