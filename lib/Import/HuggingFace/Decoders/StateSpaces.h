//===- StateSpaces.h - Shared by models with Mamba-2 ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_STATESPACES_H
#define ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_STATESPACES_H

#include "LlamaFamily.h"

namespace attune::hf {

/// Reports a "time_step_limit" that cuts steps off; the published one does not.
void checkStepLimit(Config &config);

/// Reports if the state space's groups do not divide its heads.
void checkGroups(Config &config, const char *groupsKey,
                 const spec::Mamba &mamba);

/// The keys "mamba_n_heads" and so on that Granite 4 and Falcon-H1 share. It is
/// as wide as `widthKey` says, or if that is null or there is none,
/// "mamba_expand" times as wide as the stream.
spec::Mamba readHeadedStateSpace(Config &config, const LlamaConfig &llama,
                                 const char *widthKey = nullptr,
                                 int64_t width = 0);

/// Where the weights of a state space of heads are that no table can say:
/// "in_proj" holds the gate, x, B and C, and below them the steps. `at` is the
/// mixer's name with a period.
spec::WeightMap headWeights(const spec::Mamba &mamba, const std::string &at);

} // namespace attune::hf

#endif // ATTUNE_LIB_IMPORT_HUGGINGFACE_DECODERS_STATESPACES_H
