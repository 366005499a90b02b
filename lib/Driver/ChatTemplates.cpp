//===- ChatTemplates.cpp - The chat template of a model folder --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ChatTemplates.h"

#include "attune/Import/Gguf.h"
#include "attune/Runtime/ChatTemplate.h"
#include "attune/Weights/GgufFile.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace attune;
using namespace attune::driver;
using runtime::JsonValue;

namespace {
class Reader {
public:
  Reader(llvm::StringRef folder, DiagnosticEngine &diags)
      : folder(folder), diags(diags) {}

  bool read(const std::string &file);
  /// The same of a GGUF file's keys.
  bool readGguf(const std::string &path, const std::string &file);
  bool hasTemplate() const { return found || !named.empty(); }
  std::string toJson() const;

private:
  std::string inFolder(llvm::StringRef name) const {
    llvm::SmallString<128> path(folder);
    llvm::sys::path::append(path, name);
    return path.str().str();
  }
  bool readJson(const std::string &path, JsonValue &root);
  bool readConfig();
  bool readNamed(const std::string &path, const JsonValue &list);
  bool readFile(const std::string &path, llvm::StringRef name);
  bool readFolder(llvm::StringRef name);
  bool take(const std::string &text, const std::string &place,
            llvm::StringRef name);
  void takeTokens(const JsonValue &config);
  void takeTekken();

  std::string folder;
  DiagnosticEngine &diags;
  bool found = false;
  bool withTemplates = true; ///< of the folder
  std::string chosen;
  std::vector<std::pair<std::string, std::string>> named;
  std::vector<std::pair<std::string, std::string>> tokens;
};
} // namespace

/// Reports what is wrong with a template at its place in it. `place` names the
/// text: a file, or a member of one.
bool Reader::take(const std::string &text, const std::string &place,
                  llvm::StringRef name) {
  runtime::TemplateProblem problem;
  if (!runtime::ChatTemplate::parse(text, problem)) {
    auto source = std::make_shared<SourceFile>();
    source->path = place;
    source->text = text;
    diags.error({source, problem.line, problem.column},
                "the chat template is wrong: " + problem.message);
    return false;
  }
  if (name == "default" && !found) {
    found = true;
    chosen = text;
  } else if (name != "default" && llvm::none_of(named, [&](const auto &other) {
               return other.first == name;
             })) {
    named.emplace_back(name.str(), text);
  }
  return true;
}

bool Reader::readFile(const std::string &path, llvm::StringRef name) {
  auto file = readSourceFile(path, diags);
  return file && take(file->text, path, name);
}

bool Reader::readJson(const std::string &path, JsonValue &root) {
  auto file = readSourceFile(path, diags);
  if (!file)
    return false;
  runtime::JsonLimits limits;
  limits.uniqueKeys = false;
  std::string problem;
  if (parseJson(file->text, root, problem, limits) && root.isObject())
    return true;
  if (problem.empty())
    problem = std::string("expected an object, found ") + root.kindName();
  diags.error({file, 0, 0}, "is not a JSON object: " + problem);
  return false;
}

/// [{"name": "default", "template": "..."}, ...]
bool Reader::readNamed(const std::string &path, const JsonValue &list) {
  for (const JsonValue &item : list.items) {
    const JsonValue *name = item.find("name"), *text = item.find("template");
    if (!name || !name->isString() || !text || !text->isString()) {
      auto source = std::make_shared<SourceFile>();
      source->path = path;
      diags.error({source, 0, 0},
                  "chat_template: expected a list of {\"name\": ..., "
                  "\"template\": ...}");
      return false;
    }
    if (!take(text->string, path + " (chat_template " + name->string + ")",
              name->string))
      return false;
  }
  return true;
}

/// A token is a text, or an object that holds the text as "content".
void Reader::takeTokens(const JsonValue &config) {
  static const llvm::StringRef names[] = {"bos_token", "eos_token", "unk_token",
                                          "sep_token", "pad_token", "cls_token",
                                          "mask_token"};
  for (llvm::StringRef name : names) {
    const JsonValue *value = config.find({name.data(), name.size()});
    if (value && value->isObject())
      value = value->find("content");
    bool known = llvm::any_of(
        tokens, [&](const auto &token) { return token.first == name; });
    if (value && value->isString() && !known)
      tokens.emplace_back(name.str(), value->string);
  }
}

