//===- ModelSource.cpp - What MODEL names -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ModelSource.h"

#include "ChatTemplates.h"

#include "attune/Import/HuggingFace.h"
#include "attune/Import/Tokenizers.h"
#include "attune/Spec/Taps.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace llvm;
using namespace attune;
using namespace attune::driver;

static SourceLocation atFile(const std::string &path) {
  auto file = std::make_shared<SourceFile>();
  file->path = path;
  return {file, 0, 0};
}

static bool addTaps(spec::Model &model, const Options &options,
                    DiagnosticEngine &diags) {
  std::vector<std::string> names = {"hidden_states"};
  for (const spec::Stream &stream : model.streams)
    for (const spec::Layer &layer : stream.layers)
      if (!layer.name.empty() && layer.repeat == 1)
        names.push_back(layer.name);
  for (const std::string &tap : options.taps) {
    if (any_of(model.outputs,
               [&](const spec::Output &output) { return output.name == tap; }))
      continue;
    std::string problem;
    if (!is_contained(names, tap) &&
        !spec::findAttentionTap(model, tap, problem)) {
      std::vector<std::string> maps = spec::attentionNames(model);
      SmallVector<StringRef> known(maps.begin(), maps.end());
      known.append(names.begin(), names.end());
      if (problem.empty()) {
        StringRef nearest = findNearest(tap, known);
        problem = "the model has no layer '" + tap +
                  "' that --tap could read; " +
                  (nearest.empty() ? "it has " + join(known, ", ")
                                   : "did you mean '" + nearest.str() + "'?");
      } else {
        problem = "--tap=" + tap + ": " + problem;
      }
      diags.error({model.file, 0, 0}, problem);
      return false;
    }
    spec::Output output;
    output.name = output.layer = tap;
    output.location = {model.file, 1, 1};
    model.outputs.push_back(output);
  }
  return true;
}

static std::optional<ModelSource> readModel(const Options &options,
                                            DiagnosticEngine &diags) {
  ModelSource source;
  const std::string &path = options.model;
  bool random = options.hasRandomWeights();
  if (!random)
    source.checkpointPath = options.weights;
  if (StringRef(path).ends_with(".mlir")) {
    source.file = readSourceFile(path, diags);
    if (!source.file)
      return std::nullopt;
    if (!options.taps.empty()) {
      diags.error(atFile(path), "--tap needs a description; in an .mlir file "
                                "the entry's results are the outputs");
      return std::nullopt;
    }
    return source;
  }
  if (!sys::fs::exists(path)) {
    diags.error(atFile(path), "no such file or folder; expected a model "
                              "description (.json), a Hugging Face folder or "
                              "an .mlir file");
    return std::nullopt;
  }
  if (isHuggingFacePath(path)) {
    std::optional<ImportedModel> imported =
        importHuggingFace(path, diags, source.checkpointPath);
    if (!imported)
      return std::nullopt;
    source.model = std::move(imported->model);
    if (!random)
      source.checkpointPath = imported->checkpointPath;
    source.tokenizerPath = imported->tokenizerPath;
    source.folder = imported->folder;
  } else {
    std::shared_ptr<const SourceFile> file = readSourceFile(path, diags);
    if (!file)
      return std::nullopt;
    if (StringRef(file->text)
            .starts_with("\x7f"
                         "ELF")) {
      diags.error(atFile(path), "is a compiled binary, not a model; run it "
                                "itself, or use 'attune inspect'");
      return std::nullopt;
    }
    source.model = spec::parse(file, diags);
    if (!source.model)
      return std::nullopt;
  }
  source.file = source.model->file;
  if (!addTaps(*source.model, options, diags))
    return std::nullopt;
  if (options.dtype)
    source.model->dtype = *options.dtype;
  return source;
}

std::optional<ModelSource> driver::openModel(const Options &options,
                                             DiagnosticEngine &diags) {
  if (!options.weights.empty() && !options.hasRandomWeights() &&
      !sys::fs::exists(options.weights)) {
    diags.error(atFile(options.weights),
                "no such file or folder; --weights names a safetensors file, "
                "an index or a folder, or is 'random'");
    return std::nullopt;
  }
  std::optional<ModelSource> source = readModel(options, diags);
  if (!source)
    return std::nullopt;
  if (!options.tokenizer.empty())
    source->tokenizerPath = options.tokenizer;
  for (StringRef place : {StringRef(options.weights), StringRef(options.model)})
    if (source->tokenizerPath.empty())
      source->tokenizerPath = findTokenizerFile(place.str());
  bool talks = options.verb == Verb::Compile ||
               options.verb == Verb::Generate || options.verb == Verb::Chat;
  if (talks && !source->tokenizerPath.empty()) {
    const std::string &file =
        options.verb == Verb::Chat       ? options.chat.chat.file
        : options.verb == Verb::Generate ? options.generate.messages.file
                                         : options.chatTemplate;
    std::optional<std::string> chat =
        readChatTemplate(source->tokenizerPath, file, diags);
    if (!chat)
      return std::nullopt;
    source->chatJson = std::move(*chat);
  }
  return source;
}
