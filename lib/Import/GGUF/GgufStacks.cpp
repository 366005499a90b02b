//===- GgufStacks.cpp - Gemma 3n and T5 in GGUF -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Keys of architectures whose blocks are not one stack of equal ones: copies of
// the stream in Gemma 3n, an encoder and a decoder in T5.
//
//===----------------------------------------------------------------------===//

#include "GgufWriter.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>

namespace attune::gguf {

/// 0, after an error, if the file has no such matrix.
int64_t Writer::rowsOf(const char *tensor) {
  const CheckpointTensor *found = file.findTensor(tensor);
  if (found && found->shape.size() == 2)
    return found->shape[0];
  diags.error(atPath(file.path()), "tensor '" + std::string(tensor) + "' is " +
                                       (found ? "no matrix" : "missing"));
  failed = true;
  return 0;
}

void Writer::putGemma3n() {
  put("laurel_rank", rowsOf("blk.0.laurel_l.weight"));
  put("vocab_size_per_layer_input", rowsOf("per_layer_token_embd.weight"));
  put("hidden_size_per_layer_input", size("embedding_length_per_layer_input"));
  put("altup_num_inputs", size("altup.num_inputs"));
  put("altup_active_idx", count("altup.active_idx"));
  // The first files leave out that 20 layers have keys of their own.
  put("num_kv_shared_layers", file.find(full("attention.shared_kv_layers"))
                                  ? count("attention.shared_kv_layers")
                                  : std::max<int64_t>(layers - 20, 0));
  put("rope_local_base_freq", spell(number("rope.freq_base_swa", 10000)));
  put("final_logit_softcapping", spell(number("final_logit_softcapping", 30)));
  const std::string widths = full("feed_forward_length");
  if (std::optional<std::vector<double>> list = file.numbers(widths);
      list && std::adjacent_find(list->begin(), list->end(),
                                 std::not_equal_to<>()) != list->end())
    return fail(widths, "expected the same for all layers");
  // Files have what the deviation is multiplied by to get the threshold: minus
  // infinity for a share of 0.
  const std::string key = full("activation_sparsity_scale");
  const Value *scales = file.find(key);
  if (!scales)
    return;
  if (!scales->isArray() || scales->element != Kind::F32 ||
      scales->count < static_cast<uint64_t>(layers))
    return fail(key, "expected a number of f32 for each of the " +
                         std::to_string(layers) + " layers");
  std::string shares;
  for (int64_t i = 0; i < layers; ++i) {
    float scale;
    std::memcpy(&scale, scales->data + 4 * i, 4);
    double share = std::erfc(-double(scale) / std::sqrt(2.0)) / 2;
    if (!(share < 1))
      return fail(key, "expected numbers whose share is below 1");
    shares += (i ? ", " : "") + spell(share);
  }
  put("activation_sparsity_pattern", "[" + shares + "]");
}

/// Distances up to 128 have buckets, which no key says.
void Writer::putT5() {
  bool decodes = std::string_view(family.name) == "t5";
  put("num_decoder_layers",
      decodes ? size("decoder_block_count", layers) : layers);
  put("d_kv", headDim);
  put("d_ff", size("feed_forward_length"));
  put("relative_attention_num_buckets",
      size("attention.relative_buckets_count"));
  put("feed_forward_proj",
      quoted(file.findTensor("enc.blk.0.ffn_gate.weight") ? "gated-gelu"
                                                          : "relu"));
  int64_t start = count("decoder_start_token_id");
  if (decodes)
    putAlways("decoder_start_token_id", std::to_string(start));
}

} // namespace attune::gguf
