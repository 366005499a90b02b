//===- MoESchema.cpp - Tables of experts and latent attention ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &routerType() {
  static const ObjectType type{
      "router",
      "How the experts of a token are chosen and weighted.",
      {
          {"scores", choice({"softmax", "sigmoid", "sparse_mixer"}),
           "of all experts, of each on its own, or of each chosen one its "
           "share among those near it that were not chosen before; default "
           "softmax"},
          {"softmax_after", boolean(),
           "softmax over the chosen experts only; default false"},
          {"select_bias", boolean(),
           "a bias on the scores that counts for the choice only; default "
           "false"},
          {"logit_bias", boolean(),
           "a bias on the logits that scores are made of; default false"},
          {"groups", integer(1),
           "equal runs of experts, of which only some are used; default 1"},
          {"active_groups", integer(1), "groups used; default groups"},
          {"group_score", choice({"max", "top_two"}),
           "a group is as good as its best expert, or the sum of its best "
           "two; default max"},
          {"renormalise", boolean(),
           "weights of a token sum to 1; default false"},
          {"eps", number(),
           "added to their sum; of sparse_mixer: a logit is near another one "
           "if it is below by no more than twice this share of the larger "
           "size; default 0"},
          {"scale", number(), "multiplies the weights; default 1"},
      },
      {},
      {}};
  return type;
}

const ObjectType &sharedExpertType() {
  static const ObjectType type{
      "shared_expert",
      "A feed-forward layer beside the experts, for every token.",
      {
          {"width", integer(1), "hidden channels", true},
          {"gate", boolean(),
           "times the sigmoid of a number made of the token; default false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &moeType() {
  static const ObjectType type{
      "moe",
      "Mixture of experts: each token goes through the few feed-forward layers "
      "that a router chooses, and their results are weighted and summed.",
      {
          {"experts", integer(1, 65536), "how many there are", true},
          {"active", integer(1), "how many each token goes through", true},
          {"width", integer(1), "hidden channels of each", true},
          {"activation", activation(), "default silu"},
          {"gated", boolean(), "default true"},
          {"bias", boolean(),
           "on every projection of the experts, not of the shared one; default "
           "false"},
          {"limit", positive(),
           "gated: the gate is cut off above this before its activation, its "
           "partner on both sides; default none"},
          {"up_offset", number(),
           "gated: added to the gate's partner; default 0"},
          {"scale_input", boolean(),
           "the score of the one active expert multiplies what it reads, not "
           "what it gives; default false"},
          {"router", object(routerType()), "default a plain softmax"},
          {"shared", object(sharedExpertType()), "default none"},
      },
      {},
      {}};
  return type;
}

const ObjectType &keyIndexType() {
  static const ObjectType type{
      "key_index",
      "Which keys a query of latent attention sees (DeepSeek-V3.2): those with "
      "the largest sums, over small heads, of a share times relu(q k).",
      {
          {"heads", integer(1), "small heads", true},
          {"head_dim", integer(1), "their channels", true},
          {"top", integer(1), "keys that a query sees", true},
          {"interleaved", boolean(),
           "turned channels are pairs of neighbours; default false"},
          {"norm", object(normType()),
           "of the keys of the index; default a layer_norm with eps 1e-6"},
      },
      {},
      {}};
  return type;
}

const ObjectType &latentType() {
  static const ObjectType type{
      "latent",
      "Latent attention: keys and values are made of one compressed row per "
      "token, all that a cache keeps, and of one turned key that the heads "
      "share.",
      {
          {"rank", integer(1), "channels of the compressed row", true},
          {"query_rank", integer(1),
           "queries are compressed to so many channels, too; default not"},
          {"shared", integer(1),
           "without 'rope': channels of the key that heads share, which does "
           "not turn"},
          {"norm", object(normType()),
           "of compressed rows; default an rms_norm"},
          {"index", object(keyIndexType()),
           "which keys a query sees; default all"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
