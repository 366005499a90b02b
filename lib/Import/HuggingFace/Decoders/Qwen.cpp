//===- Qwen.cpp - config.json of Qwen 2 and 3 -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

namespace attune::hf {

using namespace spec;

/// The window counts only if "use_sliding_window" says so, and only from layer
/// "max_window_layers" on.
static void readQwenWindow(Config &config, LlamaConfig &llama,
                           const char *model) {
  bool slides = config.flag("use_sliding_window", false);
  std::optional<int64_t> window = readWindow(config, 4096);
  int64_t full = config.count("max_window_layers", 28);
  if (!slides)
    window = std::nullopt;
  if (window && llama.block.attention->causal == Causal::None)
    config.error("use_sliding_window",
                 "a window that sees tokens behind it, too (\"is_causal\": "
                 "false), is not supported");
  std::vector<std::string> types;
  for (int64_t i = 0; i < llama.layers; ++i)
    types.push_back(window && i >= full ? "sliding_attention"
                                        : "full_attention");
  slideLayers(config, llama, window, std::move(types), model);
}

static std::optional<Model> importQwen2As(ImportContext &context,
                                          const char *name) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 22016;
  defaults.kvHeads = 32;
  defaults.vocab = 151936;
  defaults.length = 32768;
  defaults.readsCausal = true;
  std::optional<LlamaConfig> llama = readLlama(context, name, defaults);
  if (!llama)
    return std::nullopt;
  readQwenWindow(config, *llama, name);
  llama->block.attention->qkvBias = true;
  for (Block &kind : llama->kinds)
    kind.attention->qkvBias = true;
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *llama);
}

std::optional<Model> importQwen2(ImportContext &context) {
  return importQwen2As(context, "qwen2");
}

/// Qwen2 with layers that predict further tokens, which are left out.
std::optional<Model> importMiMo(ImportContext &context) {
  context.config.ignore({"num_nextn_predict_layers"});
  bool bias = context.config.flag("attention_bias", true);
  if (!bias)
    context.config.error("attention_bias", "expected true");
  return importQwen2As(context, "mimo");
}

std::optional<Model> importQwen3(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 22016;
  defaults.kvHeads = 32;
  defaults.headDim = 128;
  defaults.vocab = 151936;
  defaults.length = 32768;
  defaults.readsCausal = true;
  std::optional<LlamaConfig> llama = readLlama(context, "qwen3", defaults);
  bool bias = config.flag("attention_bias", false);
  if (!llama)
    return std::nullopt;
  Attention &attention = *llama->block.attention;
  attention.qkvBias = attention.outBias = bias;
  attention.qkNorm = llama->norm;
  readQwenWindow(config, *llama, "Qwen3");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *llama);
}

} // namespace attune::hf
