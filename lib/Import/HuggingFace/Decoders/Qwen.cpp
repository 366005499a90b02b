//===- Qwen.cpp - config.json of Qwen 2 and 3 -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LlamaFamily.h"

#include <algorithm>

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

/// The first Qwen. Beyond "seq_length" tokens its class changes the base of the
/// rotation and lets queries grow; up to there it does neither.
std::optional<Model> importQwen(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.inner = 22016;
  defaults.vocab = 151936;
  defaults.length = 8192;
  defaults.epsKey = "layer_norm_epsilon";
  defaults.rope.thetaKey = "rotary_emb_base";
  defaults.rope.partial = 1;
  defaults.rope.partialKey = "rotary_pct";
  std::optional<LlamaConfig> qwen = readLlama(context, "qwen", defaults);
  int64_t trained = config.integer("seq_length", 8192);
  int64_t channels = config.integer("kv_channels", 128);
  config.mustBeTrue("no_bias", "biases of all projections are not supported");
  config.mustBeTrue("scale_attn_weights", "scores that are not scaled are not "
                                          "supported");
  config.mustBeFalse("use_cache_quantization",
                     "a cache in 8 bits is asked for by --kv-cache=int8");
  config.ignore({"attn_dropout_prob", "emb_dropout_prob", "use_cache_kernel",
                 "use_dynamic_ntk", "use_logn_attn", "onnx_safe"});
  if (!qwen || config.hasErrors())
    return std::nullopt;
  if (channels != qwen->block.attention->headDim)
    config.error("kv_channels", "expected hidden_size / num_attention_heads");
  if (qwen->block.ffn->width % 2)
    config.error("intermediate_size", "counts two matrices, expected an even "
                                      "number");
  if (config.hasErrors())
    return std::nullopt;
  qwen->context = std::min(qwen->context, trained);
  qwen->block.attention->qkvBias = true;
  qwen->block.ffn->width /= 2;
  qwen->prefix = "transformer.";
  qwen->table = "wte";
  qwen->blockName = "h.{i}";
  qwen->lastNorm = "ln_f";
  qwen->tensors = {{"norm1", "ln_1"},
                   {"attention.qkv", "attn.c_attn", Layout::Blocks},
                   {"attention.o", "attn.c_proj"},
                   {"norm2", "ln_2"},
                   {"ffn.up", "mlp.w1"},
                   {"ffn.gate", "mlp.w2"},
                   {"ffn.down", "mlp.c_proj"}};
  return buildLlama(context, *qwen);
}

} // namespace attune::hf
