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
#include <set>

namespace attune {

using spec::Value;

/// PEFT takes a pattern as a regular expression for the end of a module's name,
/// behind a dot or all of it. Those that are names are read.
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

std::optional<int64_t> LoraConfig::rankOf(const std::string &module) const {
  if (!ranksAreKnown)
    return std::nullopt;
  return static_cast<int64_t>(lookUp(ranks, module, rank));
}

double LoraConfig::scaleOf(const std::string &module, int64_t rank) const {
  double size = static_cast<double>(rank);
  return lookUp(alphas, module, alpha) / (rootOfRank ? std::sqrt(size) : size);
}

namespace {
class Reader {
public:
  Reader(const Value &root, spec::Reporter &reporter, DiagnosticEngine &diags)
      : root(root), reporter(reporter), diags(diags) {}

  LoraConfig read();

private:
  const Value *get(const char *key) const {
    const Value *value = root.find(key);
    return value && value->kind != Value::Kind::Null ? value : nullptr;
  }
  /// `pointer` without the first slash.
  void error(const Value &value, const std::string &pointer,
             const std::string &what) {
    reporter.error(value.offset, "/" + pointer, what);
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
  LoraConfig::Patterns patterns(const char *key, bool areRanks, bool &allRead);
  void refuseKinds();
  void checkUnknown();

  const Value &root;
  spec::Reporter &reporter;
  DiagnosticEngine &diags;
};
} // namespace

/// Of more, products of floats would be infinite.
static constexpr double mostAlpha = 1e9;

double Reader::number(const Value &value, const std::string &path,
                      bool isRank) {
  bool good = isRank ? value.kind == Value::Kind::Integer &&
                           value.integer >= 1 && value.integer <= (1 << 20)
                     : value.isNumber() && std::fabs(value.real) <= mostAlpha;
  if (!good)
    error(value, path,
          isRank ? "expected an integer from 1 to 1048576"
                 : "expected a number from -1e9 to 1e9");
  return good ? value.real : 1;
}

LoraConfig::Patterns Reader::patterns(const char *key, bool areRanks,
                                      bool &allRead) {
  LoraConfig::Patterns result;
  const Value *value = get(key);
  if (value && !value->isObject())
    error(*value, key,
          std::string("expected an object, found ") +
              spec::describe(value->kind));
  if (!value)
    return result;
  for (const Value::Member &member : value->members) {
    std::string path = spec::child(key, member.key), name;
    bool plain = !member.key.empty() && member.key != "^";
    for (size_t i = 0; i < member.key.size(); ++i) {
      unsigned char c = static_cast<unsigned char>(member.key[i]);
      bool escapes = c == '\\' && member.key.compare(i, 2, "\\.") == 0;
      plain = plain && (std::isalnum(c) || c == '_' || c == '.' || c == '-' ||
                        escapes || (c == '^' && i == 0));
      if (!escapes)
        name += static_cast<char>(c);
    }
    allRead &= plain;
    // The tensors themselves say their rank, but nothing else says alpha.
    if (!plain && !areRanks)
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
  bool alphasAreKnown = true;
  config.ranks =
      patterns("rank_pattern", /*areRanks=*/true, config.ranksAreKnown);
  config.alphas = patterns("alpha_pattern", /*areRanks=*/false, alphasAreKnown);
  config.rootOfRank = flag("use_rslora");
  config.magnitudes = flag("use_dora");
  config.transposed = flag("fan_in_fan_out");
  refuseKinds();
  checkUnknown();
  return config;
}

/// Kinds of adapters that are no sum of a matrix and two small ones.
void Reader::refuseKinds() {
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
  refuse("arrow_config", "adapters that a router chooses (Arrow) cannot be "
                         "merged into weights");
  const Value *start = get("init_lora_weights");
  if (start && start->isString() &&
      (start->text.rfind("pissa", 0) == 0 || start->text == "olora" ||
       start->text == "corda" || start->text == "loftq" ||
       start->text == "lora_ga"))
    error(*start, "init_lora_weights",
          "'" + start->text +
              "' changes the base's weights, too; save the adapter as one of "
              "the unchanged base (path_initial_model_for_weight_conversion)");
}

/// Keys that nobody knows: kinds of adapters are refused, the rest is said.
void Reader::checkUnknown() {
  static const std::set<std::string_view> known = {"alora_invocation_tokens",
                                                   "alpha_pattern",
                                                   "arrow_config",
                                                   "auto_mapping",
                                                   "base_model_name_or_path",
                                                   "bias",
                                                   "corda_config",
                                                   "ensure_weight_tying",
                                                   "eva_config",
                                                   "exclude_modules",
                                                   "fan_in_fan_out",
                                                   "inference_mode",
                                                   "init_lora_weights",
                                                   "layer_replication",
                                                   "layers_pattern",
                                                   "layers_to_transform",
                                                   "loftq_config",
                                                   "lora_alpha",
                                                   "lora_bias",
                                                   "lora_dropout",
                                                   "lora_ga_config",
                                                   "megatron_config",
                                                   "megatron_core",
                                                   "modules_to_save",
                                                   "peft_type",
                                                   "peft_version",
                                                   "qalora_group_size",
                                                   "r",
                                                   "rank_pattern",
                                                   "revision",
                                                   "runtime_config",
                                                   "target_modules",
                                                   "target_parameters",
                                                   "task_type",
                                                   "trainable_token_indices",
                                                   "use_dora",
                                                   "use_qalora",
                                                   "use_rslora"};
  std::string passedOver;
  size_t place = 0;
  for (const Value::Member &member : root.members) {
    const Value &value = member.value;
    bool isSet = value.kind == Value::Kind::Boolean ? value.boolean
                 : value.isNumber()
                     ? value.real != 0
                     : !value.text.empty() || !value.elements.empty() ||
                           !value.members.empty();
    if (known.count(member.key) || !isSet)
      continue;
    if (member.key.rfind("use_", 0) == 0) {
      error(value, member.key, "adapters of this kind are not read");
      continue;
    }
    place = passedOver.empty() ? member.keyOffset : place;
    passedOver += (passedOver.empty() ? "" : ", ") + spec::quote(member.key);
  }
  if (!passedOver.empty())
    diags.warning(reporter.locate(place),
                  "keys of the adapter that are not known are passed over: " +
                      passedOver);
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
  LoraConfig config = Reader(*root, reporter, diags).read();
  if (reporter.getNumErrors())
    return std::nullopt;
  return config;
}

} // namespace attune
