//===- MoE.cpp - Experts and latent attention -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

namespace attune::spec {

Router LayerParser::parseRouter(const Object &object, Known experts,
                                Known active) {
  Router router;
  router.scores = object.choice("scores", RouterScores::Softmax);
  router.softmaxAfter = object.boolean("softmax_after", false);
  router.selectBias = object.boolean("select_bias", false);
  router.logitBias = object.boolean("logit_bias", false);
  Known groups = object.integer("groups", 1);
  Known activeGroups = object.integer("active_groups", groups);
  router.groups = groups.value_or(1);
  router.activeGroups = activeGroups.value_or(1);
  router.groupScore = object.choice("group_score", GroupScore::Max);
  router.renormalise = object.boolean("renormalise", false);
  router.eps = object.number("eps", 0);
  router.scale = object.number("scale", 1);

  bool mixes = router.scores == RouterScores::SparseMixer;
  if (router.softmaxAfter && router.scores != RouterScores::Softmax)
    object.error("softmax_after", "belongs to softmax scores");
  if (router.eps < 0)
    object.error("eps", "expected 0 or more");
  for (const char *key : {"select_bias", "renormalise", "active_groups"})
    if (mixes && object.has(key))
      object.error(key, "has no meaning for sparse_mixer scores");
  if (!router.renormalise && !mixes && object.has("eps"))
    object.error("eps", "is added to the sum that 'renormalise' divides by");
  if (experts && groups && *experts % *groups != 0)
    object.error("groups", std::to_string(*experts) +
                               " experts cannot be divided into " +
                               std::to_string(*groups) + " equal groups");
  else if (groups && activeGroups && *activeGroups > *groups)
    object.error("active_groups", std::to_string(*activeGroups) +
                                      " is more than the " +
                                      std::to_string(*groups) + " groups");
  else if (experts && groups && activeGroups)
    checkGroups(object, router, *experts, active);
  return router;
}

/// Whether the groups of `router`, which divide the experts, make sense.
void LayerParser::checkGroups(const Object &object, const Router &router,
                              int64_t experts, Known active) {
  int64_t size = experts / router.groups;
  if (active && *active <= experts && *active > size * router.activeGroups)
    object.error("active_groups", std::to_string(router.activeGroups) +
                                      " groups of " + std::to_string(size) +
                                      " experts are fewer than the " +
                                      std::to_string(*active) + " active ones");
  if (router.groupScore == GroupScore::TopTwo && size < 2)
    object.error("group_score", "groups of one expert have no best two");
  if (router.softmaxAfter && router.activeGroups < router.groups)
    object.error("softmax_after",
                 "groups are chosen by scores over all experts");
}

MoE LayerParser::parseMoE(const Object &object) {
  MoE moe;
  moe.location = object.getLocation();
  Known experts = object.integer("experts", std::nullopt);
  Known active = object.integer("active", std::nullopt);
  moe.experts = experts.value_or(1);
  moe.active = active.value_or(1);
  moe.width = object.integer("width", std::nullopt).value_or(0);
  moe.activation = object.choice("activation", Activation::Silu);
  moe.gated = object.boolean("gated", true);
  moe.bias = object.boolean("bias", false);
  if (object.get("limit"))
    moe.limit = object.number("limit", 1);
  moe.upOffset = object.number("up_offset", 0);
  moe.scaleInput = object.boolean("scale_input", false);
  if (moe.scaleInput && active && *active != 1)
    object.error("scale_input",
                 "is for one active expert, not " + std::to_string(*active));
  for (const char *key : {"limit", "up_offset"})
    if (!moe.gated && object.has(key))
      object.error(key, "is for gated experts");
  if (experts && active && *active > *experts)
    object.error("active", std::to_string(*active) + " is more than the " +
                               std::to_string(*experts) + " experts");
  if (auto router = object.object("router"))
    moe.router = parseRouter(*router, experts, active);
  if (auto shared = object.object("shared")) {
    SharedExpert expert;
    expert.width = shared->integer("width", std::nullopt).value_or(0);
    expert.gate = shared->boolean("gate", false);
    moe.shared = expert;
    for (const char *key : {"limit", "up_offset"})
      if (object.has(key))
        object.error(key, "is for experts without a shared one");
  }
  return moe;
}

/// `object` is the attention; its heads, rope and biases were read.
void LayerParser::parseLatent(const Object &object, const Object &options,
                              Attention &attention) {
  Latent latent;
  latent.location = options.getLocation();
  latent.rank = options.integer("rank", std::nullopt).value_or(0);
  latent.queryRank = options.integer("query_rank", 0).value_or(0);
  latent.norm.location = latent.location;
  latent.norm.kind = NormKind::RMSNorm;
  latent.norm.bias = false;
  if (auto norm = options.object("norm"))
    latent.norm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  if (latent.norm.kind != NormKind::RMSNorm)
    options.error("norm", "compressed rows take an rms_norm");

  for (const char *key :
       {"source", "relative", "relative_bias", "qk_norm", "alibi"})
    if (object.has(key))
      object.error(key, "has no meaning for latent attention");
  if (object.has("kv_heads"))
    object.error("kv_heads", "latent attention has a key of its own for every "
                             "head, made of what is cached");
  if (!options.has("shared") && !object.has("rope"))
    object.missing("rope", "the turned channels of latent attention");
  if (options.has("shared") && object.has("rope"))
    options.error("shared", "is what 'rope' says with its 'channels'");
  int64_t turned = attention.rope ? attention.rope->channels : 0;
  if (options.has("shared"))
    turned = options.integer("shared", std::nullopt).value_or(0);
  if (!attention.rope && attention.headDim && turned >= attention.headDim)
    options.error("shared", "leaves nothing of the " +
                                std::to_string(attention.headDim) +
                                " channels of a head");
  if (attention.rope && attention.headDim && turned >= attention.headDim)
    object.error("rope", "turns all " + std::to_string(attention.headDim) +
                             " channels of a head; latent attention needs "
                             "fewer 'channels'");
  latent.nopeDim = attention.headDim - turned;
  if (auto index = options.object("index"))
    latent.index = parseKeyIndex(object, *index, latent, turned);
  attention.latent = latent;
}

/// `object` is the attention, of which `turned` channels turn.
KeyIndex LayerParser::parseKeyIndex(const Object &object, const Object &options,
                                    const Latent &latent, int64_t turned) {
  KeyIndex index;
  index.location = options.getLocation();
  index.heads = options.integer("heads", std::nullopt).value_or(1);
  index.headDim = options.integer("head_dim", std::nullopt).value_or(1);
  index.top = options.integer("top", std::nullopt).value_or(1);
  index.interleaved = options.boolean("interleaved", false);
  index.norm.location = index.location;
  index.norm.eps = 1e-6;
  if (auto norm = options.object("norm"))
    index.norm = parseNorm(*norm, std::nullopt, NormKind::LayerNorm);
  if (!latent.queryRank)
    options.error("heads", "the index is asked by compressed queries, which "
                           "need a 'query_rank'");
  if (!object.has("rope"))
    options.error("head_dim", "the index turns as the attention does, which "
                              "has no 'rope'");
  else if (options.has("head_dim") && index.headDim < turned)
    options.error("head_dim",
                  std::to_string(index.headDim) + " is less than the " +
                      std::to_string(turned) + " channels that turn");
  for (const char *key : {"window", "softcap", "block_sparse", "lse", "fusion"})
    if (object.has(key))
      object.error(key, "is about all keys, of which 'index' leaves some");
  return index;
}

} // namespace attune::spec
