//===- AttentionFormsSchema.cpp - Keys of the forms of attention ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &blockSparseType() {
  static const ObjectType type{
      "block_sparse",
      "Attention within some blocks of queries and keys only: near the "
      "diagonal and at the first tokens, or wherever an input says.",
      {
          {"block", integer(1),
           "tokens of a block; best a multiple of 32; default 64"},
          {"local", integer(0),
           "blocks that are seen on either side of a query's own; default 1"},
          {"global", integer(0),
           "first blocks, which see all and are seen by all; default 0"},
          {"mask", string(),
           "in place of the pattern, a bool input [batch or 1, heads or 1, "
           "blocks of queries, blocks of keys]; true is computed"},
      },
      {},
      {}};
  return type;
}

const ObjectType &disentangledType() {
  static const ObjectType type{
      "disentangled",
      "Each distance has a row of a table. To the product of a query and a key "
      "are added those of the query and a key made of the row, and of the key "
      "and a query made of it.",
      {
          {"span", integer(2), "half the rows of the table; default 256"},
          {"buckets", boolean(),
           "distances from span / 2 on share rows by their logarithm; default "
           "true"},
          {"max_distance", integer(2),
           "with buckets, the first that has the last row; default 512"},
          {"content_to_position", boolean(), "queries' products; default true"},
          {"position_to_content", boolean(), "keys' products; default true"},
          {"shared", boolean(),
           "rows go through the projections of queries and keys, else through "
           "their own; default true"},
          {"norm", object(normType()), "of the rows; default none"},
      },
      {},
      {}};
  return type;
}

const ObjectType &fadingType() {
  static const ObjectType type{
      "fading",
      "Lightning attention: of each head's sums, a token leaves a part that "
      "follows from the numbers of the head and the layer; queries, keys and "
      "values are activated, and the heads' results are normed together.",
      {
          {"layers", integer(1), "of the whole model", true},
          {"activation", activation(), "default silu"},
          {"norm", object(normType()), "default an rms_norm"},
      },
      {},
      {}};
  return type;
}

const ObjectType &linearFormType() {
  static const ObjectType type{
      "linear_form",
      "Linear attention: f(Q) (f(K)^T V), divided by f(Q) times the sum of "
      "f(K).",
      {
          {"feature_map", choice({"elu_plus_one", "relu", "identity"}),
           "f; default elu_plus_one"},
          {"normalise", boolean(), "divide; default true"},
          {"eps", number(), "added to the divisor; default 1e-6"},
          {"fading", object(fadingType()),
           "sums that fade; neither a feature map nor a divisor then"},
      },
      {},
      {}};
  return type;
}

const ObjectType &sequenceRankType() {
  static const ObjectType type{
      "sequence_rank",
      "Low-rank attention (Linformer): 'rank' learned sums of all keys, and "
      "of all values, take their place.",
      {
          {"rank", integer(1), "sums", true},
          {"positions", integer(1),
           "columns of the learned matrices: the longest sequence", true},
          {"shared", choice({"none", "heads", "keys_values"}),
           "matrices are for each head, for all heads, or for all heads and "
           "keys and values alike; default heads"},
          {"bias", boolean(), "added to each sum; default false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &queryGrowthType() {
  static const ObjectType type{
      "query_growth",
      "Queries times 1 + by * log(1 + floor((position + shift) / length)).",
      {
          {"by", number(), "default 0.1"},
          {"length", integer(1), "tokens of a step; default 8192"},
          {"shift", integer(0), "added to positions; default 0"},
      },
      {},
      {}};
  return type;
}

const ObjectType &biasType() {
  static const ObjectType type{
      "projection_bias",
      "Which projections of an attention have a bias.",
      {
          {"qkv", boolean(), "queries, keys and values; default false"},
          {"key", boolean(), "keys in particular; default as qkv"},
          {"out", boolean(), "the output projection; default false"},
      },
      {},
      {}};
  return type;
}

const ObjectType &ropeScalingType() {
  static const ObjectType type{
      "rope_scaling",
      "Stretches a rotary embedding over longer sequences.",
      {
          {"type",
           choice({"none", "linear", "dynamic", "llama3", "yarn", "longrope"}),
           "how", true},
          {"factor", positive(), "by how much; default 1"},
          {"low_freq_factor", positive(), "llama3; default 1"},
          {"high_freq_factor", positive(), "llama3; default 4"},
          {"beta_fast", positive(), "yarn; default 32"},
          {"beta_slow", positive(), "yarn; default 1"},
          {"attention_factor", positive(),
           "multiplies cos and sin; default 0.1 ln(factor) + 1 for yarn, 1 "
           "for longrope"},
          {"original_length", integer(1),
           "dynamic, llama3, yarn, longrope: the length the model was trained "
           "at"},
          {"short_factors", array(positive()),
           "longrope: divisors of the frequencies, one for each pair of "
           "channels, up to original_length tokens"},
          {"long_factors", array(positive()), "longrope: the same beyond"},
          {"truncate", boolean(),
           "yarn: round the ends of the ramp to whole channels; default true"},
      },
      {},
      {}};
  return type;
}

const ObjectType &ropeAxesType() {
  static const ObjectType type{
      "rope_axes",
      "Positions of several numbers per token, each of which turns a share of "
      "the channels with the frequencies of so many.",
      {
          {"channels", array(integer(2)),
           "of each axis, even; together those that turn", true},
          {"inputs", array(string()),
           "float inputs [tokens, axes] with the positions, one behind the "
           "other; default: an image's rows and columns, where place i of n is "
           "at 2 pi ((2 i + 1) / n - 1) and tokens before it do not turn"},
      },
      {},
      {}};
  return type;
}

const ObjectType &ropeType() {
  static const ObjectType type{
      "rope",
      "Rotary position embedding of queries and keys.",
      {
          {"theta", positive(), "base of the wavelengths; default 10000"},
          {"interleaved", boolean(),
           "turn channels (2i, 2i+1), not (i, i + n/2); default false"},
          {"channels", integer(2),
           "turned channels of each head, even; default head_dim"},
          {"scaling", object(ropeScalingType()), "default none"},
          {"sections", array(integer(0), 3),
           "pairs of channels that turn by a token's number, by its row and by "
           "its column in an image; default all by the number"},
          {"interleaved_sections", boolean(),
           "sections take turns: pair 3i + 1 is of the rows, pair 3i + 2 of "
           "the columns; default false"},
          {"places", boolean(),
           "of an image's places: the first half of the pairs turns by the "
           "row, the second by the column; default false"},
          {"alternating", boolean(),
           "of the frequencies of all pairs rows have every other one from "
           "the first on, columns those between; default false: each half has "
           "the frequencies of half as many channels"},
          {"axes", object(ropeAxesType()),
           "several positions per token; default one, its number"},
      },
      {},
      {}};
  return type;
}

const ObjectType &relativeType() {
  static const ObjectType type{
      "relative",
      "Relative positions with scores of segments (XLNet).",
      {
          {"segments", string(),
           "an input, i64 [batch, tokens]: each query adds a product with one "
           "of two rows, for keys of its segment and for all others",
           true},
      },
      {},
      {}};
  return type;
}

const ObjectType &relativeBiasType() {
  static const ObjectType type{
      "relative_bias",
      "Learned biases of scores by the distance of query and key, which falls "
      "into buckets: one for each small distance, wider ones further away.",
      {
          {"buckets", integer(2), "rows of the table; default 32"},
          {"max_distance", integer(2),
           "distance from which on all share a bucket; default 128"},
          {"bidirectional", boolean(),
           "half of the buckets are for keys ahead of the query; default true "
           "unless causal"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
