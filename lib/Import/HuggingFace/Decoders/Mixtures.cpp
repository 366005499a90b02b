//===- Mixtures.cpp - Shared by mixtures of experts -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

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
  // One expert is its own sum, which the published code leaves alone.
  router.renormalise =
      config.flag("norm_topk_prob", defaults.renormalise) && moe.active > 1;
  router.scale = config.real("routed_scaling_factor", defaults.scale);
  readRouter(config, router);
  if (router.renormalise)
    router.eps = 1e-20;
  checkExperts(config, "num_experts_per_tok", moe.active, "n_routed_experts",
               moe.experts);
  if (moe.experts % router.groups)
    config.error("n_group", std::to_string(moe.experts) +
                                " experts cannot be divided into " +
                                std::to_string(router.groups) + " groups");
  else if (router.activeGroups > router.groups)
    config.error("topk_group", std::to_string(router.activeGroups) +
                                   " is more than the " +
                                   std::to_string(router.groups) + " groups");
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

Model buildMixture(ImportContext &context, const LlamaConfig &llama,
                   const MoE &mixture,
                   const std::function<bool(int64_t)> &isSparse) {
  Model model;
  model.name = llama.name;
  model.context = llama.context;
  StreamBuilder stream(context.config,
                       context.prefixFor("model.", "embed_tokens.weight"));
  stream.embedding("embed_tokens", llama.vocab, llama.width,
                   llama.embeddingScale);
  Block sparse = llama.block;
  sparse.ffn.reset();
  sparse.moe = mixture;
  for (int64_t first = 0; first < llama.layers;) {
    int64_t end = first + 1;
    while (end < llama.layers && isSparse(end) == isSparse(first))
      ++end;
    stream.blocks("layers.{i}", "num_hidden_layers",
                  {isSparse(first) ? sparse : llama.block},
                  std::vector<size_t>(static_cast<size_t>(end - first), 0),
                  llama.tensors, llama.weights, first);
    first = end;
  }
  stream.norm("norm", llama.norm);
  if (context.languageModel)
    stream.head("lm_head", llama.vocab, llama.tied ? "embed_tokens" : "");
  model.streams.push_back(stream.take());
  return model;
}

} // namespace attune::hf
