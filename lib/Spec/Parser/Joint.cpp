//===- Joint.cpp - Blocks of two kinds of tokens ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

/// What `second` says of a block: the attention and feed-forward layer that it
/// has twice are of the plain kinds.
void LayerParser::parseJoint(const Object &object, Block &block) {
  auto options = object.object("joint");
  if (!options)
    return;
  Joint &joint = block.joint.emplace();
  joint.location = options->getLocation();
  joint.part = options->integer("part", 0).value_or(0);
  joint.keysOnly = options->boolean("keys_only", false);
  joint.second = options->boolean("second_attention", false);
  for (const char *key : {"attention", "ffn", "modulation"})
    if (!object.has(key))
      object.missing(key, "a joint block has it");
  if (block.placement != Placement::Pre)
    object.error("joint", "belongs to pre-norm blocks");
  for (const char *key : {"mamba", "memory", "short_conv", "delta_rule",
                          "time_mix", "cross", "moe"})
    if (object.has(key))
      object.error(key, "has no place in a joint block");
  if (width && parts.size() != 2)
    object.error("joint",
                 "needs tokens of two parts, which 'concat' puts one "
                 "behind the other; there are " +
                     std::to_string(std::max<size_t>(parts.size(), 1)));
  if (auto attention = object.object("attention")) {
    for (const char *key :
         {"causal", "window", "alibi", "relative", "relative_bias",
          "query_growth", "latent", "value_norm", "keys_from", "clip",
          "block_sparse", "disentangled", "linear", "sequence_rank", "lengths",
          "sinks", "gate", "scale_by_layer"})
      if (attention->has(key))
        attention->error(key, "has no place in a joint block");
    for (const char *key : {"keys_only", "second_attention"})
      if (options->boolean(key, false) && attention->has("rope"))
        options->error(key, "has no place beside 'rope', which turns all "
                            "tokens");
    if (joint.keysOnly && block.attention &&
        block.attention->qkNormScope == NormScope::Projection)
      options->error("keys_only", "has no place beside a 'qk_norm' of whole "
                                  "projections");
  }
  if (auto ffn = object.object("ffn"))
    for (const char *key : {"shift", "sparsity", "adapter_rank"})
      if (ffn->has(key))
        ffn->error(key, "has no place in a joint block");
}

void LayerParser::parseSharedOut(const Object &object, Block &block) {
  block.sharedOut = object.boolean("shared_out", false);
  if (!block.sharedOut)
    return;
  if (block.placement != Placement::Parallel)
    object.error("shared_out", "belongs to parallel blocks");
  if (object.has("moe"))
    object.error("shared_out", "is for a feed-forward layer, not for a mixture "
                               "of experts");
  if (block.ffn && (block.ffn->gated || block.ffn->shift))
    object.error("shared_out", "is for a feed-forward layer that is not gated "
                               "and reads no other tokens");
  if (block.attention && block.attention->outBias)
    object.error("attention", "has a bias behind its heads, which 'shared_out' "
                              "leaves to the feed-forward layer; give it "
                              "\"bias\": {\"qkv\": true, \"out\": false}");
  if (block.attention && block.attention->latent)
    object.error("attention", "cannot be latent where 'shared_out' is set");
}

Unpatch LayerParser::parseUnpatch(const Object &object) {
  Known size = object.integer("size", 2);
  Unpatch unpatch{size.value_or(2)};
  if (size && width && *width &&
      (*size > *width || *width % (*size * *size) != 0))
    object.error("size", std::to_string(*width) +
                             " channels are not those of squares of " +
                             std::to_string(*size) + " x " +
                             std::to_string(*size));
  width = 0; // [batch, channels, height, width]
  grid = behindGrid = false;
  return unpatch;
}

} // namespace attune::spec
