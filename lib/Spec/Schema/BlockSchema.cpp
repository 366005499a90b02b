//===- BlockSchema.cpp - Tables of blocks -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &ffnType() {
  static const ObjectType type{
      "ffn",
      "act(x W1 + b1) W2 + b2 or, gated, (act(x Wg) * (x Wu)) Wd.",
      {
          {"width", integer(1), "hidden channels", true},
          {"activation", activation(), "default gelu"},
          {"gated", boolean(), "default false"},
          {"bias", boolean(), "on every projection; default true"},
          {"shift", boolean(),
           "neither gated nor with biases: reads each token mixed with the one "
           "before, channel by channel (RWKV); default false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &blockType() {
  static const ObjectType type{
      "block",
      "Sublayers with norms and residual connections: attention, mamba, "
      "short_conv, delta_rule or time_mix, then cross-attention, then ffn or "
      "moe, each if given.",
      {
          {"placement", choice({"pre", "post", "peri", "parallel", "branch"}),
           "norms before each sublayer, after each residual sum, before and "
           "after each sublayer, before sublayers that run side by side, or "
           "after each sublayer; default pre"},
          {"residual_scale", number(),
           "multiplies what each sublayer adds; default 1"},
          {"residual", choice({"input", "norm"}),
           "what a sublayer of a pre-norm block adds to: the block's stream, "
           "or its norm; default input"},
          {"input_scale", number(),
           "multiplies what sublayers of a pre-norm block add to; default 1"},
          {"layer_scale", boolean(),
           "scale what sublayers of a pre-norm block add, channel by channel, "
           "by weights; default false"},
          {"norm", object(normType()), "default a layer_norm"},
          {"attention", object(attentionType()), "self-attention"},
          {"mamba", object(mambaType()),
           "state space, beside or in place of attention"},
          {"short_conv", object(shortConvType()),
           "short convolution, in place of attention"},
          {"delta_rule", object(deltaRuleType()),
           "gated delta rule, in place of attention"},
          {"time_mix", object(timeMixType()),
           "time mixing of RWKV-7, in place of attention"},
          {"cross", object(attentionType()),
           "cross-attention to the stream 'source'"},
          {"ffn", object(ffnType()), "feed-forward"},
          {"moe", object(moeType()), "mixture of experts, in place of ffn"},
          {"modulation", object(modulationType()),
           "pre-norm: shift, scale and gate of each sublayer"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
