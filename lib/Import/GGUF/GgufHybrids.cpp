//===- GgufHybrids.cpp - Recurrence beside attention ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of architectures some of whose layers have a state space, a convolution
// or a delta rule.
//
//===----------------------------------------------------------------------===//

#include "GgufWriter.h"

namespace attune::gguf {

/// A list with a word for each layer.
void Writer::putKinds(const char *key, const std::vector<double> &attends,
                      const char *attention, const char *other) {
  std::string types;
  for (int64_t i = 0; i < layers; ++i)
    types += (i ? ", " : "") +
             quoted(attends[static_cast<size_t>(i)] > 0 ? attention : other);
  put(key, "[" + types + "]");
}

/// Files have a number of heads of keys for each layer: 0 where none attend.
std::optional<std::vector<double>> Writer::headsByLayer() {
  std::string key = full("attention.head_count_kv");
  std::optional<std::vector<double>> heads = file.numbers(key);
  if (heads && heads->size() >= static_cast<size_t>(layers))
    return heads;
  fail(key, "expected a number for each of the " + std::to_string(layers) +
                " layers, 0 for those without attention");
  return std::nullopt;
}

void Writer::putConvolutions() {
  if (std::string_view(family.name) == "lfm2" &&
      count("attention.sliding_window"))
    fail(full("attention.sliding_window"),
         "expected none: windows of such layers are not supported");
  putFlag("block_auto_adjust_ff_dim", false);
  put("conv_L_cache", size("shortconv.l_cache"));
  if (auto heads = headsByLayer())
    putKinds("layer_types", *heads, "full_attention", "conv");
}

/// Granite 4. Its files use the key of tuned positions for whether there are
/// any.
void Writer::putGraniteHybrid() {
  auto heads = headsByLayer();
  if (!heads)
    return;
  putKinds("layer_types", *heads, "attention", "mamba");
  bool turns = file.flag(full("rope.scaling.finetuned")).value_or(true);
  put("position_embedding_type", quoted(turns ? "rope" : "nope"));
  int64_t inner = size("ssm.inner_size"),
          scanHeads = size("ssm.time_step_rank");
  if (inner % width || inner % scanHeads)
    return fail(full("ssm.inner_size"),
                "expected a multiple of the width, " + std::to_string(width) +
                    ", and of the heads, " + std::to_string(scanHeads) +
                    ", found " + std::to_string(inner));
  put("mamba_expand", inner / width);
  put("mamba_n_heads", scanHeads);
  put("mamba_d_head", inner / scanHeads);
  put("mamba_n_groups", size("ssm.group_count"));
  put("mamba_d_state", size("ssm.state_size"));
  put("mamba_d_conv", size("ssm.conv_kernel"));
  if (count("expert_count"))
    return;
  put("num_local_experts", int64_t(0));
  put("shared_intermediate_size", largest("feed_forward_length", {}));
}

/// State spaces beside attention, in every layer. Files have the factors of the
/// class in their matrices.
void Writer::putFalconH1() {
  int64_t inner = size("ssm.inner_size"), heads = size("ssm.time_step_rank");
  if (inner % heads)
    return fail(full("ssm.time_step_rank"),
                "expected a divisor of " + std::to_string(inner) + ", found " +
                    std::to_string(heads));
  put("mamba_d_ssm", inner);
  put("mamba_n_heads", heads);
  put("mamba_d_head", inner / heads);
  put("mamba_n_groups", size("ssm.group_count"));
  put("mamba_d_state", size("ssm.state_size"));
  put("mamba_d_conv", size("ssm.conv_kernel"));
  putFlag("mamba_conv_bias", has("ssm_conv1d.bias"));
  putFlag("mamba_rms_norm", has("ssm_norm.weight"));
  putFlag("mamba_norm_before_gate", false);
}

/// Layers of one sublayer each: those without heads of keys are feed-forward
/// layers if these have a length, and else state spaces.
void Writer::putNemotronH() {
  auto heads = headsByLayer();
  std::string key = full("feed_forward_length");
  std::optional<std::vector<double>> feeds = file.numbers(key);
  if (!heads)
    return;
  if (!feeds || feeds->size() < static_cast<size_t>(layers))
    return fail(key, "expected a number for each of the " +
                         std::to_string(layers) +
                         " layers, 0 for those without a feed-forward layer");
  std::string types;
  for (size_t i = 0; i < static_cast<size_t>(layers); ++i)
    types += (i ? ", " : "") + quoted((*heads)[i] > 0         ? "attention"
                                      : (*feeds)[i] == 0      ? "mamba"
                                      : count("expert_count") ? "moe"
                                                              : "mlp");
  put("layers_block_type", "[" + types + "]");
  int64_t inner = size("ssm.inner_size"), count = size("ssm.time_step_rank");
  if (inner % count)
    return fail(full("ssm.time_step_rank"),
                "expected a divisor of " + std::to_string(inner) + ", found " +
                    std::to_string(count));
  put("mamba_num_heads", count);
  put("mamba_head_dim", inner / count);
  put("n_groups", size("ssm.group_count"));
  put("ssm_state_size", size("ssm.state_size"));
  put("conv_kernel", size("ssm.conv_kernel"));
  if (this->count("expert_count"))
    put("moe_shared_expert_intermediate_size",
        size("expert_shared_feed_forward_length"));
  if (this->count("moe_latent_size"))
    fail(full("moe_latent_size"), "expected none: experts of another width "
                                  "than the stream's are not supported");
}

/// Qwen3-Next and Qwen3.5.
void Writer::putDeltaRules() {
  int64_t inner = size("ssm.inner_size"), heads = size("ssm.time_step_rank"),
          keys = size("ssm.group_count");
  if (inner % heads || heads % keys)
    return fail(full("ssm.time_step_rank"),
                "expected a number that divides " + std::to_string(inner) +
                    " and is divided by " + std::to_string(keys) + ", found " +
                    std::to_string(heads));
  put("linear_num_value_heads", heads);
  put("linear_num_key_heads", keys);
  put("linear_key_head_dim", size("ssm.state_size"));
  put("linear_value_head_dim", inner / heads);
  put("linear_conv_kernel_dim", size("ssm.conv_kernel"));
  std::string key = full("attention.recurrent_layers");
  std::vector<double> attends;
  if (std::optional<std::vector<double>> recurs = file.numbers(key))
    for (double each : *recurs)
      attends.push_back(each == 0);
  else if (file.find(key))
    return fail(key, "expected a list with a value for each layer");
  int64_t interval = size("full_attention_interval", 4);
  for (int64_t i = 0; i < layers && !file.find(key); ++i)
    attends.push_back((i + 1) % interval == 0);
  if (attends.size() < static_cast<size_t>(layers))
    return fail(key, "expected a value for each of the " +
                         std::to_string(layers) + " layers, found " +
                         std::to_string(attends.size()));
  putKinds("layer_types", attends, "full_attention", "linear_attention");
  // The three positions of a text's token are one and the same.
  full("rope.dimension_sections");
}

} // namespace attune::gguf
