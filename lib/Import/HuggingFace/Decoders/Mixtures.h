//===- Mixtures.h - Shared by mixtures of experts ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_MIXTURES_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_MIXTURES_H

#include "LlamaFamily.h"

#include <functional>
#include <set>

namespace attune::hf {

/// Training and logging keys of routers.
void ignoreRouterKeys(Config &config);

/// Checks that `active` experts can be chosen out of `experts`.
void checkExperts(Config &config, const char *activeKey, int64_t active,
                  const char *expertsKey, int64_t experts);

/// How many experts there are and how many of them a token goes through, where
/// the keys are num_local_experts and num_experts_per_tok; or these many.
spec::MoE readLocalExperts(Config &config, int64_t experts, int64_t active);

/// What a configuration class takes for absent keys of experts.
struct ExpertDefaults {
  int64_t width = 0;
  std::optional<int64_t> count, active, shared;
  int64_t groups = 1, activeGroups = 1;
  bool renormalise = false;
  /// A token's only expert is left as it is, not renormalised to 1.
  bool oneIsLeft = true;
  double scale = 1;
};

/// A list with a word for each layer; null without one or after an error.
const spec::Value *readKinds(Config &config, const char *key, int64_t layers,
                             std::initializer_list<const char *> words);

/// Which layers have experts: those that "mlp_layer_types" calls "sparse", or
/// else all from number `dense` on.
std::function<bool(int64_t)> readSparseLayers(Config &config, int64_t layers,
                                              int64_t dense);

/// How DeepSeek-V3 chooses: sigmoid with a bias; groups by their best two;
/// weights are scaled, renormalised or not.
void readSigmoidRouter(Config &config, spec::Router &router);

/// The same, and checks of groups and numbers of experts, which `expertsKey`
/// counts.
void finishSigmoidRouter(Config &config, const char *expertsKey,
                         spec::MoE &moe);

/// The keys of DeepSeek's mixtures: "n_routed_experts" and so on; `readRouter`
/// says how experts are chosen.
spec::MoE readRoutedExperts(Config &config, const ExpertDefaults &defaults,
                            void (*readRouter)(Config &, spec::Router &));

/// "mlp_only_layers" of Qwen's mixtures: numbers of layers without experts.
std::set<int64_t> readDenseLayers(Config &config);

/// Names of "block_sparse_moe.gate" and its experts' w1, w2 and w3.
TensorNames blockSparseTensors();

/// Names of "mlp.gate", "mlp.experts.{e}" and the shared expert `shared`.
TensorNames mixtureTensors(const char *shared);

/// Gives `mixture` to the layers that `isSparse(i)` names, in place of the
/// feed-forward layer of their kind. Call it when `kinds` are complete.
void makeSparse(LlamaConfig &llama, const spec::MoE &mixture,
                const std::function<bool(int64_t)> &isSparse);

/// The same and the model.
spec::Model buildMixture(ImportContext &context, LlamaConfig llama,
                         const spec::MoE &mixture,
                         const std::function<bool(int64_t)> &isSparse);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_MIXTURES_H