/// Mistral's own file has its tokens under these names.
void Reader::takeTekken() {
  if (!llvm::sys::fs::exists(inFolder("tekken.json")))
    return;
  JsonValue names;
  names.kind = JsonValue::Kind::Object;
  for (auto [name, text] : {std::pair("bos_token", "<s>"),
                            {"eos_token", "</s>"},
                            {"unk_token", "<unk>"},
                            {"pad_token", "<pad>"}}) {
    names.keys.emplace_back(name);
    names.items.emplace_back().kind = JsonValue::Kind::String;
    names.items.back().string = text;
  }
  takeTokens(names);
}

bool Reader::readConfig() {
  for (const char *name : {"tokenizer_config.json", "special_tokens_map.json",
                           "chat_template.json"}) {
    std::string path = inFolder(name);
    JsonValue root;
    if (!llvm::sys::fs::exists(path))
      continue;
    if (!readJson(path, root))
      return false;
    takeTokens(root);
    const JsonValue *text = root.find("chat_template");
    if (!withTemplates || !text || text->isNull())
      continue;
    if (text->isArray()) {
      if (!readNamed(path, *text))
        return false;
    } else if (!text->isString()) {
      auto source = std::make_shared<SourceFile>();
      source->path = path;
      diags.error({source, 0, 0},
                  std::string("chat_template: expected a string or a list of "
                              "named templates, found ") +
                      text->kindName());
      return false;
    } else if (!take(text->string, path + " (chat_template)", "default")) {
      return false;
    }
  }
  takeTekken();
  return true;
}

bool Reader::readFolder(llvm::StringRef name) {
  std::error_code problem;
  std::vector<std::string> paths;
  for (llvm::sys::fs::directory_iterator at(inFolder(name), problem), end;
       at != end && !problem; at.increment(problem))
    if (llvm::StringRef(at->path()).ends_with(".jinja"))
      paths.push_back(at->path());
  llvm::sort(paths);
  for (const std::string &path : paths)
    if (!readFile(path, llvm::sys::path::stem(path)))
      return false;
  return true;
}

bool Reader::read(const std::string &file) {
  if (!file.empty()) {
    withTemplates = false;
    return readFile(file, "default") && readConfig();
  }
  std::string own = inFolder("chat_template.jinja");
  if (llvm::sys::fs::exists(own) && !readFile(own, "default"))
    return false;
  return readConfig() && readFolder("additional_chat_templates") &&
         readFolder("chat_templates");
}

bool Reader::readGguf(const std::string &path, const std::string &file) {
  std::optional<GgufChat> chat = readGgufChat(path, diags);
  if (!chat)
    return false;
  tokens = std::move(chat->tokens);
  if (!file.empty())
    return readFile(file, "default");
  return chat->text.empty() ||
         take(chat->text, path + " (tokenizer.chat_template)", "default");
}

std::string Reader::toJson() const {
  llvm::json::Object words;
  for (const auto &[name, text] : tokens)
    words[name] = text;
  llvm::json::Object others;
  for (const auto &[name, text] : named)
    others[name] = text;
  std::string out;
  llvm::raw_string_ostream(out)
      << llvm::json::Value(llvm::json::Object{{"template", chosen},
                                              {"named", std::move(others)},
                                              {"tokens", std::move(words)}});
  return out;
}

std::optional<std::string>
driver::readChatTemplate(const std::string &tokenizerPath,
                         const std::string &file, DiagnosticEngine &diags) {
  Reader reader(llvm::sys::path::parent_path(tokenizerPath), diags);
  bool good = isGgufFile(tokenizerPath) ? reader.readGguf(tokenizerPath, file)
                                        : reader.read(file);
  if (!good)
    return std::nullopt;
  return reader.hasTemplate() ? reader.toJson() : std::string();
}
