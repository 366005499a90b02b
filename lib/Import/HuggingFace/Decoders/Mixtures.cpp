//===- Mixtures.cpp - Shared by mixtures of experts -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

#include <algorithm>
#include <map>

namespace attune::hf {

using namespace spec;

void ignoreRouterKeys(Config &config) {
  config.ignore({"output_router_logits", "router_aux_loss_coef",
                 "router_jitter_noise", "aux_loss_alpha", "seq_aux",
                 "pretraining_tp", "ep_size", "ep_group"});
}

void checkExperts(Config &config, const char *activeKey, int64_t active,
                  const char *expertsKey, int64_t experts) {
  if (active > experts)
    config.error(activeKey, std::to_string(active) + " is more than the " +
                                std::to_string(experts) + " experts (" +
                                expertsKey + ")");
}

MoE readLocalExperts(Config &config, int64_t experts, int64_t active) {
  MoE moe;
  moe.location = config.locate("num_local_experts");
  moe.experts = config.integer("num_local_experts", experts);
  moe.active = config.integer("num_experts_per_tok", active);
  checkExperts(config, "num_experts_per_tok", moe.active, "num_local_experts",
               moe.experts);
  return moe;
}

void readSigmoidRouter(Config &config, Router &router) {
  if (config.text("topk_method", "noaux_tc") != "noaux_tc")
    config.error("topk_method", "expected \"noaux_tc\"");
  if (config.text("scoring_func", "sigmoid") != "sigmoid")
    config.error("scoring_func", "expected \"sigmoid\"");
  router.scores = RouterScores::Sigmoid;
  router.selectBias = true;
  if (router.groups > 1)
    router.groupScore = GroupScore::TopTwo;
}

/// Whether groups divide the experts, and that there are enough of both.
static void checkRouter(Config &config, const char *expertsKey, MoE &moe) {
  Router &router = moe.router;
  if (router.renormalise)
    router.eps = 1e-20;
  checkExperts(config, "num_experts_per_tok", moe.active, expertsKey,
               moe.experts);
  if (moe.experts % router.groups)
    config.error("n_group", std::to_string(moe.experts) +
                                " experts cannot be divided into " +
                                std::to_string(router.groups) + " groups");
  else if (router.activeGroups > router.groups)
    config.error("topk_group", std::to_string(router.activeGroups) +
                                   " is more than the " +
                                   std::to_string(router.groups) + " groups");
}

void finishSigmoidRouter(Config &config, const char *expertsKey, MoE &moe) {
  readSigmoidRouter(config, moe.router);
  checkRouter(config, expertsKey, moe);
}

MoE readRoutedExperts(Config &config, const ExpertDefaults &defaults,
                      void (*readRouter)(Config &, Router &)) {
  MoE moe;
  moe.location = config.locate("n_routed_experts");
  moe.experts = config.integer("n_routed_experts", defaults.count);
  moe.active = config.integer("num_experts_per_tok", defaults.active);
  moe.width = config.integer("moe_intermediate_size", defaults.width);
  if (int64_t shared = config.get("n_shared_experts")
                           ? config.integer("n_shared_experts", std::nullopt)
                       : config.isNull("n_shared_experts")
                           ? 0
                           : defaults.shared.value_or(0))
    moe.shared = SharedExpert{shared * moe.width, /*gate=*/false};
  Router &router = moe.router;
  router.groups = config.integer("n_group", defaults.groups);
  router.activeGroups = config.integer("topk_group", defaults.activeGroups);
  router.renormalise = config.flag("norm_topk_prob", defaults.renormalise) &&
                       (moe.active > 1 || !defaults.oneIsLeft);
  router.scale = config.real("routed_scaling_factor", defaults.scale);
  readRouter(config, router);
  checkRouter(config, "n_routed_experts", moe);
  return moe;
}

std::set<int64_t> readDenseLayers(Config &config) {
  std::set<int64_t> layers;
  const Value *list = config.get("mlp_only_layers");
  if (!list)
    return layers;
  if (!list->isArray())
    config.error("mlp_only_layers", "expected an array of layer numbers");
  for (const Value &number : list->elements) {
    if (number.kind != Value::Kind::Integer || number.integer < 0)
      config.error("mlp_only_layers", "expected layer numbers from 0 on");
    layers.insert(number.integer);
  }
  return layers;
}

TensorNames blockSparseTensors() {
  return {{"moe.router", "block_sparse_moe.gate"},
          {"moe.experts.{e}.gate", "block_sparse_moe.experts.{e}.w1"},
          {"moe.experts.{e}.up", "block_sparse_moe.experts.{e}.w3"},
          {"moe.experts.{e}.down", "block_sparse_moe.experts.{e}.w2"}};
}

TensorNames mixtureTensors(const char *shared) {
  // Tables keep pointers; the two names of shared experts are known.
  bool plural = std::string_view(shared) == "shared_experts";
  return {{"moe.router", "mlp.gate"},
          {"moe.router.bias", "mlp.gate.e_score_correction_bias"},
          {"moe.experts.{e}.gate", "mlp.experts.{e}.gate_proj"},
          {"moe.experts.{e}.up", "mlp.experts.{e}.up_proj"},
          {"moe.experts.{e}.down", "mlp.experts.{e}.down_proj"},
          {"moe.shared.gate", plural ? "mlp.shared_experts.gate_proj"
                                     : "mlp.shared_expert.gate_proj"},
          {"moe.shared.up",
           plural ? "mlp.shared_experts.up_proj" : "mlp.shared_expert.up_proj"},
          {"moe.shared.down", plural ? "mlp.shared_experts.down_proj"
                                     : "mlp.shared_expert.down_proj"},
          {"moe.shared_gate", "mlp.shared_expert_gate"}};
}

const Value *readKinds(Config &config, const char *key, int64_t layers,
                       std::initializer_list<const char *> words) {
  const Value *list = config.get(key);
  if (!list)
    return nullptr;
  bool good = list->isArray() && list->elements.size() == size_t(layers);
  std::string expected;
  for (const char *word : words)
    expected += (expected.empty() ? "" : " or ") + quote(word);
  for (size_t i = 0; good && i < list->elements.size(); ++i) {
    const Value &item = list->elements[i];
    good = item.isString() &&
           std::find(words.begin(), words.end(), item.text) != words.end();
  }
  if (!good)
    config.error(key, "expected " + expected + " for each of the " +
                          std::to_string(layers) + " layers");
  return good ? list : nullptr;
}

std::function<bool(int64_t)> readSparseLayers(Config &config, int64_t layers,
                                              int64_t dense) {
  const Value *kinds =
      readKinds(config, "mlp_layer_types", layers, {"dense", "sparse"});
  return [=](int64_t layer) {
    return kinds ? kinds->elements[size_t(layer)].text == "sparse"
                 : layer >= dense;
  };
}

void makeSparse(LlamaConfig &llama, const MoE &mixture,
                const std::function<bool(int64_t)> &isSparse) {
  std::vector<Block> before = llama.kinds;
  std::vector<size_t> kindBefore = llama.kindOf;
  if (before.empty()) {
    before = {llama.block};
    kindBefore.assign(static_cast<size_t>(llama.layers), 0);
  }
  llama.kinds.clear();
  llama.kindOf.clear();
  // In the order of their first layer.
  std::map<std::pair<size_t, bool>, size_t> numbers;
  for (int64_t i = 0; i < llama.layers; ++i) {
    size_t was = kindBefore[static_cast<size_t>(i)];
    auto [entry, isNew] =
        numbers.emplace(std::pair(was, isSparse(i)), llama.kinds.size());
    llama.kindOf.push_back(entry->second);
    if (!isNew)
      continue;
    Block &kind = llama.kinds.emplace_back(before[was]);
    if (entry->first.second) {
      kind.ffn.reset();
      kind.moe = mixture;
    }
  }
}

Model buildMixture(ImportContext &context, LlamaConfig llama,
                   const MoE &mixture,
                   const std::function<bool(int64_t)> &isSparse) {
  makeSparse(llama, mixture, isSparse);
  return buildLlama(context, llama);
}

} // namespace attune::hf
