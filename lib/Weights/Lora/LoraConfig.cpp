//===- LoraConfig.cpp - adapter_config.json of PEFT -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LoraConfig.h"

#include "attune/Spec/Json.h"

#include <cctype>
#include <cmath>

namespace attune {

using spec::Value;

/// Patterns are regular expressions for PEFT, but what they name are modules:
/// "^" at the start makes a name a whole one.
static bool fits(const std::string &pattern, const std::string &module) {
  bool whole = pattern[0] == '^';
  std::string_view name = std::string_view(pattern).substr(whole);
  if (whole || module.size() <= name.size())
    return module == name;
  size_t start = module.size() - name.size();
  return module[start - 1] == '.' &&
         module.compare(start, name.size(), name) == 0;
}

static double lookUp(const LoraConfig::Patterns &patterns,
                     const std::string &module, double otherwise) {
  for (const auto &[pattern, value] : patterns)
    if (fits(pattern, module))
      return value;
  return otherwise;
}

int64_t LoraConfig::rankOf(const std::string &module) const {
  return static_cast<int64_t>(lookUp(ranks, module, rank));
}

double LoraConfig::scaleOf(const std::string &module) const {
  double size = lookUp(ranks, module, rank);
  return lookUp(alphas, module, alpha) / (rootOfRank ? std::sqrt(size) : size);
}

namespace {
class Reader {
public:
  Reader(const Value &root, spec::Reporter &reporter)
      : root(root), reporter(reporter) {}

  LoraConfig read();

private:
  const Value *get(const char *key) const {
    const Value *value = root.find(key);
    return value && value->kind != Value::Kind::Null ? value : nullptr;
  }
  void error(const Value &value, const std::string &path,
             const std::string &what) {
    reporter.error(value.offset, "/" + path, what);
  }
  bool flag(const char *key) {
    const Value *value = get(key);
    if (value && value->kind != Value::Kind::Boolean)
      error(*value, key,
            std::string("expected true or false, found ") +
                spec::describe(value->kind));
    return value && value->boolean;
  }
  void refuseFlag(const char *key, const char *what) {
    if (flag(key))
      error(*get(key), key, what);
  }
  void refuse(const char *key, const char *what) {
    const Value *value = get(key);
    bool empty = value && (value->isArray() || value->isObject()) &&
                 value->elements.empty() && value->members.empty();
    if (value && !empty)
      error(*value, key, what);
  }
  double number(const Value &value, const std::string &path, bool isRank);
  LoraConfig::Patterns patterns(const char *key, bool areRanks);

  const Value &root;
  spec::Reporter &reporter;
};
} // namespace

double Reader::number(const Value &value, const std::string &path,
                      bool isRank) {
  bool good = isRank ? value.kind == Value::Kind::Integer &&
                           value.integer >= 1 && value.integer <= (1 << 20)
                     : value.isNumber() && std::isfinite(value.real);
  if (!good)
    error(value, path,
          isRank ? "expected an integer from 1 to 1048576"
                 : "expected a number");
  return good ? value.real : 1;
}

LoraConfig::Patterns Reader::patterns(const char *key, bool areRanks) {
  LoraConfig::Patterns result;
  const Value *value = get(key);
  if (value && !value->isObject())
    error(*value, key,
          std::string("expected an object, found ") +
              spec::describe(value->kind));
  if (!value)
    return result;
  for (const Value::Member &member : value->members) {
    std::string path = std::string(key) + "/" + member.key, name;
    bool plain = !member.key.empty() && member.key != "^";
    for (size_t i = 0; i < member.key.size(); ++i) {
      unsigned char c = static_cast<unsigned char>(member.key[i]);
      bool escapes = c == '\\' && member.key.compare(i, 2, "\\.") == 0;
      plain = plain && (std::isalnum(c) || c == '_' || c == '.' || c == '-' ||
                        escapes || (c == '^' && i == 0));
      if (!escapes)
        name += static_cast<char>(c);
    }
    if (!plain)
      error(member.value, path,
            "is a regular expression, which is not read; names of modules are");
    result.emplace_back(name, number(member.value, path, areRanks));
  }
  return result;
}

LoraConfig Reader::read() {
  LoraConfig config;
  const Value *type = get("peft_type");
  if (!type || !type->isString() || type->text != "LORA")
    error(type ? *type : root, "peft_type",
          "expected \"LORA\"; adapters of other types are not read");
  if (const Value *value = get("r"))
    config.rank = number(*value, "r", /*isRank=*/true);
  if (const Value *value = get("lora_alpha"))
    config.alpha = number(*value, "lora_alpha", /*isRank=*/false);
  config.ranks = patterns("rank_pattern", /*areRanks=*/true);
  config.alphas = patterns("alpha_pattern", /*areRanks=*/false);
  config.rootOfRank = flag("use_rslora");
  config.magnitudes = flag("use_dora");
  config.transposed = flag("fan_in_fan_out");
  refuseFlag("lora_bias", "biases of B are not read");
  refuseFlag("use_qalora", "adapters of pooled inputs (QALoRA) cannot be "
                           "merged into weights");
  refuse("layer_replication", "layers that stand for several are not read");
  refuse("target_parameters", "adapters of parameters that are no modules are "
                              "not read");
  refuse("trainable_token_indices", "trained tokens beside a table are not "
                                    "read");
  refuse("alora_invocation_tokens", "adapters that tokens turn on cannot be "
                                    "merged into weights");
  if (const Value *start = get("init_lora_weights");
      start && start->isString() &&
      (start->text.rfind("pissa", 0) == 0 || start->text == "olora" ||
       start->text == "corda" || start->text == "loftq"))
    error(*start, "init_lora_weights",
          "'" + start->text +
              "' changes the base's weights, too; save the adapter as one of "
              "the unchanged base (path_initial_model_for_weight_conversion)");
  return config;
}

std::optional<LoraConfig> readLoraConfig(const std::string &path,
                                         DiagnosticEngine &diags) {
  auto file = readSourceFile(path, diags);
  if (!file)
    return std::nullopt;
  spec::LineTable lines(file);
  spec::Reporter reporter(lines, diags);
  std::optional<Value> root =
      spec::parseJson(*file, reporter, spec::JsonDialect::Python);
  if (root && !root->isObject())
    reporter.error(root->offset, "",
                   std::string("expected an object, found ") +
                       spec::describe(root->kind));
  if (!root || reporter.getNumErrors())
    return std::nullopt;
  LoraConfig config = Reader(*root, reporter).read();
  if (reporter.getNumErrors())
    return std::nullopt;
  return config;
}

} // namespace attune
