//===- Attention.cpp - The options of an attention --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerParser.h"

#include <algorithm>
#include <cmath>

namespace attune::spec {

static const char *const bareKeys[] = {"query",      "key",    "value", "mask",
                                       "bias_input", "slopes", "lse"};
static const char *const projectionKeys[] = {
    "rope",          "relative",     "relative_bias", "qk_norm",
    "bias",          "source",       "latent",        "clip",
    "sequence_rank", "query_growth", "disentangled",  "value_norm",
    "keys_from"};

/// Channels of a head: what is given, or an equal part of the width.
static Known findHeadDim(const Object &object, Known heads, Known width) {
  if (object.has("head_dim"))
    return object.integer("head_dim", std::nullopt);
  if (!heads || !width)
    return std::nullopt;
  if (*width % *heads == 0)
    return *width / *heads;
  object.error("heads", "the width " + std::to_string(*width) +
                            " is not a multiple of " + std::to_string(*heads) +
                            " heads; give head_dim");
  return std::nullopt;
}

/// What is added to queries, keys, values and outputs, to the sum of a softmax,
/// and what outputs are multiplied with.
static void parseBiases(const Object &object, Attention &attention) {
  if (const Value *bias = object.get("bias")) {
    if (auto parts = object.object("bias")) {
      attention.qkvBias = parts->boolean("qkv", false);
      attention.keyBias = parts->boolean("key", attention.qkvBias);
      if (attention.keyBias && !attention.qkvBias && parts->get("key"))
        parts->error("key", "keys have a bias only if queries and values do");
      attention.keyBias |= !attention.qkvBias;
      attention.outBias = parts->boolean("out", false);
    } else {
      attention.qkvBias = attention.outBias = bias->boolean;
    }
  }
  if (const Value *sinks = object.get("sinks")) {
    if (sinks->isString())
      object.error("sinks", "names an input of the bare op, which has query, "
                            "key and value; expected true or false");
    else
      attention.learnedSinks = sinks->boolean;
    if (object.has("latent"))
      object.error("sinks", "has no meaning for latent attention");
  }
  attention.gate = object.boolean("gate", false);
  if (attention.gate && object.has("latent"))
    object.error("gate", "is not there for latent attention");
}

/// Queries that grow with their distance from the beginning.
static void parseGrowth(const Object &object, const Object &growth,
                        Attention &attention) {
  QueryGrowth &by = attention.queryGrowth.emplace();
  by.location = growth.getLocation();
  by.by = growth.number("by", 0.1);
  by.length = growth.integer("length", 8192).value_or(8192);
  by.shift = growth.integer("shift", 0).value_or(0);
  if (!attention.source.empty() || object.has("latent"))
    object.error("query_growth", "is for attention of a stream to itself "
                                 "with queries of its own");
  if (attention.rope &&
      (attention.rope->places || !attention.rope->sections.pairs.empty()))
    object.error("query_growth", "counts tokens, not the places of images");
}

Attention LayerParser::parseAttention(const Object &object, Place place) {
  Attention attention;
  attention.location = object.getLocation();
  attention.projections =
      !object.has("query") && !object.has("key") && !object.has("value");
  attention.fusion = object.choice("fusion", Fusion::Auto);
  parseMasking(object, attention);

  if (!attention.projections) {
    if (place != Place::Alone)
      object.error(object.has("query") ? "query"
                   : object.has("key") ? "key"
                                       : "value",
                   "the attention of a block makes its own queries, keys and "
                   "values");
    for (const char *key : projectionKeys)
      if (object.has(key))
        object.error(key, "the bare op on inputs has no projections");
    parseBare(object, attention);
    parseForms(object, attention);
    if (place == Place::Alone)
      width = 0;
    return attention;
  }

  for (const char *key : bareKeys)
    if (object.has(key))
      object.error(key, "belongs to the bare op, which has query, key and "
                        "value");
  parseSource(object, place, attention);
  bool widthKnown =
      place == Place::Alone ? needTokens(object) : width && *width != 0;

  Known heads = object.integer("heads", std::nullopt);
  if (!object.has("heads"))
    object.missing("heads", "query heads");
  Known headDim = findHeadDim(object, heads, widthKnown ? width : std::nullopt);
  parseHeads(object, attention, heads, object.integer("kv_heads", heads),
             headDim, object.integer("value_dim", headDim));

  parseBiases(object, attention);
  parseRelative(object, attention);
  if (auto bias = object.object("relative_bias")) {
    attention.relativeBias = parseRelativeBias(*bias, attention);
    if (!attention.source.empty())
      object.error("relative_bias",
                   "positions of another stream have no distance");
    else if (attention.relative)
      object.error("relative_bias",
                   "and 'relative' are two kinds of relative positions");
  }
  if (auto rope = object.object("rope")) {
    attention.rope = parseRope(*rope, headDim);
    if (attention.causal != Causal::None && rope->get("axes"))
      rope->error("axes", "belongs to attention that is not causal");
  }
  if (auto latent = object.object("latent"))
    parseLatent(object, *latent, attention);
  if (auto norm = object.object("qk_norm")) {
    attention.qkNorm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
    attention.qkNormScope = norm->choice("scope", NormScope::Head);
    attention.qkNormAfterRotary = norm->boolean("after_rotary", false);
    if (attention.qkNormAfterRotary && !object.has("rope"))
      norm->error("after_rotary", "needs 'rope', which it comes after");
    else if (attention.qkNormAfterRotary &&
             attention.qkNormScope == NormScope::Projection)
      norm->error("after_rotary", "is for norms of heads; with \"projection\" "
                                  "they are not cut apart yet");
  }
  if (auto norm = object.object("value_norm"))
    attention.valueNorm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  if (object.has("value_norm") && object.has("latent"))
    object.error("value_norm", "has no place in latent attention");
  if (object.get("keys_from"))
    parseLender(object, attention);
  if (auto growth = object.object("query_growth"))
    parseGrowth(object, *growth, attention);
  attention.adapterRank = object.integer("adapter_rank", 0).value_or(0);
  if (attention.adapterRank &&
      (!inMemory || object.has("latent") || !attention.keysFrom.empty()))
    object.error("adapter_rank", "belongs to an attention with queries, keys "
                                 "and values of its own in a block with "
                                 "'memory'");
  if (object.get("clip"))
    attention.clip = object.number("clip", 1);
  parseForms(object, attention);
  if (attention.scaleByLayer &&
      (place == Place::Cross || attention.latent || attention.linear))
    object.error("scale_by_layer", "is for attention of a stream to itself "
                                   "with keys and a softmax of its own");
  return attention;
}

void LayerParser::parseHeads(const Object &object, Attention &attention,
                             Known heads, Known kvHeads, Known headDim,
                             Known valueDim) {
  if (heads && kvHeads && *heads % *kvHeads != 0)
    object.error(object.has("kv_heads") ? "kv_heads" : "key",
                 std::to_string(*kvHeads) + " does not divide the " +
                     std::to_string(*heads) + " query heads");
  attention.heads = heads.value_or(1);
  attention.kvHeads = kvHeads.value_or(1);
  attention.headDim = headDim.value_or(0);
  attention.valueDim = valueDim.value_or(0);
  attention.scale = object.number(
      "scale", headDim ? 1 / std::sqrt(static_cast<double>(*headDim)) : 0);
  if (object.get("scale") && attention.scale == 0)
    object.error("scale", "expected a number other than 0");
  attention.scaleByLayer = object.boolean("scale_by_layer", false);
}

void LayerParser::parseMasking(const Object &object, Attention &attention) {
  if (const Value *causal = object.get("causal")) {
    bool topLeft = causal->isString() && causal->text == "top_left";
    attention.causal = causal->isString() || causal->boolean
                           ? topLeft ? Causal::TopLeft : Causal::BottomRight
                           : Causal::None;
  }
  if (object.has("window")) {
    Known window = object.integer("window", std::nullopt);
    attention.window = window.value_or(1);
    if (attention.causal == Causal::None && object.has("source"))
      object.error("window", "counts keys from a query's place, which another "
                             "stream does not have");
  }
  if (object.get("softcap"))
    attention.softcap = object.number("softcap", 0);
  if (const Value *alibi = object.get("alibi")) {
    attention.alibiFalcon = alibi->isString();
    attention.alibi = alibi->isString() || alibi->boolean;
  }
  if (attention.alibi && object.has("slopes"))
    object.error("slopes", "are what 'alibi' already gives");
}

void LayerParser::parseSource(const Object &object, Place place,
                              Attention &attention) {
  attention.sourceWidth = width.value_or(0);
  if (place == Place::Self && object.has("source")) {
    object.error("source", "makes it cross-attention; use 'cross' instead");
    return;
  }
  if (place == Place::Cross && !object.has("source"))
    object.missing("source", "the stream that keys and values come from");
  const Value *source = object.get("source");
  if (!source)
    return;
  attention.source = source->text;
  std::vector<std::string> names;
  for (const Stream &earlier : model.streams) {
    names.push_back(earlier.name);
    if (earlier.name != source->text)
      continue;
    if (!earlier.layers.empty() && earlier.layers.back().pooled)
      object.error("source", "stream " + quote(earlier.name) +
                                 " ends in one vector [batch, width], which "
                                 "has no tokens to attend to");
    attention.sourceWidth =
        earlier.layers.empty() ? 0 : earlier.layers.back().width;
    return;
  }
  if (source->text == stream.name)
    return object.error("source", "is this very stream; leave it out for "
                                  "self-attention");
  std::string near = nearest(source->text, names);
  object.error("source",
               "there is no stream " + quote(source->text) +
                   " before this one" +
                   (near.empty() ? "" : "; did you mean '" + near + "'?"));
}

/// One size of a bare op's input against what another key or input said.
static Known merge(const Object &object, const char *key,
                   const TensorSpec *input, size_t at, Known expected,
                   const char *what) {
  if (!input || at >= input->shape.size() || input->shape[at].size < 0)
    return expected;
  int64_t size = input->shape[at].size;
  if (expected && *expected != size) {
    object.error(key, "input " + quote(input->name) + " has " +
                          std::to_string(size) + " " + what + ", expected " +
                          std::to_string(*expected));
    return expected;
  }
  return size;
}

/// An input with a row or column for each key must have as many as the key
/// input whenever it runs: a fixed number beside an open one would be read past
/// its end.
static void haveAllKeys(
    const Object &object, const TensorSpec *key,
    std::initializer_list<std::tuple<const char *, const TensorSpec *, size_t>>
        inputs) {
  if (!key || key->shape.size() < 3)
    return;
  const Dim &rows = key->shape[2];
  for (auto [name, input, at] : inputs)
    if (input && at < input->shape.size() &&
        (input->shape[at].size < 0) != (rows.size < 0))
      object.error(name, "input " + quote(input->name) + " has " +
                             (rows.size < 0 ? "a fixed" : "an open") +
                             " number of keys, but " + quote(key->name) +
                             " has " + (rows.size < 0 ? "an open" : "a fixed") +
                             " one; give both the same");
}

void LayerParser::parseBare(const Object &object, Attention &attention) {
  for (const char *key : {"query", "key", "value"})
    if (!object.has(key))
      object.missing(key, "the bare op needs query, key and value");

  auto tensor = [&](const char *key, size_t rank, bool mask,
                    std::string &name) -> const TensorSpec * {
    name = object.string(key);
    const TensorSpec *input = findInput(object, key);
    if (!input)
      return nullptr;
    bool isFloat = input->dtype == DType::F32 || input->dtype == DType::F16 ||
                   input->dtype == DType::BF16;
    if (mask ? input->dtype != DType::Bool : !isFloat) {
      object.error(key, "input " + quote(input->name) + " is " +
                            stringify(input->dtype) + ", expected " +
                            (mask ? "bool" : "f32, f16 or bf16"));
      return nullptr;
    }
    if (input->shape.size() != rank) {
      object.error(key, "input " + quote(input->name) + " has " +
                            std::to_string(input->shape.size()) +
                            " dimensions, expected " + std::to_string(rank));
      return nullptr;
    }
    return input;
  };
  const TensorSpec *query = tensor("query", 4, false, attention.queryInput);
  const TensorSpec *key = tensor("key", 4, false, attention.keyInput);
  const TensorSpec *value = tensor("value", 4, false, attention.valueInput);
  const TensorSpec *mask = tensor("mask", 4, true, attention.maskInput);
  const TensorSpec *bias = tensor("bias_input", 4, false, attention.biasInput);
  const TensorSpec *slopes = tensor("slopes", 1, false, attention.slopesInput);
  const TensorSpec *sinks = nullptr;
  if (const Value *value = object.get("sinks"); value && !value->isString())
    object.error("sinks", "is learned with projections; the bare op takes an "
                          "input with a score per head");
  else
    sinks = tensor("sinks", 1, false, attention.sinksInput);
  attention.lse = object.boolean("lse", false);

  auto given = [&](const char *name) {
    return object.integer(name, std::nullopt);
  };
  Known heads = merge(object, "query", query, 1, given("heads"), "heads");
  Known kvHeads = merge(object, "key", key, 1, given("kv_heads"), "heads");
  kvHeads = merge(object, "value", value, 1, kvHeads, "heads");
  if (!kvHeads && !object.has("kv_heads"))
    kvHeads = heads;
  Known headDim =
      merge(object, "query", query, 3, given("head_dim"), "channels");
  headDim = merge(object, "key", key, 3, headDim, "channels");
  Known valueDim =
      merge(object, "value", value, 3, given("value_dim"), "channels");
  if (!valueDim && !object.has("value_dim"))
    valueDim = headDim;
  // Batches and keys agree; masks and biases may be 1 there and are repeated.
  Known batch = merge(object, "query", query, 0, std::nullopt, "batches");
  batch = merge(object, "key", key, 0, batch, "batches");
  merge(object, "value", value, 0, batch, "batches");
  Known keys = merge(object, "key", key, 2, std::nullopt, "rows");
  keys = merge(object, "value", value, 2, keys, "rows");
  Known queries = merge(object, "query", query, 2, std::nullopt, "rows");
  const Known sizes[] = {batch, heads, queries, keys};
  const char *const whats[] = {"batches", "heads", "query rows", "key columns"};
  for (size_t i = 0; i < 4; ++i) {
    if (mask && (i == 3 || mask->shape[i].size != 1))
      merge(object, "mask", mask, i, sizes[i], whats[i]);
    if (bias && (i == 3 || bias->shape[i].size != 1))
      merge(object, "bias_input", bias, i, sizes[i], whats[i]);
  }
  haveAllKeys(
      object, key,
      {{"value", value, 2}, {"mask", mask, 3}, {"bias_input", bias, 3}});
  for (auto [name, input] : {std::pair("slopes", slopes), {"sinks", sinks}})
    if (input)
      merge(object, name, input, 0, heads, "elements");
  if (query && !heads && !object.has("heads"))
    object.error("query", "has no fixed number of heads; give 'heads'");
  if (query && key && !headDim && !object.has("head_dim"))
    object.error("query", "has no fixed width; give 'head_dim'");
  parseHeads(object, attention, heads, kvHeads, headDim, valueDim);
}

RelativeBias LayerParser::parseRelativeBias(const Object &object,
                                            const Attention &attention) {
  RelativeBias bias;
  bias.location = object.getLocation();
  bias.buckets = object.integer("buckets", bias.buckets).value_or(bias.buckets);
  bias.bidirectional =
      object.boolean("bidirectional", attention.causal == Causal::None);
  Known most = object.integer("max_distance", bias.maxDistance);
  bias.maxDistance = most.value_or(bias.maxDistance);
  if (bias.bidirectional && bias.buckets < 4)
    object.error("buckets", "both directions need two buckets each, so there "
                            "must be four or more");
  // Half the buckets of a direction are for one distance each.
  int64_t exact = (bias.bidirectional ? bias.buckets / 2 : bias.buckets) / 2;
  if (most && (*most <= exact || *most > 1 << 24))
    object.error(object.has("max_distance") ? "max_distance" : "buckets",
                 "max_distance is " + std::to_string(*most) +
                     ", but with these buckets it must be from " +
                     std::to_string(exact + 1) + " to 16777216");
  return bias;
}

Rope LayerParser::parseRope(const Object &object, Known headDim) {
  Rope rope;
  rope.location = object.getLocation();
  rope.theta = object.number("theta", 10000);
  rope.interleaved = object.boolean("interleaved", false);
  Known channels = object.integer("channels", headDim);
  rope.channels = channels.value_or(0);
  if (channels && *channels % 2 != 0)
    object.error("channels", object.has("channels")
                                 ? "is " + std::to_string(*channels) +
                                       ", but channels turn in pairs"
                                 : "head_dim " + std::to_string(*channels) +
                                       " is odd; give an even 'channels'");
  else if (channels && headDim && *channels > *headDim)
    object.error("channels", std::to_string(*channels) +
                                 " is more than the head_dim " +
                                 std::to_string(*headDim));

  auto axes = object.object("axes");
  if (axes)
    parseRopeAxes(object, *axes, rope);
  for (const char *key : {"scaling", "sections", "places"})
    if (axes && object.has(key))
      object.error(key, "has no meaning for positions of several axes");
  if (auto scaling = object.object("scaling"); scaling && !axes)
    parseRopeScaling(*scaling, channels, rope);
  parseSections(object, channels, rope);
  return rope;
}

void LayerParser::parseRopeAxes(const Object &object, const Object &options,
                                Rope &rope) {
  if (const Value *list = options.get("channels"))
    rope.axes.channels =
        parseSizes(options, "channels", list->elements.size(), 2);
  int64_t all = 0;
  for (int64_t one : rope.axes.channels) {
    if (one % 2 != 0)
      options.error("channels", std::to_string(one) +
                                    " is odd, but channels turn in pairs");
    all += one;
  }
  if (options.get("channels") && rope.channels && all != rope.channels)
    options.error("channels", "are " + std::to_string(all) + " together, but " +
                                  std::to_string(rope.channels) + " turn");
  if (!options.get("inputs")) {
    if (options.get("channels") && rope.axes.channels.size() != 2)
      options.error("channels", "are of " +
                                    std::to_string(rope.axes.channels.size()) +
                                    " axes, but an image has two; name the "
                                    "'inputs' with the positions");
    if (!options.has("inputs") && !grid && !behindGrid)
      object.error("axes", "is for the places of an image, which a 2-D "
                           "convolution makes, unless 'inputs' have the "
                           "positions");
    return;
  }
  rope.axes.inputs = parseNames(options, "inputs");
  for (const std::string &name : rope.axes.inputs) {
    auto input = std::find_if(
        model.inputs.begin(), model.inputs.end(),
        [&](const TensorSpec &input) { return input.name == name; });
    bool isFloat = input != model.inputs.end() &&
                   (input->dtype == DType::F32 || input->dtype == DType::F16 ||
                    input->dtype == DType::BF16);
    if (!isFloat || input->shape.size() != 2 ||
        input->shape[1].size != int64_t(rope.axes.channels.size()))
      options.error("inputs", quote(name) + " is no float input [tokens, " +
                                  std::to_string(rope.axes.channels.size()) +
                                  "]");
  }
}

void LayerParser::parseRopeScaling(const Object &object, Known channels,
                                   Rope &rope) {
  const Object *scaling = &object;
  RopeScaling &result = rope.scaling;
  result.type = scaling->string("type", "none");
  result.factor = scaling->number("factor", 1);
  result.lowFreqFactor = scaling->number("low_freq_factor", 1);
  result.highFreqFactor = scaling->number("high_freq_factor", 4);
  result.betaFast = scaling->number("beta_fast", 32);
  result.betaSlow = scaling->number("beta_slow", 1);
  if (scaling->get("attention_factor"))
    result.attentionFactor = scaling->number("attention_factor", 1);
  result.originalLength = scaling->integer("original_length", 0).value_or(0);
  result.truncate = scaling->boolean("truncate", true);

  bool known = scaling->get("type");
  bool llama3 = result.type == "llama3", yarn = result.type == "yarn";
  bool longrope = result.type == "longrope";
  bool needsLength = llama3 || yarn || longrope || result.type == "dynamic";
  for (auto [key, factors] : {std::pair("short_factors", &result.shortFactors),
                              std::pair("long_factors", &result.longFactors)}) {
    const Value *list = scaling->get(key);
    if (longrope && !scaling->has(key))
      scaling->missing(key, "divisors of the frequencies");
    if (!list)
      continue;
    for (const Value &value : list->elements)
      factors->push_back(value.real);
    if (longrope && channels &&
        static_cast<int64_t>(factors->size()) != *channels / 2)
      scaling->error(key, "has " + std::to_string(factors->size()) +
                              " factors, expected one for each of the " +
                              std::to_string(*channels / 2) +
                              " pairs of channels");
  }
  if (known && needsLength && !scaling->has("original_length"))
    scaling->missing("original_length", "the length the model was trained at, "
                                        "which " +
                                            result.type + " scaling needs");
  auto only = [&](const char *key, bool allowed, const char *owner) {
    if (known && !allowed && scaling->has(key))
      scaling->error(key, std::string("belongs to ") + owner + " scaling");
  };
  only("low_freq_factor", llama3, "llama3");
  only("high_freq_factor", llama3, "llama3");
  only("beta_fast", yarn, "yarn");
  only("beta_slow", yarn, "yarn");
  only("attention_factor", yarn || longrope, "yarn and longrope");
  only("short_factors", longrope, "longrope");
  only("long_factors", longrope, "longrope");
  if (known && longrope && scaling->has("factor"))
    scaling->error("factor", "is not a key of longrope scaling");
  only("truncate", yarn, "yarn");
  only("original_length", needsLength, "dynamic, llama3, yarn and longrope");
  if (result.type == "dynamic" && channels && *channels == 2)
    scaling->error("type", "dynamic scaling needs more than the 2 channels "
                           "that turn");
  if (llama3 && !(result.highFreqFactor > result.lowFreqFactor))
    scaling->error("high_freq_factor", "must be more than low_freq_factor");
}

} // namespace attune::spec
