//===- PromptImages.cpp - Pictures of a prompt ----------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PromptImages.h"

#include "attune/Runtime/Sight.h"

#include <algorithm>

namespace attune::runtime {

/// Null in products that are linked without AttuneRuntimeSight.
[[gnu::weak]] bool seePictures(const JsonValue &config,
                               const std::vector<std::string> &files,
                               int64_t channels, int64_t height, int64_t width,
                               std::vector<float> &pixels, Error &error);

const ArgInfo *findImageInput(const CompiledModel &model) {
  const EntryInfo *encode = model.entry("encode");
  const EntryInfo *decode = model.entry("decode");
  if (!encode || !decode || !decode->findInserted())
    return nullptr;
  for (const ArgInfo &arg : encode->args)
    if (arg.kind == ArgKind::Input && arg.shape.size() == 4 &&
        arg.shape[1].size > 0 && arg.shape[1].size % 3 == 0 &&
        arg.shape[2].size > 0 && arg.shape[3].size > 0)
      return &arg;
  return nullptr;
}

bool readImages(const CompiledModel &model, GenerateOptions &options,
                Error &error) {
  if (options.images.empty())
    return true;
  const ArgInfo *input = findImageInput(model);
  if (!input)
    return error.badInput("model '" + model.info().name +
                          "' sees no pictures, so that --image has no use");
  if (model.info().images.isNull() || !seePictures)
    return error.badInput(
        "model '" + model.info().name +
        "' does not say how pictures become its input: it was compiled without "
        "a preprocessor_config.json beside its config.json");
  return seePictures(model.info().images, options.images, input->shape[1].size,
                     input->shape[2].size, input->shape[3].size, options.pixels,
                     error);
}

bool encodeMessage(const CompiledModel &model, const GenerateOptions &options,
                   const ChatPrompt &chat, const Tokenizer &tokenizer,
                   const std::string &text, std::vector<int64_t> &ids,
                   Error &error) {
  std::vector<ChatMessage> messages = startChat(options.messages, text);
  if (!chat.encode(tokenizer, messages, ids, error))
    return false;
  if (options.images.empty())
    return true;
  const ArgInfo *vectors = model.entry("decode")->findInserted();
  if (std::count(ids.begin(), ids.end(), vectors->inserted) != 0)
    return true;
  // Parts, as messages with pictures have in transformers.
  std::string json = "[";
  for (size_t i = 0; i < messages.size(); ++i) {
    bool last = i + 1 == messages.size();
    json += i ? ", {\"role\": " : "{\"role\": ";
    appendJsonString(json, messages[i].role);
    json += ", \"content\": ";
    if (last)
      json += "[";
    for (size_t k = 0; last && k < options.images.size(); ++k)
      json += "{\"type\": \"image\"}, ";
    if (last)
      json += "{\"type\": \"text\", \"text\": ";
    appendJsonString(json, messages[i].content);
    json += last ? "}]}" : "}";
  }
  JsonValue list;
  std::string problem;
  if (!parseJson(json + "]", list, problem))
    return error.badInput("--prompt: " + problem);
  return chat.encode(tokenizer, list, /*tools=*/nullptr, /*more=*/nullptr, ids,
                     error);
}

bool placeImages(const CompiledModel &model, size_t images,
                 std::vector<int64_t> &ids, Error &error) {
  if (images == 0)
    return true;
  const ArgInfo *vectors = model.entry("decode")->findInserted();
  auto places = static_cast<size_t>(
      std::count(ids.begin(), ids.end(), vectors->inserted));
  auto each = static_cast<size_t>(vectors->each);
  if (places == images * each) // each picture has all of its tokens
    return true;
  if (places != images)
    return error.badInput(
        "the prompt has " + std::to_string(places) + " image tokens (id " +
        std::to_string(vectors->inserted) + "), but --image names " +
        std::to_string(images) + (images == 1 ? " picture" : " pictures"));
  std::vector<int64_t> all;
  for (int64_t id : ids)
    all.insert(all.end(), id == vectors->inserted ? each : 1, id);
  ids = std::move(all);
  return true;
}

} // namespace attune::runtime
