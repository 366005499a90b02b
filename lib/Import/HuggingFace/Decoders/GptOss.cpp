//===- GptOss.cpp - config.json of gpt-oss ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mixtures.h"

namespace attune::hf {

using namespace spec;

/// Checkpoints keep experts in stacks [experts, in, out] or, with "mxfp4", of
/// rows in few bits, of which Checkpoint makes matrices "NAME.weight" [out,
/// in]. Rows of gate and up alternate.
static void nameExperts(ImportContext &context, LlamaConfig &gptOss,
                        const MoE &moe) {
  const Value *quantization = context.config.peek("quantization_config");
  const Value *method =
      quantization ? quantization->find("quant_method") : nullptr;
  bool packed = method && method->isString() && method->text == "mxfp4";
  auto add = [&](const std::string &role, const std::string &tensor,
                 std::optional<int64_t> first) {
    for (bool bias : {false, true}) {
      WeightSource source;
      source.tensor = "mlp.experts.{e}." + tensor +
                      (bias     ? "_bias"
                       : packed ? ".weight"
                                : "");
      source.transposed = !bias && !packed;
      if (first) {
        source.begin = *first;
        source.end = *first + 1;
        source.stride = 2;
        source.count = moe.width;
      }
      gptOss.weights["moe.experts.{e}." + role + (bias ? ".bias" : ".weight")] =
          {source};
    }
  };
  add("gate", "gate_up_proj", 0);
  add("up", "gate_up_proj", 1);
  add("down", "down_proj", std::nullopt);
}

/// Layers with a window and without take turns, all with sinks. A router with a
/// bias chooses experts by their logits, and the softmax is over the chosen
/// ones. The gate is x sigmoid(1.702 x) of what a limit leaves.
std::optional<Model> importGptOss(ImportContext &context) {
  Config &config = context.config;
  LlamaDefaults defaults;
  defaults.width = defaults.inner = 2880;
  defaults.layers = 36;
  defaults.heads = 64;
  defaults.kvHeads = 8;
  defaults.headDim = 64;
  defaults.vocab = 201088;
  defaults.length = 131072;
  defaults.eps = 1e-5;
  defaults.rope.theta = 150000;
  RopeScaling &yarn = defaults.rope.scaling.emplace();
  yarn.type = "yarn";
  yarn.factor = 32;
  yarn.originalLength = 4096;
  yarn.truncate = false;
  std::optional<LlamaConfig> model = readLlama(context, "gpt_oss", defaults);
  MoE moe = readLocalExperts(config, /*experts=*/128, /*active=*/4);
  bool bias = config.flag("attention_bias", true);
  std::optional<int64_t> window = readWindow(config, 128);
  moe.limit = config.real("swiglu_limit", 7);
  if (config.real("swiglu_alpha", 1.702) != 1.702)
    config.error("swiglu_alpha", "expected 1.702");
  ignoreRouterKeys(config);
  if (!model || config.hasErrors())
    return std::nullopt;
  if (!(*moe.limit > 0)) {
    config.error("swiglu_limit", "expected a number above 0");
    return std::nullopt;
  }
  Block &block = model->block;
  block.attention->learnedSinks = true;
  block.attention->qkvBias = block.attention->outBias = bias;
  moe.width = block.ffn->width;
  moe.activation = Activation::QuickGelu;
  moe.bias = moe.router.logitBias = moe.router.softmaxAfter = true;
  moe.upOffset = 1;
  block.ffn.reset();
  block.moe = moe;
  for (auto [role, tensor] :
       {std::pair("attention.sinks", "self_attn.sinks"),
        std::pair("moe.router.weight", "mlp.router.weight"),
        std::pair("moe.router.logit_bias", "mlp.router.bias")})
    model->tensors.push_back({role, tensor});
  nameExperts(context, *model, moe);
  std::vector<std::string> types;
  for (int64_t layer = 0; layer < model->layers; ++layer)
    types.push_back(layer % 2 ? "full_attention" : "sliding_attention");
  slideLayers(config, *model, window, types, "gpt-oss");
  if (config.hasErrors())
    return std::nullopt;
  return buildLlama(context, *model);
}

} // namespace attune::hf
