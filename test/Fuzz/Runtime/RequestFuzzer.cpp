//===- RequestFuzzer.cpp - Bodies of requests -----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The input is the body of a request: to /v1/chat/completions if it names
// messages, else to /v1/completions. What the model would write is taken from
// the input as well, and taken apart into reasoning, content and calls.
//
//===----------------------------------------------------------------------===//

#include "../Fuzzing.h"

#include "Chat/AnswerReader.h"
#include "Serve/CompletionRequest.h"
#include "Serve/ResponseRequest.h"

#include "attune/Runtime/Picture.h"
#include "attune/Runtime/Sight.h"

#include <algorithm>

using namespace attune::runtime;

namespace {
/// The runtime asks for it weakly, which takes nothing out of an archive.
[[gnu::used]] decltype(&seePicture) const sight = seePicture;

struct Model {
  ModelInfo info;
  std::unique_ptr<Tokenizer> tokenizer;
  std::unique_ptr<ConstraintFactory> constraints;
  std::unique_ptr<ChatPrompt> chat;
  ServedModel served;

  Model() {
    Error error;
    info.name = "model";
    info.context = 64;
    info.tokenizerJson = attune::fuzzing::readFile(
        ATTUNE_FUZZ_SOURCES "/examples/storyteller/tokenizer.json");
    info.chatTemplate =
        "{% for m in messages %}{{ m.role }}: {% if m.content is string %}"
        "{{ m.content }}{% else %}{% for part in m.content %}"
        "{{ part.text if part.type == 'text' else '$' }}{% endfor %}{% endif %}"
        "\n{% endfor %}{{ tools | tojson if tools }}";
    tokenizer = Tokenizer::create(info.tokenizerJson, error);
    FUZZ_REQUIRE(tokenizer);
    constraints.reset(new ConstraintFactory(*tokenizer));
    addSight();
    chat = ChatPrompt::create(info, TemplateOptions(), error);
    FUZZ_REQUIRE(chat);
    served.info = &info;
    served.tokenizer = tokenizer.get();
    served.constraints = constraints.get();
    served.chat = chat.get();
    served.capacity = info.context;
    served.mostPixels = 1 << 16;
    served.vocabulary = tokenizer->size();
  }

  /// Each "$" of a text can be a picture of four tokens.
  void addSight() {
    Error error;
    std::vector<int64_t> ids;
    FUZZ_REQUIRE(tokenizer->encode("$", ids, error) && !ids.empty());
    auto add = [&](const char *entry, ArgInfo input) {
      EntryInfo made;
      made.name = entry;
      made.args.push_back(std::move(input));
      info.entries.push_back(std::move(made));
    };
    ArgInfo pixels, vectors;
    pixels.shape = {{-1, "images"}, {3, ""}, {8, ""}, {8, ""}};
    vectors.inserted = ids.back();
    vectors.each = 4;
    add("encode", std::move(pixels));
    add("decode", std::move(vectors));
    std::string problem;
    FUZZ_REQUIRE(parseJson("{\"image_processor_type\": \"CLIPImageProcessor\","
                           "\"size\": 8, \"crop_size\": 8}",
                           info.images, problem));
    FUZZ_REQUIRE(canSee(info, error));
  }
};
} // namespace

/// An answer in pieces of `step` bytes; calls become content.
static AnswerText readAnswer(const AnswerFormat &format, std::string_view text,
                             size_t step) {
  JsonValue tools;
  auto reader =
      AnswerReader::create(format, /*startsInReasoning=*/false, &tools);
  AnswerText all;
  auto add = [&](const AnswerText &part) {
    all.reasoning += part.reasoning;
    all.content += part.content;
  };
  for (size_t i = 0; i < text.size(); i += step)
    add(reader->push(text.substr(i, step)));
  std::vector<ToolCall> calls;
  add(reader->finish(calls));
  for (const ToolCall &call : calls)
    all.content += "|" + call.name + "(" + call.arguments + ")";
  return all;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static Model model;
  std::string_view text = attune::fuzzing::asText(data, size);

  // In pieces or whole, the same parts and the same calls are found.
  AnswerFormat format;
  format.hasChannels = size % 2;
  format.opening = "<think>";
  format.closing = "</think>";
  if (size % 3)
    format.calls = callSyntaxes()[size % callSyntaxes().size()].opening;
  AnswerText said = readAnswer(format, text, 3);
  AnswerText saidWhole = readAnswer(format, text, size + 1);
  FUZZ_REQUIRE(said.content == saidWhole.content &&
               said.reasoning == saidWhole.reasoning);

  JsonValue body;
  std::string problem;
  if (!parseJson(text, body, problem) || !body.isObject())
    return 0;
  CompletionRequest request;
  RequestError error;
  if (body.find("input")) {
    JsonValue chat;
    if (!makeChatBody(body, chat, error)) {
      FUZZ_REQUIRE(!error.message.empty());
      return 0;
    }
    body = std::move(chat);
  }
  bool isChat = body.find("messages") != nullptr;
  if (!request.read(body, isChat, model.served, error)) {
    FUZZ_REQUIRE(error.status >= 400 && error.status < 600);
    FUZZ_REQUIRE(!error.message.empty());
    return 0;
  }
  FUZZ_REQUIRE(!request.prompts.empty() && request.choices >= 1);
  for (const CompletionPrompt &prompt : request.prompts)
    for (int64_t id : prompt.ids)
      FUZZ_REQUIRE(id >= 0 && id < model.served.vocabulary);
  for (const CompletionPrompt &prompt : request.prompts) {
    const ArgInfo &token = imageToken(model.info);
    auto places =
        std::count(prompt.ids.begin(), prompt.ids.end(), token.inserted);
    size_t pictures = prompt.pictures.size();
    FUZZ_REQUIRE(pictures == 0 || size_t(places) == 4 * pictures);
    for (const PicturePtr &picture : prompt.pictures)
      FUZZ_REQUIRE(picture->pixels.size() == 3 * 8 * 8);
  }
  return 0;
}
