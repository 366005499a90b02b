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

namespace attune::hf {

/// Training and logging keys of routers.
void ignoreRouterKeys(Config &config);

/// Checks that `active` experts can be chosen out of `experts`.
void checkExperts(Config &config, const char *activeKey, int64_t active,
                  const char *expertsKey, int64_t experts);

/// Names of "mlp.gate", "mlp.experts.{e}" and the shared expert `shared`.
TensorNames mixtureTensors(const char *shared);

/// embed_tokens, layers, norm, lm_head, where `isSparse(i)` says which layers
/// have `mixture` in place of the feed-forward layer of `llama.block`. Runs of
/// one kind are one layer of the description each: their weights differ, so
/// they cannot take turns in one.
spec::Model buildMixture(ImportContext &context, const LlamaConfig &llama,
                         const spec::MoE &mixture,
                         const std::function<bool(int64_t)> &isSparse);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_MIXTURES_H
