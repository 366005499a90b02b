//===- Print.cpp - A model as canonical JSON --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Print.h"
#include "Defaults.h"
#include "PrintRecurrent.h"
#include "PrintVision.h"

#include <cmath>

/// Keys come in the order of the tables in Schema.cpp. A key is left out where
/// its default says the same and no reader would miss it.
namespace attune::spec {

static Json print(const Norm &norm, bool withKind) {
  Json json = Json::object();
  if (withKind)
    json["kind"] = stringify(norm.kind);
  json["eps"] = norm.eps;
  if (!norm.scale)
    json["scale"] = false;
  if (norm.kind == NormKind::LayerNorm && !norm.bias)
    json["bias"] = false;
  if (norm.offset != 0)
    json["offset"] = norm.offset;
  return json;
}

static Json print(const RopeScaling &scaling) {
  Json json = Json::object();
  bool llama3 = scaling.type == "llama3", yarn = scaling.type == "yarn";
  bool longrope = scaling.type == "longrope";
  json["type"] = scaling.type;
  if (!longrope)
    json["factor"] = scaling.factor;
  if (llama3) {
    json["low_freq_factor"] = scaling.lowFreqFactor;
    json["high_freq_factor"] = scaling.highFreqFactor;
  }
  if (yarn) {
    json["beta_fast"] = scaling.betaFast;
    json["beta_slow"] = scaling.betaSlow;
    if (scaling.attentionFactor)
      json["attention_factor"] = *scaling.attentionFactor;
    if (!scaling.truncate)
      json["truncate"] = false;
  }
  if (longrope) {
    json["short_factors"] = scaling.shortFactors;
    json["long_factors"] = scaling.longFactors;
    if (scaling.attentionFactor)
      json["attention_factor"] = *scaling.attentionFactor;
  }
  if (llama3 || yarn || longrope || scaling.type == "dynamic")
    json["original_length"] = scaling.originalLength;
  return json;
}

static Json print(const Rope &rope, int64_t headDim) {
  Json json = Json::object();
  json["theta"] = rope.theta;
  flag(json, "interleaved", rope.interleaved);
  if (rope.channels != headDim)
    json["channels"] = rope.channels;
  if (rope.scaling.type != "none")
    json["scaling"] = print(rope.scaling);
  if (!rope.sections.pairs.empty())
    json["sections"] = rope.sections.pairs;
  flag(json, "interleaved_sections", rope.sections.interleaved);
  flag(json, "places", rope.places);
  flag(json, "alternating", rope.alternating);
  if (!rope.axes.channels.empty()) {
    Json &axes = json["axes"] = Json::object();
    axes["channels"] = rope.axes.channels;
    if (!rope.axes.inputs.empty())
      axes["inputs"] = rope.axes.inputs;
  }
  return json;
}

static Json print(const KeyIndex &index) {
  Json json = Json::object();
  json["heads"] = index.heads;
  json["head_dim"] = index.headDim;
  json["top"] = index.top;
  flag(json, "interleaved", index.interleaved);
  json["norm"] = print(index.norm, /*withKind=*/true);
  return json;
}

static Json print(const Latent &latent, const Attention &attention) {
  Json json = Json::object();
  json["rank"] = latent.rank;
  if (latent.queryRank)
    json["query_rank"] = latent.queryRank;
  if (!attention.rope)
    json["shared"] = attention.headDim - latent.nopeDim;
  json["norm"] = print(latent.norm, /*withKind=*/true);
  if (latent.index)
    json["index"] = print(*latent.index);
  return json;
}

static Json print(const BlockSparse &sparse) {
  Json json = Json::object();
  json["block"] = sparse.block;
  if (!sparse.maskInput.empty()) {
    json["mask"] = sparse.maskInput;
    return json;
  }
  json["local"] = sparse.local;
  json["global"] = sparse.global;
  return json;
}

static Json print(const Disentangled &form) {
  Json json = Json::object();
  json["span"] = form.span;
  if (form.buckets)
    json["max_distance"] = form.maxDistance;
  else
    json["buckets"] = false;
  if (!form.contentToPosition)
    json["content_to_position"] = false;
  if (!form.positionToContent)
    json["position_to_content"] = false;
  if (!form.shared)
    json["shared"] = false;
  if (form.norm)
    json["norm"] = print(*form.norm, /*withKind=*/true);
  return json;
}

static Json print(const LinearForm &linear) {
  Json json = Json::object();
  if (const auto &fading = linear.fading) {
    json["fading"] = {{"layers", fading->layers},
                      {"activation", stringify(fading->activation)},
                      {"norm", print(fading->norm, /*withKind=*/true)}};
    return json;
  }
  json["feature_map"] = stringify(linear.featureMap);
  if (linear.normalise)
    json["eps"] = linear.eps;
  else
    json["normalise"] = false;
  return json;
}

static Json print(const SequenceRank &low) {
  Json json = Json::object();
  json["rank"] = low.rank;
  json["positions"] = low.positions;
  json["shared"] = stringify(low.shared);
  flag(json, "bias", low.bias);
  return json;
}

static Json print(const Attention &attention, int64_t width) {
  Json json = Json::object();
  auto input = [&](const char *key, const std::string &name) {
    if (!name.empty())
      json[key] = name;
  };
  json["heads"] = attention.heads;
  if (attention.kvHeads != attention.heads && !attention.latent)
    json["kv_heads"] = attention.kvHeads;
  bool impliedDim = attention.projections && width != 0 &&
                    attention.heads * attention.headDim == width;
  if (!impliedDim)
    json["head_dim"] = attention.headDim;
  if (attention.valueDim != attention.headDim)
    json["value_dim"] = attention.valueDim;
  if (!attention.linear &&
      attention.scale != 1 / std::sqrt(static_cast<double>(attention.headDim)))
    json["scale"] = attention.scale;
  flag(json, "scale_by_layer", attention.scaleByLayer);
  if (attention.causal == Causal::BottomRight)
    json["causal"] = true;
  else if (attention.causal == Causal::TopLeft)
    json["causal"] = stringify(attention.causal);
  if (attention.window)
    json["window"] = *attention.window;
  if (attention.softcap)
    json["softcap"] = *attention.softcap;
  if (attention.alibiFalcon)
    json["alibi"] = "falcon";
  else if (attention.alibi)
    json["alibi"] = true;
  if (!attention.relativeSegments.empty())
    json["relative"]["segments"] = attention.relativeSegments;
  else
    flag(json, "relative", attention.relative);
  if (attention.relativeBias) {
    Json bias = Json::object();
    bias["buckets"] = attention.relativeBias->buckets;
    bias["max_distance"] = attention.relativeBias->maxDistance;
    bias["bidirectional"] = attention.relativeBias->bidirectional;
    json["relative_bias"] = std::move(bias);
  }
  if (attention.rope)
    json["rope"] = print(*attention.rope, attention.headDim);
  if (const auto &growth = attention.queryGrowth) {
    Json &by = json["query_growth"];
    by["by"] = growth->by;
    by["length"] = growth->length;
    if (growth->shift)
      by["shift"] = growth->shift;
  }
  if (attention.latent)
    json["latent"] = print(*attention.latent, attention);
  if (attention.qkNorm) {
    json["qk_norm"] = print(*attention.qkNorm, /*withKind=*/true);
    if (attention.qkNormScope != NormScope::Head)
      json["qk_norm"]["scope"] = stringify(attention.qkNormScope);
    if (attention.qkNormAfterRotary)
      json["qk_norm"]["after_rotary"] = true;
  }
  if (attention.valueNorm)
    json["value_norm"] = print(*attention.valueNorm, /*withKind=*/true);
  if (!attention.keysFrom.empty())
    json["keys_from"] = attention.keysFrom;
  if (attention.adapterRank)
    json["adapter_rank"] = attention.adapterRank;
  if (attention.clip)
    json["clip"] = *attention.clip;
  bool lacksKey = attention.qkvBias && !attention.keyBias;
  if (attention.qkvBias && attention.outBias && !lacksKey) {
    json["bias"] = true;
  } else if (attention.qkvBias || attention.outBias) {
    Json bias = Json::object();
    bias["qkv"] = attention.qkvBias;
    if (lacksKey)
      bias["key"] = false;
    bias["out"] = attention.outBias;
    json["bias"] = std::move(bias);
  }
  if (attention.blockSparse)
    json["block_sparse"] = print(*attention.blockSparse);
  if (attention.disentangled)
    json["disentangled"] = print(*attention.disentangled);
  if (attention.linear)
    json["linear"] = print(*attention.linear);
  if (attention.sequenceRank)
    json["sequence_rank"] = print(*attention.sequenceRank);
  input("lengths", attention.lengthsInput);
  if (attention.fusion != Fusion::Auto)
    json["fusion"] = stringify(attention.fusion);
  input("source", attention.source);
  input("query", attention.queryInput);
  input("key", attention.keyInput);
  input("value", attention.valueInput);
  input("mask", attention.maskInput);
  input("bias_input", attention.biasInput);
  input("slopes", attention.slopesInput);
  input("sinks", attention.sinksInput);
  flag(json, "sinks", attention.learnedSinks);
  flag(json, "gate", attention.gate);
  flag(json, "lse", attention.lse);
  return json;
}

static Json print(const FFN &ffn) {
  Json json = Json::object();
  json["width"] = ffn.width;
  if (ffn.xielu)
    json["xielu"] = true;
  else
    json["activation"] = stringify(ffn.activation);
  flag(json, "gated", ffn.gated);
  if (!ffn.bias)
    json["bias"] = false;
  flag(json, "shift", ffn.shift);
  if (ffn.sparsity != 0)
    json["sparsity"] = ffn.sparsity;
  if (ffn.adapterRank)
    json["adapter_rank"] = ffn.adapterRank;
  return json;
}

static Json print(const Router &router) {
  Json json = Json::object();
  json["scores"] = stringify(router.scores);
  flag(json, "softmax_after", router.softmaxAfter);
  flag(json, "select_bias", router.selectBias);
  flag(json, "logit_bias", router.logitBias);
  if (router.groups != 1)
    json["groups"] = router.groups;
  if (router.activeGroups != router.groups)
    json["active_groups"] = router.activeGroups;
  if (router.groupScore != GroupScore::Max)
    json["group_score"] = stringify(router.groupScore);
  flag(json, "renormalise", router.renormalise);
  if (router.eps != 0)
    json["eps"] = router.eps;
  if (router.scale != 1)
    json["scale"] = router.scale;
  return json;
}

static Json print(const MoE &moe) {
  Json json = Json::object();
  json["experts"] = moe.experts;
  json["active"] = moe.active;
  json["width"] = moe.width;
  json["activation"] = stringify(moe.activation);
  if (!moe.gated)
    json["gated"] = false;
  flag(json, "bias", moe.bias);
  if (moe.limit)
    json["limit"] = *moe.limit;
  if (moe.upOffset != 0)
    json["up_offset"] = moe.upOffset;
  flag(json, "scale_input", moe.scaleInput);
  json["router"] = print(moe.router);
  if (moe.shared) {
    Json shared = Json::object();
    shared["width"] = moe.shared->width;
    flag(shared, "gate", moe.shared->gate);
    json["shared"] = std::move(shared);
  }
  return json;
}

static Json print(const DeltaRule &rule) {
  Json json = Json::object();
  json["heads"] = rule.heads;
  json["key_heads"] = rule.keyHeads;
  json["key_dim"] = rule.keyDim;
  json["value_dim"] = rule.valueDim;
  json["kernel"] = rule.kernel;
  json["eps"] = rule.eps;
  flag(json, "channel_steps", rule.channelSteps);
  if (rule.stepRank)
    json["step_rank"] = rule.stepRank;
  if (rule.gateRank)
    json["gate_rank"] = rule.gateRank;
  if (rule.gateActivation != Activation::Silu)
    json["gate_activation"] = stringify(rule.gateActivation);
  json["norm"] = print(rule.norm, /*withKind=*/true);
  return json;
}

static Json print(const TimeMix &mix) {
  Json json = Json::object();
  json["heads"] = mix.heads;
  json["key_dim"] = mix.keyDim;
  json["value_dim"] = mix.valueDim;
  json["decay_rank"] = mix.decayRank;
  json["rate_rank"] = mix.rateRank;
  json["gate_rank"] = mix.gateRank;
  if (mix.valueRank)
    json["value_rank"] = mix.valueRank;
  json["eps"] = mix.eps;
  json["norm"] = print(mix.norm, /*withKind=*/true);
  return json;
}

static Json print(const Mamba &mamba) {
  Json json = Json::object();
  json["inner"] = mamba.inner;
  json["states"] = mamba.states;
  json["kernel"] = mamba.kernel;
  if (mamba.heads) {
    json["heads"] = mamba.heads;
    if (mamba.groups != 1)
      json["groups"] = mamba.groups;
    if (mamba.outNorm) {
      json["out_norm"] = print(*mamba.outNorm, /*withKind=*/true);
      if (mamba.outNormParts != 1)
        json["out_norm"]["parts"] = mamba.outNormParts;
    }
  } else {
    json["rank"] = mamba.rank;
  }
  flag(json, "bias", mamba.bias);
  if (!mamba.convBias)
    json["conv_bias"] = false;
  if (mamba.norm)
    json["norm"] = print(*mamba.norm, /*withKind=*/true);
  return json;
}

static Json print(const Modulation &by) {
  Json json = Json::object();
  json["source"] = by.source;
  if (by.activation != Activation::Silu)
    json["activation"] = stringify(by.activation);
  if (!by.bias)
    json["bias"] = false;
  return json;
}

static Json print(const Timestep &timestep) {
  Json json = Json::object();
  json["width"] = timestep.width;
  if (timestep.period != 10000)
    json["period"] = timestep.period;
  if (timestep.scale != 1)
    json["scale"] = timestep.scale;
  if (!timestep.cosinesFirst)
    json["cosines_first"] = false;
  if (timestep.shift)
    json["shift"] = timestep.shift;
  return json;
}

static Json print(const Alternating &alternating) {
  Json json = Json::object();
  json["copies"] = alternating.copies;
  if (alternating.active)
    json["active"] = alternating.active;
  if (alternating.inputs)
    json["inputs"] = alternating.inputs;
  if (alternating.activation != Activation::GeluTanh)
    json["activation"] = stringify(alternating.activation);
  if (!alternating.scaled)
    json["scaled"] = false;
  if (alternating.clip)
    json["clip"] = *alternating.clip;
  return json;
}

static Json print(const LayerInputs &inputs) {
  Json json = Json::object();
  json["vocab"] = inputs.vocab;
  json["width"] = inputs.width;
  json["blocks"] = inputs.blocks;
  if (inputs.scale != 1)
    json["scale"] = inputs.scale;
  if (inputs.tableScale != 1)
    json["table_scale"] = inputs.tableScale;
  json["norm"] = print(inputs.norm, /*withKind=*/true);
  return json;
}

static Json toJson(const Block &block, int64_t width) {
  Json json = Json::object();
  width = innerWidth(block, width);
  json["placement"] = stringify(block.placement);
  if (block.residualScale != 1)
    json["residual_scale"] = block.residualScale;
  if (block.residualOfNorm)
    json["residual"] = "norm";
  if (block.inputScale != 1)
    json["input_scale"] = block.inputScale;
  flag(json, "layer_scale", block.layerScale);
  json["norm"] = print(block.norm, /*withKind=*/true);
  if (block.attention)
    json["attention"] = print(*block.attention, attentionWidth(block, width));
  if (block.mamba)
    json["mamba"] = print(*block.mamba);
  if (block.memory)
    json["memory"]["ffn"] = print(block.memory->ffn);
  if (block.shortConv) {
    json["short_conv"]["kernel"] = block.shortConv->kernel;
    flag(json["short_conv"], "bias", block.shortConv->bias);
  }
  if (block.deltaRule)
    json["delta_rule"] = print(*block.deltaRule);
  if (block.timeMix)
    json["time_mix"] = print(*block.timeMix);
  if (block.cross)
    json["cross"] = print(*block.cross, width);
  if (block.ffn)
    json["ffn"] = print(*block.ffn);
  if (block.moe)
    json["moe"] = print(*block.moe);
  if (block.modulation)
    json["modulation"] = print(*block.modulation);
  if (const auto &joint = block.joint) {
    json["joint"]["part"] = joint->part;
    flag(json["joint"], "keys_only", joint->keysOnly);
    flag(json["joint"], "second_attention", joint->second);
  }
  flag(json, "shared_out", block.sharedOut);
  if (block.alternating)
    json["alternating"] = print(*block.alternating);
  if (block.laurelRank)
    json["laurel"] = block.laurelRank;
  return json;
}

static Json print(const Embedding &embedding) {
  Json json = Json::object();
  json["vocab"] = embedding.vocab;
  json["width"] = embedding.width;
  if (embedding.scale != 1)
    json["scale"] = embedding.scale;
  if (!embedding.input.empty())
    json["input"] = embedding.input;
  return json;
}

static Json print(const Positions &positions) {
  Json json = Json::object();
  json["kind"] = stringify(positions.kind);
  if (positions.kind == PositionKind::Learned && positions.dims == 1)
    json["length"] = positions.length;
  if (positions.count != PositionCount::Input)
    json["count"] = stringify(positions.count);
  if (positions.count == PositionCount::Unpadded)
    json["pad"] = positions.pad;
  if (positions.offset != 0)
    json["offset"] = positions.offset;
  flag(json, "skip_padding", positions.skipPadding);
  if (positions.kind == PositionKind::Sinusoidal)
    json["layout"] = stringify(positions.layout);
  if (positions.concat != 0)
    json["concat"] = positions.concat;
  if (positions.dims == 2)
    json["dims"] = 2;
  flag(json, "columns_first", positions.columnsFirst);
  if (!positions.grid.empty())
    json["grid"] = positions.grid;
  if (positions.interpolate != Interpolation::None)
    json["interpolate"] = stringify(positions.interpolate);
  if (!positions.shapesInput.empty())
    json["shapes"] = positions.shapesInput;
  return json;
}

static Json print(const Linear &linear) {
  Json json = Json::object();
  if (linear.tied.empty())
    json["out"] = linear.out;
  flag(json, "bias", linear.bias);
  if (linear.activation != Activation::Identity)
    json["activation"] = stringify(linear.activation);
  if (linear.scale != 1)
    json["scale"] = linear.scale;
  if (!linear.tied.empty())
    json["tied"] = linear.tied;
  if (linear.softcap)
    json["softcap"] = *linear.softcap;
  flag(json, "squeeze", linear.squeeze);
  return json;
}

static Json print(const Function &function, int64_t width) {
  Json json = Json::object();
  if (function.kind == Function::Kind::Activation)
    json["function"] = stringify(function.activation);
  flag(json, "log", function.logarithm);
  if (function.kind == Function::Kind::Rotary) {
    json["heads"] = function.heads;
    json["rope"] = print(*function.rope, width / function.heads);
  }
  return json;
}

static Json print(const WeightSource &source) {
  bool all = source.begin == 0 && source.end < 0;
  if (!source.transposed && all && source.scale == 1)
    return source.tensor;
  Json json = Json::object();
  json["tensor"] = source.tensor;
  flag(json, "transposed", source.transposed);
  if (!all)
    json["rows"] = {source.begin, source.end};
  if (source.count != 1) {
    json["every"] = source.stride;
    json["count"] = source.count;
  }
  if (source.scale != 1)
    json["scale"] = source.scale;
  return json;
}

static Json print(const Extension &extension) {
  Json json = Json::object();
  for (const auto &option : extension.options)
    std::visit([&](const auto &value) { json[option.first] = value; },
               option.second);
  return json;
}

static Json print(const Layer &layer) {
  Json json = Json::object();
  if (const auto *op = std::get_if<Embedding>(&layer.op))
    json["embedding"] = print(*op);
  else if (const auto *op = std::get_if<Positions>(&layer.op))
    json["positions"] = print(*op);
  else if (!layer.cycle.empty())
    for (const Block &block : layer.cycle)
      json["cycle"].push_back(toJson(block, layer.inputWidth));
  else if (const auto *op = std::get_if<Block>(&layer.op))
    json["block"] = toJson(*op, layer.inputWidth);
  else if (const auto *op = std::get_if<Attention>(&layer.op))
    json["attention"] = print(*op, layer.inputWidth);
  else if (const auto *op = std::get_if<FFN>(&layer.op))
    json["ffn"] = print(*op);
  else if (const auto *op = std::get_if<MoE>(&layer.op))
    json["moe"] = print(*op);
  else if (const auto *op = std::get_if<Norm>(&layer.op))
    json[stringify(op->kind)] = print(*op, /*withKind=*/false);
  else if (const auto *op = std::get_if<Linear>(&layer.op))
    json["linear"] = print(*op);
  else if (const auto *op = std::get_if<Pool>(&layer.op))
    json["pool"] = print(*op);
  else if (const auto *op = std::get_if<ClassTokens>(&layer.op))
    json["class_tokens"] = print(*op);
  else if (const auto *op = std::get_if<Slice>(&layer.op))
    json["slice"] = print(*op);
  else if (const auto *op = std::get_if<Concat>(&layer.op))
    json["concat"] = print(*op);
  else if (const auto *op = std::get_if<Conv>(&layer.op))
    json["conv"] = print(*op);
  else if (const auto *op = std::get_if<BatchNorm>(&layer.op))
    json["batch_norm"] = {{"eps", op->eps}};
  else if (const auto *op = std::get_if<InstanceNorm>(&layer.op))
    json["instance_norm"] = print(*op);
  else if (const auto *op = std::get_if<Add>(&layer.op))
    json["add"] = print(*op);
  else if (std::holds_alternative<L2Norm>(layer.op))
    json["l2_norm"] = Json::object();
  else if (const auto *op = std::get_if<Insert>(&layer.op))
    json["insert"] = print(*op);
  else if (const auto *op = std::get_if<Windows>(&layer.op))
    json["windows"]["size"] = {op->rows, op->columns};
  else if (std::holds_alternative<Whole>(layer.op))
    json["whole"] = Json::object();
  else if (const auto *op = std::get_if<Merge>(&layer.op))
    json["merge"] = print(*op);
  else if (const auto *op = std::get_if<Unpatch>(&layer.op))
    json["unpatch"] = {{"size", op->size}};
  else if (const auto *op = std::get_if<Similarity>(&layer.op))
    json["similarity"] = print(*op);
  else if (const auto *op = std::get_if<Modulate>(&layer.op))
    json["modulate"] = print(op->by);
  else if (const auto *op = std::get_if<Timestep>(&layer.op))
    json["timestep"] = print(*op);
  else if (const auto *op = std::get_if<Chunk>(&layer.op))
    json["chunk"] = {{"size", op->size}};
  else if (std::holds_alternative<SwapChunks>(layer.op))
    json["swap"] = Json::object();
  else if (std::holds_alternative<OverlapAdd>(layer.op))
    json["overlap_add"] = Json::object();
  else if (const auto *op = std::get_if<CrossEntropy>(&layer.op))
    json["cross_entropy"] = {{"targets", op->targets},
                             {"ignore_index", op->ignore}};
  else if (const auto *op = std::get_if<Function>(&layer.op))
    json[stringify(op->kind)] = print(*op, layer.inputWidth);
  else if (const auto *op = std::get_if<Recurrent>(&layer.op))
    json["recurrent"] = print(*op);
  else if (const auto *op = std::get_if<Scan>(&layer.op))
    json["scan"] = print(*op);
  else if (const auto *op = std::get_if<Mamba>(&layer.op))
    json["mamba"] = print(*op);
  else if (const auto *op = std::get_if<LayerInputs>(&layer.op))
    json["layer_inputs"] = print(*op);
  else if (const auto *op = std::get_if<Spread>(&layer.op))
    json["spread"] = {{"copies", op->copies}, {"eps", op->eps}};
  else if (const auto *op = std::get_if<Unite>(&layer.op))
    json["unite"] = {{"copies", op->copies}, {"eps", op->eps}};
  else if (const auto *op = std::get_if<Extension>(&layer.op))
    json[op->kind] = print(*op);
  json["name"] = layer.name;
  if (layer.repeat != 1)
    json["repeat"] = layer.repeat;
  if (layer.first != 0)
    json["first"] = layer.first;
  if (layer.weights.empty())
    return json;
  Json weights = Json::object();
  for (const auto &[role, sources] : layer.weights) {
    if (sources.size() == 1) {
      weights[role] = print(sources.front());
      continue;
    }
    Json list = Json::array();
    for (const WeightSource &source : sources)
      list.push_back(print(source));
    weights[role] = std::move(list);
  }
  json["weights"] = std::move(weights);
  return json;
}

Json print(const std::vector<Layer> &layers) {
  Json json = Json::array();
  for (const Layer &layer : layers)
    json.push_back(print(layer));
  return json;
}

std::string print(const Block &block, int64_t width) {
  return writeJson(toJson(block, width));
}

std::string printShared(const Layer &layer) {
  Layer one = layer;
  one.first = 0;
  one.repeat = 1;
  Json json = print(one);
  json["input_width"] = layer.inputWidth;
  json["apart"] = layer.apart;
  return writeJson(json);
}

} // namespace attune::spec
