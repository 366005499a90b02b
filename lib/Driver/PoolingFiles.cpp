//===- PoolingFiles.cpp - How sentence-transformers pool --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "PoolingFiles.h"

#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"

using namespace attune;
using namespace attune::driver;

/// Nothing, without an error, if the file is not there.
static std::optional<llvm::json::Value>
readJson(const std::string &path, DiagnosticEngine &diags, bool &good) {
  if (!llvm::sys::fs::exists(path))
    return std::nullopt;
  good = false;
  auto file = readSourceFile(path, diags);
  if (!file)
    return std::nullopt;
  llvm::Expected<llvm::json::Value> value = llvm::json::parse(file->text);
  if (!value) {
    diags.error({file, 1, 1},
                "is not valid JSON: " + llvm::toString(value.takeError()));
    return std::nullopt;
  }
  good = true;
  return std::move(*value);
}

/// The texts that sentence-transformers puts in front of others.
static bool readPrompts(const std::string &folder, ProductInfo &info,
                        DiagnosticEngine &diags) {
  bool good = true;
  std::string path = folder + "/config_sentence_transformers.json";
  auto settings = readJson(path, diags, good);
  const llvm::json::Object *object =
      settings ? settings->getAsObject() : nullptr;
  if (!object)
    return good;
  auto refuse = [&](const std::string &problem) {
    auto file = std::make_shared<SourceFile>();
    file->path = path;
    diags.error({file, 0, 0}, problem);
    return false;
  };
  if (const llvm::json::Object *prompts = object->getObject("prompts"))
    for (const auto &[name, prompt] : *prompts) {
      auto text = prompt.getAsString();
      if (!text)
        return refuse("prompt '" + name.str() + "': expected a text");
      info.prompts.emplace_back(name.str(), text->str());
    }
  llvm::sort(info.prompts); // json::Object has no order
  if (auto name = object->getString("default_prompt_name")) {
    info.defaultPrompt = name->str();
    if (llvm::none_of(info.prompts, [&](const auto &prompt) {
          return prompt.first == info.defaultPrompt;
        }))
      return refuse("default_prompt_name: there is no prompt '" +
                    info.defaultPrompt + "'");
  }
  return true;
}

bool driver::readPooling(const std::string &folder, ProductInfo &info,
                         DiagnosticEngine &diags) {
  bool good = true, pools = false;
  std::string unknown, place = "1_Pooling";
  auto leaveOut = [&](llvm::StringRef what) {
    unknown += (unknown.empty() ? "" : ", ") + what.str();
  };
  if (auto modules = readJson(folder + "/modules.json", diags, good)) {
    // sentence-transformers cuts texts: there, or at the context.
    info.mostTokens = 0;
    if (const llvm::json::Array *list = modules->getAsArray())
      for (const llvm::json::Value &module : *list) {
        const llvm::json::Object *object = module.getAsObject();
        llvm::StringRef type =
            object ? object->getString("type").value_or("") : "";
        llvm::StringRef name = type.rsplit('.').second;
        if (name == "Normalize") {
          info.normalizes = true;
        } else if (name == "Dense") {
          // Part of the model, like the pooling before it.
          pools = true;
          info.normalizes = false;
        } else if (name == "Pooling") {
          place = object->getString("path").value_or(place).str();
        } else if (!name.empty() && name != "Transformer") {
          leaveOut(name);
        }
      }
  }
  if (!good)
    return false;
  // The first of these names that is there counts.
  for (llvm::StringRef model : {"bert", "roberta", "distilbert", "camembert",
                                "albert", "xlm-roberta", "xlnet"}) {
    auto settings = readJson(
        (folder + "/sentence_" + model + "_config.json").str(), diags, good);
    if (!good)
      return false;
    const llvm::json::Object *object =
        settings ? settings->getAsObject() : nullptr;
    if (!object)
      continue;
    if (auto most = object->getInteger("max_seq_length"))
      info.mostTokens = std::max<int64_t>(*most, 0);
    if (object->getBoolean("do_lower_case").value_or(false))
      leaveOut("do_lower_case");
    break;
  }
  if (!readPrompts(folder, info, diags))
    return false;
  auto config = readJson(folder + "/" + place + "/config.json", diags, good);
  if (const llvm::json::Object *object =
          config ? config->getAsObject() : nullptr) {
    static const std::pair<llvm::StringRef, const char *> modes[] = {
        {"pooling_mode_mean_tokens", "mean"},
        {"pooling_mode_cls_token", "cls"},
        {"pooling_mode_lasttoken", "last"},
        {"pooling_mode_max_tokens", "max"},
        {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt"},
        {"pooling_mode_weightedmean_tokens", "weighted"}};
    if (!info.prompts.empty() &&
        !object->getBoolean("include_prompt").value_or(true))
      leaveOut("include_prompt");
    for (auto [key, name] : modes) {
      if (pools || !object->getBoolean(key).value_or(false))
        continue;
      if (info.pooling.empty())
        info.pooling = name;
      else
        leaveOut(key);
    }
  }
  if (good && !unknown.empty())
    diags.warning({}, "embed does not have these parts of " + folder +
                          ", so that its vectors differ from those of "
                          "sentence-transformers: " +
                          unknown);
  return good;
}
