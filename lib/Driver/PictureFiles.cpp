//===- PictureFiles.cpp - Files about a model's pictures --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PictureFiles.h"

#include "attune/Import/Gguf.h"
#include "attune/Weights/GgufFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"
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
  if (processor == "Lfm2VlProcessor") {
    std::string token = tokenOf(tokenizer, "image_token", "<image>");
    layout["token"] = token;
    layout["text"] =
        tokenOf(tokenizer, "image_start_token", "<|image_start|>") + token +
        tokenOf(tokenizer, "image_end_token", "<|image_end|>");
    return layout;
  }
  if (processor == "PaliGemmaProcessor") {
    layout["token"] = layout["text"] = "<image>";
    layout["start"] = tokenOf(tokenizer, "bos_token", "<bos>");
    layout["end"] = "\n";
    return layout;
  }
  // Files of before have no such token; another stands for it.
  std::string image = tokenOf(tokenizer, "image_token", "<image>");
  if (processor == "LlavaProcessor" && image != "<image>") {
    layout["token"] = "<image>";
    layout["text"] = image;
    return layout;
  }
  return std::nullopt;
}

/// What stands before, between and behind the image tokens of a picture's
/// tiles: the processor's strings, {row} and {column} being a tile's, from 1
/// on. Nothing if its pictures have no tiles.
static std::optional<json::Object> tilesOf(StringRef processor,
                                           const json::Object &tokenizer) {
  if (processor == "Idefics3Processor" || processor == "SmolVLMProcessor") {
    std::string around =
        tokenOf(tokenizer, "fake_image_token", "<fake_token_around_image>");
    std::string whole =
        around + tokenOf(tokenizer, "global_image_token", "<global-img>");
    return json::Object{{"token", tokenOf(tokenizer, "image_token", "<image>")},
                        {"tile", around + "<row_{row}_col_{column}>"},
                        {"row_end", "\n"},
                        {"whole", "\n" + whole},
                        {"alone", whole},
                        {"end", around}};
  }
  if (processor == "InternVLProcessor")
    return json::Object{
        {"token", tokenOf(tokenizer, "context_image_token", "<IMG_CONTEXT>")},
        {"start", tokenOf(tokenizer, "start_image_token", "<img>")},
        {"end", tokenOf(tokenizer, "end_image_token", "</img>")}};
  return std::nullopt;
}

/// The processor of pictures that an image processor makes, where no file names
/// it: without it, nobody could tell how their tiles stand in a text.
static std::string processorOf(StringRef type) {
  type.consume_back("Fast");
  return StringSwitch<const char *>(type)
      .Case("Idefics3ImageProcessor", "Idefics3Processor")
      .Case("SmolVLMImageProcessor", "SmolVLMProcessor")
      .Case("Lfm2VlImageProcessor", "Lfm2VlProcessor")
      .Case("GotOcr2ImageProcessor", "InternVLProcessor")
      .Case("LlavaNextImageProcessor", "LlavaNextProcessor")
      .Default("");
}

/// The id of a token that a tokenizer adds to its model's, by its text, in
/// tokenizer_config.json; -1: it is not there.
static int64_t idInSettings(StringRef token, const json::Object &settings) {
  if (const json::Object *added = settings.getObject("added_tokens_decoder"))
    for (const auto &[name, value] : *added) {
      int64_t id;
      const json::Object *object = value.getAsObject();
      if (object && object->getString("content") == token &&
          !StringRef(name).getAsInteger(10, id) && id >= 0)
        return id;
    }
  return -1;
}

/// The same in tokenizer.json.
static int64_t idInTokenizer(StringRef token, const json::Object &tokenizer) {
  if (const json::Array *added = tokenizer.getArray("added_tokens"))
    for (const json::Value &value : *added) {
      const json::Object *object = value.getAsObject();
      if (object && object->getString("content") == token)
        return std::max<int64_t>(object->getInteger("id").value_or(-1), -1);
    }
  return -1;
}

/// How many of a picture's vectors are a row: what convolutions leave of its
/// width.
static int64_t columnsOf(const spec::Model &model) {
  int64_t columns = 0;
  for (const spec::TensorSpec &input : model.inputs)
    if (input.shape.size() == 4)
      columns = input.shape[3].size;
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers)
      if (const auto *conv = std::get_if<spec::Conv>(&layer.op);
          conv && conv->stride.size() == 2)
        columns /= conv->stride[1];
  return columns;
}

