//===- StateSpaces.cpp - Shared by models with Mamba-2 ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateSpaces.h"

namespace attune::hf {

using namespace spec;

void checkStepLimit(Config &config) {
  const Value *limit = config.get("time_step_limit");
  if (!limit)
    return;
  bool none = limit->isArray() && limit->elements.size() == 2 &&
              limit->elements[0].isNumber() && limit->elements[0].real == 0 &&
              limit->elements[1].isNumber() && limit->elements[1].real > 1e30;
  if (!none)
    config.error("time_step_limit", "expected [0.0, Infinity], no limit");
}

void checkGroups(Config &config, const char *groupsKey, const Mamba &mamba) {
  if (mamba.heads % mamba.groups)
    config.error(groupsKey, std::to_string(mamba.groups) +
                                " groups do not divide the " +
                                std::to_string(mamba.heads) + " heads");
}

/// Reports if the heads do not divide the channels, or "mamba_d_head" says
/// something else than their quotient.
static void readHeadWidth(Config &config, const Mamba &mamba) {
  if (mamba.inner % mamba.heads)
    config.error("mamba_n_heads", std::to_string(mamba.heads) +
                                      " heads do not divide the " +
                                      std::to_string(mamba.inner) +
                                      " channels of the state space");
  const Value *dim = config.peek("mamba_d_head");
  if (dim && dim->isString() && dim->text == "auto")
    config.ignore({"mamba_d_head"});
  else if (config.integer("mamba_d_head", mamba.inner / mamba.heads) *
               mamba.heads !=
           mamba.inner)
    config.error("mamba_d_head",
                 "expected " + std::to_string(mamba.inner / mamba.heads) +
                     ", the channels of the state space over its heads");
}

Mamba readHeadedStateSpace(Config &config, const LlamaConfig &llama,
                           const char *widthKey, int64_t width) {
  Mamba mamba;
  mamba.location = config.locate("mamba_n_heads");
  mamba.heads = config.integer("mamba_n_heads", 128);
  mamba.groups = config.integer("mamba_n_groups", 1);
  mamba.states = config.integer("mamba_d_state", 256, 256);
  mamba.kernel = config.integer("mamba_d_conv", 4, 256);
  mamba.inner = config.integer("mamba_expand", 2) * llama.width;
  if (widthKey && !config.isNull(widthKey))
    mamba.inner = config.integer(widthKey, width);
  readHeadWidth(config, mamba);
  checkGroups(config, "mamba_n_groups", mamba);
  mamba.convBias = config.flag("mamba_conv_bias", true);
  config.mustBeFalse("mamba_proj_bias", "biases of a state space's projections "
                                        "are not supported");
  // How many tokens a kernel takes at a time changes no number.
  config.ignore({"mamba_chunk_size"});
  return mamba;
}

WeightMap headWeights(const Mamba &mamba, const std::string &at) {
  int64_t end = mamba.inner + numConvolved(mamba);
  return {{"mamba.in_proj.weight", {{at + "in_proj.weight", false, 0, end}}},
          {"mamba.dt_proj.weight",
           {{at + "in_proj.weight", false, end, end + mamba.heads}}},
          {"mamba.dt_proj.bias", {{at + "dt_bias", false, 0, -1}}}};
}

} // namespace attune::hf
