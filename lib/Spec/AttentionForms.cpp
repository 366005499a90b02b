//===- AttentionForms.cpp - Attention to fewer keys or none -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The options of an attention that make it cost less than every query times
// every key: lengths, blocks, sums of features, projected sequences.

#include "Parser/LayerParser.h"

namespace attune::spec {

/// Reports the first of `keys` that `object` has, each with what is wrong.
static bool
refuse(const Object &object,
       std::initializer_list<std::pair<const char *, const char *>> keys) {
  for (auto [key, why] : keys)
    if (object.has(key)) {
      object.error(key, why);
      return false;
    }
  return true;
}

/// Causal, and not because the key says false.
static bool isCausal(const Object &object) {
  const Value *causal = object.get("causal");
  return causal && (causal->isString() || causal->boolean);
}

void LayerParser::parseForms(const Object &object, Attention &attention) {
  parseLengths(object, attention);
  if (auto sparse = object.object("block_sparse"))
    parseBlockSparse(object, *sparse, attention);
  if (auto linear = object.object("linear"))
    parseLinearForm(object, *linear, attention);
  if (auto rank = object.object("sequence_rank"))
    parseSequenceRank(object, *rank, attention);
  if (auto disentangled = object.object("disentangled"))
    parseDisentangled(object, *disentangled, attention);
}

void LayerParser::parseDisentangled(const Object &object, const Object &options,
                                    Attention &attention) {
  Disentangled &form = attention.disentangled.emplace();
  form.location = options.getLocation();
  form.span = options.integer("span", form.span).value_or(2);
  form.buckets = options.boolean("buckets", true);
  form.maxDistance =
      options.integer("max_distance", form.maxDistance).value_or(2);
  form.contentToPosition = options.boolean("content_to_position", true);
  form.positionToContent = options.boolean("position_to_content", true);
  if (!form.contentToPosition && !form.positionToContent)
    options.error("position_to_content", "is false, and so is "
                                         "content_to_position: no scores of "
                                         "positions are left");
  form.shared = options.boolean("shared", true);
  if (auto norm = options.object("norm"))
    form.norm = parseNorm(*norm, std::nullopt, NormKind::LayerNorm);
  if (!form.buckets && options.has("max_distance"))
    options.error("max_distance", "belongs to buckets");
  if (form.buckets && (form.span < 4 || form.maxDistance <= form.span / 2 + 1))
    options.error(form.span < 4 ? "span" : "max_distance",
                  form.span < 4 ? "expected 4 or more, where there are buckets"
                                : "is not beyond the distances that have rows "
                                  "of their own");
  const char *why = "cannot be where 'disentangled' is";
  refuse(object, {{"causal", why},
                  {"source", why},
                  {"relative", why},
                  {"relative_bias", why},
                  {"rope", why},
                  {"latent", why},
                  {"linear", why},
                  {"sequence_rank", why},
                  {"block_sparse", why},
                  {"qk_norm", why},
                  {"clip", why},
                  {"query_growth", why}});
  if (attention.heads != attention.kvHeads)
    object.error("kv_heads", "disentangled attention needs as many heads of "
                             "keys as of queries");
  if (attention.qkvBias && !attention.keyBias)
    object.error("bias", "disentangled attention needs a bias of the keys if "
                         "queries have one");
}

void LayerParser::parseRelative(const Object &object, Attention &attention) {
  const Value *value = object.get("relative");
  if (!value)
    return;
  attention.relative = true;
  if (value->isObject()) {
    auto options = object.object("relative");
    attention.relativeSegments = options->string("segments");
    const TensorSpec *input = findInput(*options, "segments");
    bool integers =
        input && (input->dtype == DType::I64 || input->dtype == DType::I32);
    if (input && (!integers || input->shape.size() != 2))
      options->error("segments", "input " + quote(input->name) +
                                     " cannot serve as segments; expected i64 "
                                     "[batch, tokens]");
  } else {
    attention.relative = value->boolean;
  }
  if (!attention.relative)
    return;
  if (!attention.source.empty())
    object.error("relative", "positions of another stream have no distance");
  const char *why = "cannot be where 'relative' is";
  refuse(object, {{"latent", why},
                  {"linear", why},
                  {"sequence_rank", why},
                  {"block_sparse", why},
                  {"keys_from", why},
                  {"query_growth", why}});
  if (attention.qkvBias && !attention.keyBias)
    object.error("bias",
                 "relative positions need a bias of the keys if queries "
                 "have one");
  if (width && *width % 2)
    object.error("relative", "sines and cosines of distances need an even "
                             "width, not " +
                                 std::to_string(*width));
}

void LayerParser::parseLengths(const Object &object, Attention &attention) {
  attention.lengthsInput = object.string("lengths");
  const TensorSpec *input = findInput(object, "lengths");
  if (!input)
    return;
  bool integers = input->dtype == DType::I64 || input->dtype == DType::I32;
  if (!integers || input->shape.size() != 1)
    object.error("lengths", "input " + quote(input->name) +
                                " cannot serve as lengths; expected i64 "
                                "[batch]");
}

void LayerParser::parseBlockSparse(const Object &object, const Object &options,
                                   Attention &attention) {
  BlockSparse &sparse = attention.blockSparse.emplace();
  sparse.location = options.getLocation();
  sparse.block = options.integer("block", sparse.block).value_or(sparse.block);
  sparse.local = options.integer("local", sparse.local).value_or(sparse.local);
  sparse.global =
      options.integer("global", sparse.global).value_or(sparse.global);
  sparse.maskInput = options.string("mask");
  if (!attention.source.empty())
    object.error("block_sparse",
                 "is for attention within a stream, not to another one");
  if (!options.has("mask"))
    return;
  refuse(options, {{"local", "is part of the pattern, and 'mask' takes the "
                             "pattern's place"},
                   {"global", "is part of the pattern, and 'mask' takes the "
                              "pattern's place"}});
  const TensorSpec *input = findInput(options, "mask");
  if (!input)
    return;
  const std::vector<Dim> &shape = input->shape;
  auto is = [&](size_t i, int64_t size) { return shape[i].size == size; };
  if (input->dtype != DType::Bool || shape.size() != 4)
    options.error("mask", "input " + quote(input->name) +
                              " cannot serve as a mask of blocks; expected "
                              "bool [batch or 1, heads or 1, blocks of "
                              "queries, blocks of keys]");
  else if (!is(1, 1) && !is(1, attention.heads) && attention.headDim)
    options.error("mask", "input " + quote(input->name) +
                              " must have 1 or all " +
                              std::to_string(attention.heads) +
                              " heads in its second dimension");
}

void LayerParser::parseFading(const Object &object, const Object &options,
                              const Object &own, Attention &attention) {
  Fading &fading = attention.linear->fading.emplace();
  fading.layers = own.integer("layers", std::nullopt).value_or(1);
  fading.activation = own.choice("activation", fading.activation);
  fading.norm.kind = NormKind::RMSNorm;
  fading.norm.bias = false;
  fading.norm.eps = 1e-6;
  fading.norm.location = own.getLocation();
  if (auto norm = own.object("norm"))
    fading.norm = parseNorm(*norm, std::nullopt, NormKind::RMSNorm);
  const char *noPlace = "has no place where sums fade";
  for (const char *key : {"feature_map", "normalise", "eps"})
    if (options.has(key))
      options.error(key, noPlace);
  for (const char *key : {"rope", "qk_norm", "clip", "query_growth", "bias"})
    if (object.has(key))
      object.error(key, noPlace);
  if (!attention.projections || !attention.source.empty() ||
      attention.causal == Causal::None)
    options.error("fading", "is for causal attention of a stream to itself "
                            "with projections");
  else if (attention.heads != attention.kvHeads)
    options.error("fading", "needs as many heads of keys as of queries");
}

void LayerParser::parseLinearForm(const Object &object, const Object &options,
                                  Attention &attention) {
  LinearForm &linear = attention.linear.emplace();
  linear.location = options.getLocation();
  if (auto fading = options.object("fading"))
    parseFading(object, options, *fading, attention);
  linear.featureMap = options.choice("feature_map", linear.featureMap);
  linear.normalise = options.boolean("normalise", true);
  linear.eps = options.number("eps", linear.eps);
  if (linear.eps < 0)
    options.error("eps", "must not be negative");
  else if (!linear.normalise && options.has("eps"))
    options.error("eps", "belongs to a normalised result");
  const char *noScores = "changes scores, of which linear attention has none";
  refuse(object, {{"scale", noScores},
                  {"window", noScores},
                  {"softcap", noScores},
                  {"alibi", noScores},
                  {"relative", noScores},
                  {"relative_bias", noScores},
                  {"bias_input", noScores},
                  {"slopes", noScores},
                  {"sinks", noScores},
                  {"lse", "is of scores, of which linear attention has none"},
                  {"latent", "is another form of attention than 'linear'"},
                  {"fusion", "is about scores, of which linear attention has "
                             "none"},
                  {"block_sparse", "is another form of attention than "
                                   "'linear'"},
                  {"sequence_rank", "is another form of attention than "
                                    "'linear'"}});
  if (isCausal(object) && !attention.source.empty())
    object.error("causal", "sums up to a key need as many queries as keys, "
                           "which two streams need not have");
  for (const TensorSpec &input : model.inputs)
    if (input.name == attention.maskInput && input.shape.size() == 4 &&
        (input.shape[1].size != 1 || input.shape[2].size != 1))
      object.error("mask", "input " + quote(input.name) +
                               " may hide keys from all queries only: [batch, "
                               "1, 1, keys]");
}

void LayerParser::parseSequenceRank(const Object &object, const Object &options,
                                    Attention &attention) {
  SequenceRank &low = attention.sequenceRank.emplace();
  low.location = options.getLocation();
  Known rank = options.integer("rank", std::nullopt);
  Known positions = options.integer("positions", std::nullopt);
  low.rank = rank.value_or(1);
  low.positions = positions.value_or(1);
  low.shared = options.choice("shared", low.shared);
  low.bias = options.boolean("bias", false);
  if (rank && positions && *rank > *positions)
    options.error("rank", std::to_string(*rank) + " is more than the " +
                              std::to_string(*positions) +
                              " positions, which are fewer to attend to");
  const char *mixed = "is about positions of keys, which 'sequence_rank' mixes";
  if (isCausal(object))
    object.error("causal", "'sequence_rank' mixes the keys of all positions, "
                           "so the future cannot be hidden");
  refuse(object, {{"window", mixed},
                  {"alibi", mixed},
                  {"relative", mixed},
                  {"relative_bias", mixed},
                  {"block_sparse", mixed},
                  {"latent", "has keys that cannot be projected along their "
                             "sequence"},
                  {"source", "keys of another stream are not projected along "
                             "their sequence"}});
}

} // namespace attune::spec
