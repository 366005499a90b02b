//===- PictureFiles.cpp - Files about a model's pictures --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PictureFiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

/// The object in a file of the folder, which may be absent: then it is empty.
/// Nothing after an error.
static std::optional<json::Object> readObject(const std::string &path,
                                              DiagnosticEngine &diags) {
  if (!sys::fs::exists(path))
    return json::Object();
  std::shared_ptr<const SourceFile> file = readSourceFile(path, diags);
  if (!file)
    return std::nullopt;
  Expected<json::Value> value = json::parse(file->text);
  if (!value) {
    diags.error({file, 1, 1},
                "is not valid JSON: " + toString(value.takeError()));
    return std::nullopt;
  }
  if (json::Object *object = value->getAsObject())
    return std::move(*object);
  diags.error({file, 1, 1}, "expected an object");
  return std::nullopt;
}

/// A special token of tokenizer_config.json.
static std::string tokenOf(const json::Object &tokenizer, StringRef key,
                           StringRef usual) {
  const json::Object *object = tokenizer.getObject(key);
  std::optional<StringRef> text =
      object ? object->getString("content") : tokenizer.getString(key);
  return text.value_or(usual).str();
}

/// What stands for a picture in a text, and what the processor makes of it and
/// of the whole text; an image token is for all that the picture has.
static std::optional<json::Object> layoutOf(StringRef processor,
                                            const json::Object &tokenizer) {
  json::Object layout;
  if (processor == "Gemma3Processor") {
    std::string begin = tokenOf(tokenizer, "boi_token", "<start_of_image>");
    layout["token"] = begin;
    layout["text"] = "\n\n" + begin +
                     tokenOf(tokenizer, "image_token", "<image_soft_token>") +
                     tokenOf(tokenizer, "eoi_token", "<end_of_image>") + "\n\n";
    return layout;
  }
  if (processor == "PaliGemmaProcessor") {
    layout["token"] = layout["text"] = "<image>";
    layout["start"] = tokenOf(tokenizer, "bos_token", "<bos>");
    layout["end"] = "\n";
    return layout;
  }
  return std::nullopt;
}

bool driver::readPreparation(ModelSource &source, DiagnosticEngine &diags) {
  if (!source.model || source.folder.empty())
    return true;
  bool sees =
      any_of(source.model->streams.back().layers, [](const spec::Layer &layer) {
        return std::holds_alternative<spec::Insert>(layer.op);
      });
  if (!sees || !sys::fs::exists(source.folder + "/preprocessor_config.json"))
    return true;
  auto read = [&](const char *name) {
    return readObject(source.folder + "/" + name, diags);
  };
  std::optional<json::Object> images = read("preprocessor_config.json");
  std::optional<json::Object> processor = read("processor_config.json");
  std::optional<json::Object> tokenizer = read("tokenizer_config.json");
  if (!images || !processor || !tokenizer)
    return false;
  std::optional<StringRef> name = images->getString("processor_class");
  if (!name)
    name = processor->getString("processor_class");
  // The description says no more about it than its file does.
  images->erase("picture_text");
  if (name)
    if (std::optional<json::Object> layout = layoutOf(*name, *tokenizer))
      (*images)["picture_text"] = std::move(*layout);
  raw_string_ostream(source.imagesJson) << json::Value(std::move(*images));
  return true;
}
