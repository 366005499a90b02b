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
          {"sparsity", number(),
           "gated: of the gate is taken what leaves this share of a normal "
           "distribution of its mean and deviation below 0, and what is "
           "negative becomes 0; default 0, which takes nothing"},
          {"xielu", boolean(),
           "in place of 'activation', not gated: xIELU, whose two sides have a "
           "learned number each; default false"},
          {"adapter_rank", integer(1),
           "in 'memory', gated: add products of two thin matrices to the gate "
           "and what it multiplies; default none"},
      },
      {},
      {}};
  return type;
}

const ObjectType &memoryType() {
  static const ObjectType type{
      "memory",
      "A transformer beside a state space (Zamba2): the block's attention "
      "reads "
      "the stream and its embedding side by side, a feed-forward layer the "
      "attention; the state space reads the sum of the stream and that, "
      "projected.",
      {
          {"ffn", object(ffnType()), "the feed-forward layer", true},
      },
      {},
      {}};
  return type;
}

const ObjectType &alternatingType() {
  static const ObjectType type{
      "alternating",
      "Alternating updates of a stream that is several copies of its channels "
      "(Gemma 3n).",
      {
          {"copies", integer(2, 64), "how many", true},
          {"active", integer(0), "the one that is computed; default 0"},
          {"inputs", integer(1),
           "channels that the block reads of layer_inputs; default none"},
          {"activation", activation(),
           "of the gate of these inputs; default gelu_tanh"},
          {"scaled", boolean(),
           "the computed copy is scaled, channel by channel, before that "
           "gate; default true"},
          {"clip", positive(),
           "limit the weights that correct the copies to [-clip, clip]"},
      },
      {},
      {}};
  return type;
}

const ObjectType &layerInputsType() {
  static const ObjectType type{
      "layer_inputs",
      "A second embedding of the ids, of which each block reads channels of "
      "its own.",
      {
          {"vocab", integer(1), "rows of the table", true},
          {"width", integer(1), "channels for each block", true},
          {"blocks", integer(1), "how many blocks read them", true},
          {"scale", number(),
           "multiplies what is projected from the stream; default 1"},
          {"table_scale", number(), "multiplies the table's rows; default 1"},
          {"norm", object(normType()),
           "of what is projected, block by block; default an rms_norm"},
      },
      {},
      {}};
  return type;
}

static ObjectType copiesType(const char *name, const char *doc) {
  return {name,
          doc,
          {
              {"copies", integer(2, 64), "how many", true},
              {"eps", positive(),
               "bounds mean squares of projected copies below; default 1e-5"},
          },
          {},
          {}};
}

const ObjectType &spreadType() {
  static const ObjectType type =
      copiesType("spread", "The stream and projected copies of it, as large as "
                           "it is, side by side.");
  return type;
}

const ObjectType &uniteType() {
  static const ObjectType type =
      copiesType("unite", "The mean of copies, of which all but the first are "
                          "projected and made as large as that.");
  return type;
}

const ObjectType &jointType() {
  static const ObjectType type{
      "joint",
      "Tokens of two kinds, which 'concat' put one behind the other: all "
      "attend "
      "to all, but each kind has its own weights.",
      {
          {"part", integer(0, 1),
           "which of the two parts has the weights joint.*, the other one "
           "those "
           "of the block",
           true},
          {"keys_only", boolean(),
           "this part gives keys and values alone and leaves the block as it "
           "came; default false"},
          {"second_attention", boolean(),
           "the block's own part has another attention beside the joint one, "
           "of "
           "its tokens alone; default false"},
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
          {"memory", object(memoryType()),
           "pre-norm: the attention is part of a transformer that mamba reads, "
           "too"},
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
           "pre-norm: shift, scale and gate of each sublayer; parallel: one of "
           "each"},
          {"joint", object(jointType()),
           "modulated: tokens of two kinds with their own weights"},
          {"shared_out", boolean(),
           "parallel: one matrix of what attention and ffn give, side by side; "
           "default false"},
          {"alternating", object(alternatingType()),
           "peri: the stream is several copies of the channels, of which the "
           "block computes one and predicts the others"},
          {"laurel", integer(1),
           "peri: rank of two matrices that the attention's input goes "
           "through beside it"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
