//===- Mamba.cpp - config.json of Mamba, 1 and 2, and Falcon Mamba *- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateSpaces.h"

namespace attune::hf {

using namespace spec;

/// What is the same for both: how weights were started, which kernels ran, how
/// residuals were stored, and what the files of the first implementation said.
static void ignoreHistory(Config &config) {
  config.ignore({"time_step_scale", "time_step_min", "time_step_max",
                 "time_step_init_scheme", "time_step_floor",
                 "rescale_prenorm_residual", "residual_in_fp32", "use_mambapy",
                 "use_falcon_mambapy", "use_associative_scan", "d_inner",
                 "d_model", "n_layer", "fused_add_norm", "rms_norm", "ssm_cfg",
                 "pad_vocab_size_multiple"});
}

static void checkActivation(Config &config) {
  std::optional<Activation> act = config.activation("hidden_act", "silu");
  if (act && *act != Activation::Silu)
    config.error("hidden_act", "state spaces with another activation than "
                               "silu are not supported");
}

/// A norm and a state space, whose errors point at `key`.
static Block startBlock(Config &config, const char *key) {
  Block body;
  body.norm.kind = NormKind::RMSNorm;
  body.norm.bias = false;
  body.norm.eps = config.real("layer_norm_epsilon", 1e-5);
  body.norm.location = config.locate("layer_norm_epsilon");
  body.mamba.emplace().location = config.locate(key);
  return body;
}

static std::optional<Model> importBlocks(ImportContext &context,
                                         const char *name, bool falcon) {
  Config &config = context.config;
  const std::string prefix =
      context.prefixFor("backbone.", "embeddings.weight");
  int64_t width = config.integer("hidden_size", 768);
  int64_t vocab = config.integer("vocab_size", 50280);
  int64_t layers = config.layers("num_hidden_layers", 32);
  Block body = startBlock(config, "state_size");
  Mamba &mamba = *body.mamba;
  mamba.states = config.integer("state_size", 16, 256);
  mamba.kernel = config.integer("conv_kernel", 4, 256);
  double expanded = config.real("expand", 2) * static_cast<double>(width);
  mamba.inner =
      config.integer("intermediate_size", static_cast<int64_t>(expanded));
  const Value *rank = config.peek("time_step_rank");
  if (rank && rank->isString() && rank->text == "auto")
    config.ignore({"time_step_rank"});
  else
    mamba.rank = config.integer("time_step_rank", (width + 15) / 16);
  if (!mamba.rank)
    mamba.rank = (width + 15) / 16;
  // The default of the class has changed once; the file knows better.
  bool hasBias =
      context.checkpoint &&
      context.checkpoint->find(prefix + "layers.0.mixer.in_proj.bias");
  mamba.bias = config.flag("use_bias", hasBias);
  mamba.convBias = config.flag("use_conv_bias", true);
  if (falcon) {
    Norm &norm = mamba.norm.emplace(body.norm);
    norm.scale = false;
    norm.eps = config.real("mixer_rms_eps", 1e-6);
    norm.location = config.locate("mixer_rms_eps");
  }
  checkActivation(config);
  bool tied = config.flag("tie_word_embeddings", true);
  ignoreHistory(config);
  if (config.hasErrors())
    return std::nullopt;

  Model model;
  model.name = name;
  StreamBuilder stream(config, prefix);
  stream.embedding("embeddings", vocab, width);
  stream.blocks("layers.{i}", "num_hidden_layers", layers, body,
                {{"norm1", "norm"},
                 {"mamba.in_proj", "mixer.in_proj"},
                 {"mamba.conv1d", "mixer.conv1d"},
                 {"mamba.x_proj", "mixer.x_proj"},
                 {"mamba.dt_proj", "mixer.dt_proj"},
                 {"mamba.A_log", "mixer.A_log"},
                 {"mamba.D", "mixer.D"},
                 {"mamba.out_proj", "mixer.out_proj"}});
  stream.norm("norm_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embeddings" : "");
  model.streams.push_back(stream.take());
  return model;
}

std::optional<Model> importMamba2(ImportContext &context) {
  Config &config = context.config;
  int64_t width = config.integer("hidden_size", 4096);
  int64_t vocab = config.integer("vocab_size", 32768);
  int64_t layers = config.layers("num_hidden_layers", 64);
  Block body = startBlock(config, "num_heads");
  Mamba &mamba = *body.mamba;
  mamba.heads = config.integer("num_heads", 128);
  mamba.groups = config.integer("n_groups", 8);
  mamba.states = config.integer("state_size", 128, 256);
  mamba.kernel = config.integer("conv_kernel", 4, 256);
  mamba.inner = static_cast<int64_t>(config.real("expand", 2) *
                                     static_cast<double>(width));
  mamba.convBias = config.flag("use_conv_bias", true);
  // Norms the gated result whatever "rms_norm" says.
  mamba.outNorm = body.norm;
  if (config.integer("head_dim", 64) * mamba.heads != mamba.inner)
    config.error("head_dim", std::to_string(mamba.heads) +
                                 " heads of this width are not the " +
                                 std::to_string(mamba.inner) +
                                 " channels of the state space");
  checkGroups(config, "n_groups", mamba);
  config.mustBeFalse("use_bias", "biases of a state space's projections are "
                                 "not supported");
  checkStepLimit(config);
  checkActivation(config);
  bool tied = config.flag("tie_word_embeddings", false);
  ignoreHistory(config);
  // The tokens that a kernel takes at a time; others the class does not use.
  config.ignore({"chunk_size", "time_step_rank", "norm_before_gate"});
  if (config.hasErrors())
    return std::nullopt;

  Model model;
  model.name = "mamba2";
  StreamBuilder stream(config,
                       context.prefixFor("backbone.", "embeddings.weight"));
  stream.embedding("embeddings", vocab, width);
  stream.blocks("layers.{i}", "num_hidden_layers", {body},
                std::vector<size_t>(layers, 0),
                {{"norm1", "norm"},
                 {"mamba.conv1d", "mixer.conv1d"},
                 {"mamba.A_log", "mixer.A_log"},
                 {"mamba.D", "mixer.D"},
                 {"mamba.norm", "mixer.norm"},
                 {"mamba.out_proj", "mixer.out_proj"}},
                headWeights(mamba, "mixer."));
  stream.norm("norm_f", body.norm);
  if (context.languageModel)
    stream.head("lm_head", vocab, tied ? "embeddings" : "");
  model.streams.push_back(stream.take());
  return model;
}

std::optional<Model> importMamba(ImportContext &context) {
  return importBlocks(context, "mamba", /*falcon=*/false);
}

std::optional<Model> importFalconMamba(ImportContext &context) {
  return importBlocks(context, "falcon_mamba", /*falcon=*/true);
}

} // namespace attune::hf