/// Pixtral's processor ends each row of a picture with a token, and the last
/// one with another. An id of -1 is not known. Nothing after an error.
static std::optional<json::Object> rowsOf(const ModelSource &source,
                                          const json::Object &processor,
                                          const json::Object &settings,
                                          DiagnosticEngine &diags) {
  StringRef texts[] = {
      processor.getString("image_break_token").value_or("[IMG_BREAK]"),
      processor.getString("image_end_token").value_or("[IMG_END]")};
  int64_t ids[] = {idInSettings(texts[0], settings),
                   idInSettings(texts[1], settings)};
  if (ids[0] < 0 || ids[1] < 0) {
    std::optional<json::Object> tokenizer = json::Object();
    if (StringRef(source.tokenizerPath).ends_with(".json"))
      tokenizer = readObject(source.tokenizerPath, diags);
    if (!tokenizer)
      return std::nullopt;
    for (auto [id, text] : zip_equal(ids, texts))
      id = idInTokenizer(text, *tokenizer);
  }
  return json::Object{{"columns", columnsOf(*source.model)},
                      {"break", ids[0]},
                      {"end", ids[1]}};
}

/// The image processor's settings. Later folders have them as a part of the
/// processor's. Empty: there are none; nothing after an error.
static std::optional<json::Object> imagesOf(const std::string &path,
                                            json::Object &processor,
                                            DiagnosticEngine &diags) {
  if (sys::fs::exists(path))
    return readObject(path, diags);
  if (json::Object *part = processor.getObject("image_processor"))
    return std::move(*part);
  return json::Object();
}

namespace {
/// What the files of a model say of its pictures.
struct Files {
  json::Object processor, images, settings;
};
} // namespace

/// Those of a folder, or what a GGUF file's keys stand for. Nothing after an
/// error.
static std::optional<Files> readFiles(const ModelSource &source,
                                      DiagnosticEngine &diags) {
  Files files;
  if (source.folder.empty()) {
    std::optional<std::string> text =
        readGgufPreparation(source.checkpointPath, diags);
    if (!text)
      return std::nullopt;
    if (text->empty())
      return files;
    files.images = std::move(*cantFail(json::parse(*text)).getAsObject());
    if (json::Object *added = files.images.getObject("added_tokens_decoder"))
      files.settings["added_tokens_decoder"] = std::move(*added);
    if (std::optional<StringRef> token = files.images.getString("image_token"))
      files.settings["image_token"] = token->str();
    files.images.erase("added_tokens_decoder");
    files.images.erase("image_token");
    return files;
  }
  auto read = [&](const char *name, json::Object &object) {
    std::optional<json::Object> found =
        readObject(source.folder + "/" + name, diags);
    if (found)
      object = std::move(*found);
    return found.has_value();
  };
  if (!read("processor_config.json", files.processor))
    return std::nullopt;
  std::optional<json::Object> images = imagesOf(
      source.folder + "/preprocessor_config.json", files.processor, diags);
  if (!images)
    return std::nullopt;
  files.images = std::move(*images);
  if (!files.images.empty() && !read("tokenizer_config.json", files.settings))
    return std::nullopt;
  return files;
}

bool driver::readPreparation(ModelSource &source, DiagnosticEngine &diags) {
  if (!source.model ||
      (source.folder.empty() && !isGgufFile(source.checkpointPath)))
    return true;
  bool sees =
      any_of(source.model->streams.back().layers, [](const spec::Layer &layer) {
        return std::holds_alternative<spec::Insert>(layer.op);
      });
  if (!sees)
    return true;
  std::optional<Files> files = readFiles(source, diags);
  if (!files)
    return false;
  auto &[processor, images, settings] = *files;
  if (images.empty())
    return true;
  std::optional<StringRef> given = images.getString("processor_class");
  if (!given)
    given = processor.getString("processor_class");
  StringRef type = images.getString("image_processor_type").value_or("");
  std::string name = given ? given->str() : processorOf(type);
  bool hasRows =
      name == "PixtralProcessor" || type.starts_with("PixtralImageProcessor");
  // The description says no more about it than its file does.
  images.erase("picture_text");
  images.erase("picture_rows");
  images.erase("picture_tiles");
  images.erase("picture_lines");
  if (std::optional<json::Object> layout = layoutOf(name, settings))
    images["picture_text"] = std::move(*layout);
  if (std::optional<json::Object> layout = tilesOf(name, settings))
    images["picture_tiles"] = std::move(*layout);
  if (name == "LlavaNextProcessor")
    images["picture_lines"] = true;
  // It asks its image processor for tiles, whatever that one's file says.
  if (name == "InternVLProcessor")
    images["crop_to_patches"] = true;
  if (hasRows) {
    std::optional<json::Object> rows =
        rowsOf(source, processor, settings, diags);
    if (!rows)
      return false;
    images["picture_rows"] = std::move(*rows);
  }
  raw_string_ostream(source.imagesJson) << json::Value(std::move(images));
  return true;
}
