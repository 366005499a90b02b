//===- GgufKeys.cpp - Keys of a GGUF file that nothing reads ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GgufWriter.h"

#include "attune/Import/Gguf.h"

#include <algorithm>
#include <cmath>

namespace attune::gguf {

/// Behind "ARCHITECTURE.": what is said for the reader's information, by other
/// keys, by tensors, or for pooling: readGgufPooling().
static constexpr const char *kOfNoConsequence[] = {
    "attention.layer_norm_epsilon",
    "attention.sliding_window",
    "attention.temperature_length",
    "classifier.output_labels",
    "expert_feed_forward_length",
    "expert_shared_feed_forward_length",
    "expert_used_count",
    "pooling_type",
    "rope.dimension_count",
    "rope.scaling.finetuned",
    "tensor_data_layout",
    "vocab_size",
};
/// What changes numbers wherever it is set.
static constexpr const char *kChanging[] = {
    "attention.clamp_kqv",
    "attention.compress_ratios",
    "attention.indexer.head_count",
    "attention.key_length_swa",
    "attention.max_alibi_bias",
    "attention.output_scale",
    "attention.recurrent_layers",
    "attention.scale",
    "attention.shared_kv_layers",
    "attention.temperature_scale",
    "attention.value_length_swa",
    "attention.value_scale",
    "attn_logit_softcapping",
    "embedding_scale",
    "expert_count",
    "expert_group_scale",
    "final_logit_softcapping",
    "full_attention_interval",
    "hyper_connection.count",
    "logit_scale",
    "moe_every_n_layers",
    "num_loops",
    "residual_scale",
    "rope.dimension_count_swa",
    "rope.dimension_sections",
    "rope.freq_base_swa",
    "rope.scaling.alpha",
    "rope.scaling.yarn_attn_factor",
    "rope.scaling.yarn_ext_factor",
    "router_logit_softcapping",
    "ssm.dt_b_c_rms",
    "swiglu_clamp_exp",
    "swiglu_clamp_shexp",
    "swin_norm",
    "use_parallel_residual",
};

template <size_t N>
static bool isOne(const char *const (&names)[N], std::string_view key) {
  return std::find(std::begin(names), std::end(names), key) != std::end(names);
}

/// Whether the value is none, or what holds without the key.
bool Writer::changesNothing(const std::string &name,
                            std::string_view key) const {
  if (std::optional<std::string_view> word = file.text(name))
    return word->empty() || *word == "none";
  if (std::optional<bool> flag = file.flag(name))
    return !*flag;
  if (std::optional<std::vector<double>> list = file.numbers(name))
    return std::all_of(list->begin(), list->end(),
                       [](double each) { return each == 0; });
  const Value *value = file.find(name);
  if (value->isArray())
    return value->count == 0;
  double found = file.real(name).value_or(
      static_cast<double>(file.integer(name).value_or(1)));
  auto is = [&](double expected) {
    return std::fabs(found - expected) <= 1e-6 * std::fabs(expected);
  };
  auto same = [&](const char *other) {
    std::string as = std::string(family.name) + "." + other;
    return file.real(as) ? is(*file.real(as))
                         : file.integer(as) && is(double(*file.integer(as)));
  };
  if (found == 0)
    return true;
  if (key == "attention.scale")
    return headDim && is(1 / std::sqrt(double(headDim)));
  if (key == "attention.max_alibi_bias")
    return std::string_view(family.name) == "bloom" && is(8);
  if (key == "rope.freq_base_swa")
    return file.find(std::string(family.name) + ".rope.freq_base")
               ? same("rope.freq_base")
               : is(10000);
  if (key == "rope.dimension_count_swa")
    return same("rope.dimension_count");
  if (key == "attention.key_length_swa" || key == "attention.value_length_swa")
    return is(double(headDim));
  bool isFactor = key.find("scale") != std::string_view::npos ||
                  key.find("factor") != std::string_view::npos ||
                  key == "num_loops";
  return isFactor && is(1);
}

void Writer::checkKeys() {
  std::string_view name = family.name;
  bool encodes = name == "bert" || name == "nomic-bert" || name == "t5encoder";
  bool causal = file.flag(full("attention.causal")).value_or(!encodes);
  if (causal == encodes)
    fail(full("attention.causal"), std::string("expected ") +
                                       (encodes ? "false" : "true") + ", as " +
                                       type + " has it");
  const std::string prefix = std::string(name) + ".";
  for (const auto &[each, value] : file.allKeys()) {
    if (each.compare(0, prefix.size(), prefix) != 0 || asked.count(each))
      continue;
    std::string_view key = std::string_view(each).substr(prefix.size());
    if (isOne(kOfNoConsequence, key) || changesNothing(each, key))
      continue;
    if (isOne(kChanging, key))
      fail(each, "changes numbers, and is not supported for " + type);
    else
      diags.warning(atPath(file.path()),
                    "key '" + each.substr(0, 200) + "' at byte " +
                        std::to_string(value.offset) +
                        " is not read; if it changes numbers, these differ");
  }
}

} // namespace attune::gguf

namespace attune {

std::optional<std::string> readGgufPooling(const std::string &path,
                                           DiagnosticEngine &diags) {
  std::optional<gguf::File> file = gguf::openFile(path, diags);
  if (!file)
    return std::nullopt;
  const std::string key =
      std::string(file->text("general.architecture").value_or("")) +
      ".pooling_type";
  const gguf::Value *value = file->find(key);
  std::optional<int64_t> found = file->integer(key);
  // None, or not said.
  if (!value || found == -1 || found == 0)
    return "";
  if (found == 4) {
    diags.warning(gguf::atPath(path),
                  "key '" + key + "' at byte " + std::to_string(value->offset) +
                      " says that the model ranks texts; what does that is not "
                      "read, and embed gives the mean of tokens");
    return "";
  }
  if (found && *found >= 1 && *found <= 3)
    return *found == 1 ? "mean" : *found == 2 ? "cls" : "last";
  gguf::failAt(*file, key,
               "expected a whole number up to 4, found " +
                   (found ? std::to_string(*found) : value->describe()),
               diags);
  return std::nullopt;
}

} // namespace attune
