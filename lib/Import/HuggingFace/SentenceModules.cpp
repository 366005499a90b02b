//===- SentenceModules.cpp - Dense modules of sentence-transformers -------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SentenceModules.h"
#include "JsonFile.h"

#include "attune/Import/HuggingFace/StreamBuilder.h"

#include <filesystem>

namespace fs = std::filesystem;

namespace attune::hf {

using namespace spec;

namespace {
/// A module that follows the pooling.
struct Module {
  std::string path;        ///< of a linear layer; empty: lengths become 1
  SourceLocation location; ///< in modules.json
};
} // namespace

static std::string lastPart(const std::string &type) {
  return type.substr(type.rfind('.') + 1);
}

/// What follows the pooling, up to the last linear layer: the program makes
/// lengths 1 that come last. Nothing after an error.
static std::optional<std::vector<Module>> readModules(JsonFile &file) {
  std::vector<Module> modules;
  size_t used = 0;
  if (!file.root)
    return std::nullopt;
  if (!file.root->isArray()) {
    file.reporter.error(file.root->offset, "", "expected a list of modules");
    return std::nullopt;
  }
  for (const Value &item : file.root->elements) {
    const Value *type = item.isObject() ? item.find("type") : nullptr;
    const Value *path = item.isObject() ? item.find("path") : nullptr;
    std::string name = type && type->isString() ? lastPart(type->text) : "";
    SourceLocation at = file.reporter.locate(item.offset);
    if (name == "Normalize") {
      modules.push_back({"", at});
    } else if (name == "Dense") {
      if (!path || !path->isString() || path->text.empty()) {
        file.reporter.error(item.offset, "", "expected the module's \"path\"");
        return std::nullopt;
      }
      modules.push_back({path->text, at});
      used = modules.size();
    }
  }
  modules.resize(used);
  return modules;
}

/// Where modules.json has the pooling.
static std::string poolingPath(const JsonFile &file) {
  for (const Value &item : file.root->elements) {
    const Value *type = item.isObject() ? item.find("type") : nullptr;
    const Value *path = item.isObject() ? item.find("path") : nullptr;
    if (type && type->isString() && lastPart(type->text) == "Pooling" && path &&
        path->isString())
      return path->text;
  }
  return "1_Pooling";
}

/// How tokens become one vector; the folder's other ways have no op.
static std::optional<PoolKind> readPool(const std::string &folder,
                                        DiagnosticEngine &diags) {
  auto source = readSourceFile(folder + "/config.json", diags);
  if (!source)
    return std::nullopt;
  JsonFile file(source, diags);
  if (!file.root)
    return std::nullopt;
  static const std::pair<const char *, PoolKind> modes[] = {
      {"pooling_mode_mean_tokens", PoolKind::Mean},
      {"pooling_mode_cls_token", PoolKind::First},
      {"pooling_mode_lasttoken", PoolKind::Last},
      {"pooling_mode_max_tokens", PoolKind::Max}};
  std::optional<PoolKind> kind;
  size_t count = 0;
  for (const Value::Member &member : file.root->members) {
    if (member.key.rfind("pooling_mode_", 0) != 0 || !member.value.boolean)
      continue;
    ++count;
    for (auto [name, mode] : modes)
      if (member.key == name)
        kind = mode;
  }
  if (kind && count == 1)
    return kind;
  file.reporter.error(file.root->offset, "",
                      "expected one way to pool, of the tokens' mean, their "
                      "maximum, the first or the last");
  return std::nullopt;
}

/// Appends the linear layer in `path`. Its tensors are "<path>.linear.*".
static bool addDense(const std::string &folder, const std::string &path,
                     StreamBuilder &stream, DiagnosticEngine &diags) {
  auto source = readSourceFile(folder + "/" + path + "/config.json", diags);
  if (!source)
    return false;
  JsonFile file(source, diags);
  if (!file.root)
    return false;
  KeyReport keys;
  Config config(*file.root, "", file.reporter, keys);
  Linear linear;
  int64_t width = config.integer("in_features", std::nullopt);
  linear.out = config.integer("out_features", std::nullopt);
  linear.bias = config.flag("bias", true);
  std::string function =
      config.text("activation_function", "torch.nn.modules.activation.Tanh");
  static const std::pair<const char *, Activation> functions[] = {
      {"Identity", Activation::Identity}, {"Tanh", Activation::Tanh},
      {"ReLU", Activation::Relu},         {"GELU", Activation::Gelu},
      {"SiLU", Activation::Silu},         {"Sigmoid", Activation::Sigmoid}};
  bool known = false;
  for (auto [name, activation] : functions)
    if (lastPart(function) == name) {
      linear.activation = activation;
      known = true;
    }
  if (!known)
    config.error("activation_function",
                 "expected Identity, Tanh, ReLU, GELU, SiLU or Sigmoid");
  for (const char *key : {"module_input_name", "module_output_name"})
    if (config.text(key, "sentence_embedding") != "sentence_embedding")
      config.error(key, "expected \"sentence_embedding\"");
  if (width != stream.getWidth() && !config.hasErrors())
    config.error("in_features", "expected " +
                                    std::to_string(stream.getWidth()) +
                                    ", the width of what comes before");
  config.finish("a Dense module");
  if (config.hasErrors())
    return false;
  stream.add(path + ".linear", "out_features", linear, linear.out).pooled =
      true;
  return true;
}

std::optional<bool> readsWithoutHead(const std::string &folder,
                                     DiagnosticEngine &diags) {
  std::error_code ignored;
  std::string path = folder + "/modules.json";
  if (!fs::exists(path, ignored))
    return false;
  auto source = readSourceFile(path, diags);
  if (!source)
    return std::nullopt;
  JsonFile file(source, diags);
  if (!file.root)
    return std::nullopt;
  if (!file.root->isArray() || file.root->elements.empty())
    return false;
  const Value &first = file.root->elements.front();
  const Value *type = first.isObject() ? first.find("type") : nullptr;
  if (!type || !type->isString() || lastPart(type->text) != "Transformer")
    return false;
  const Value *within = first.find("path");
  std::string place = within && within->isString() ? within->text : "";
  path = folder + "/" + (place.empty() ? "" : place + "/") +
         "sentence_bert_config.json";
  if (!fs::exists(path, ignored))
    return true;
  source = readSourceFile(path, diags);
  if (!source)
    return std::nullopt;
  JsonFile settings(source, diags);
  if (!settings.isObject())
    return std::nullopt;
  const Value *task = settings.root->find("transformer_task");
  return !task || !task->isString() || task->text != "fill-mask";
}

bool addSentenceModules(const std::string &folder, Model &model,
                        DiagnosticEngine &diags) {
  std::error_code ignored;
  const Output *tokens = nullptr;
  for (const Output &output : model.outputs)
    if (output.name == "last_hidden_state")
      tokens = &output;
  if (!tokens || !fs::exists(folder + "/modules.json", ignored))
    return true;
  auto source = readSourceFile(folder + "/modules.json", diags);
  if (!source)
    return false;
  JsonFile file(source, diags);
  std::optional<std::vector<Module>> modules = readModules(file);
  if (!modules || modules->empty())
    return modules.has_value();
  const Layer *last = findResult(model.streams, tokens->layer);
  std::optional<PoolKind> kind =
      readPool(folder + "/" + poolingPath(file), diags);
  if (!last || !kind)
    return false;
  KeyReport keys;
  Config config(*file.root, "", file.reporter, keys);
  StreamBuilder stream(config, "", last->width);
  Pool pool;
  pool.kind = *kind;
  stream.add("sentence.pool", "", pool).pooled = true;
  for (const Module &module : *modules) {
    if (module.path.empty())
      stream.add("sentence.normed", "", L2Norm{}).pooled = true;
    else if (!addDense(folder, module.path, stream, diags))
      return false;
  }
  Stream made = stream.take();
  made.name = "sentence";
  made.input = tokens->layer;
  made.location = modules->back().location;
  for (Layer &layer : made.layers)
    layer.location = made.location;
  model.outputs.push_back(
      {"sentence_embedding", made.layers.back().name, made.location});
  model.streams.push_back(std::move(made));
  return true;
}

} // namespace attune::hf
