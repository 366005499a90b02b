//===- VisionSchema.cpp - Tables of layers that make and pick tokens ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &poolType() {
  static const ObjectType type{
      "pool",
      "One vector for each sequence. Tokens that an attention mask hides are "
      "not counted by last, mean and max.",
      {
          {"kind",
           choice({"first", "last", "mean", "max", "token", "id", "last_id",
                   "largest_id"}),
           "the first or last token, the mean or maximum of all, the token "
           "number 'index', the first or last token whose id is 'id', or the "
           "first with the largest id",
           true},
          {"index", integer(0), "token: which, counted from 0"},
          {"id", integer(0),
           "id, last_id: which; a sequence without it gives token 0"},
          {"input", string(),
           "id, last_id, largest_id: the input where the ids stand; default "
           "what the stream starts from"},
      },
      {},
      {}};
  return type;
}

const ObjectType &classTokensType() {
  static const ObjectType type{"class_tokens",
                               "Learned tokens put before those of the stream.",
                               {{"count", integer(1), "how many; default 1"}},
                               {},
                               {}};
  return type;
}

const ObjectType &sliceType() {
  static const ObjectType type{
      "slice",
      "Some of the tokens; those that a sequence does not have are left out.",
      {{"first", integer(0), "the first of them, counted from 0; default 0"},
       {"count", integer(1), "how many; default the rest"},
       {"part", integer(0),
        "in place of both: the number of one of the parts that 'concat' put "
        "one "
        "behind the other"}},
      {},
      {}};
  return type;
}

const ObjectType &concatType() {
  static const ObjectType type{
      "concat",
      "Tokens of another result behind those of the stream, or the channels "
      "of a pooled one behind those of a pooled stream.",
      {{"source", string(), "an earlier stream or layer", true}},
      {},
      {}};
  return type;
}

const ObjectType &convType() {
  static const ObjectType type{
      "conv",
      "A convolution, whose places become tokens row by row.",
      {
          {"dims", integer(1, 2),
           "over frames [batch, channels, frames], or [batch, frames] of one "
           "channel, or over images [batch, channels, height, width]; default "
           "2"},
          {"out", integer(1), "channels of the result", true},
          {"kernel", either({integer(1), array(integer(1), 2)}),
           "size, or height and width", true},
          {"stride", either({integer(1), array(integer(1), 2)}), "default 1"},
          {"padding", either({integer(0), array(integer(0), 2)}),
           "zeros on each side; default 0"},
          {"places_first", boolean(),
           "two dimensions: columns of the weight are the kernel's places row "
           "by row, each with all channels; default false"},
          {"same", boolean(),
           "one dimension: a place for each stride that is begun, by half of "
           "what the kernel has more in zeros, behind by one less if that is "
           "odd and by the rest of the last stride; default false"},
          {"reflect", boolean(),
           "same: the padding mirrors the places; default false"},
          {"transposed", boolean(),
           "one dimension, a kernel of whole strides: gives 'stride' times as "
           "many places; the others are cut off by halves, behind by one less "
           "if they are odd; default false"},
          {"causal", boolean(),
           "same or transposed: no place sees a later one, as all padding is "
           "before the first and all that is cut off is behind the last; "
           "default false"},
          {"norm", object(instanceNormType()),
           "transposed: of all places, before some are cut off"},
          {"groups", integer(1),
           "of channels, each of which makes its share of 'out'; default 1"},
          {"layout", choice({"channels_first", "channels_last"}),
           "of the input; default channels_first, but on tokens "
           "channels_last"},
          {"bias", boolean(), "default true"},
          {"activation", activation(), "default identity"},
      },
      {},
      {}};
  return type;
}

const ObjectType &batchNormType() {
  static const ObjectType type{
      "batch_norm",
      "(x - mean) / sqrt(variance + eps) * weight + bias, with the mean and "
      "variance of training.",
      {{"eps", positive(), "default 1e-5"}},
      {},
      {}};
  return type;
}

const ObjectType &instanceNormType() {
  static const ObjectType type{
      "instance_norm",
      "(x - mean) / sqrt(variance + eps) * weight + bias of each channel, with "
      "the mean and variance of all its tokens.",
      {{"eps", positive(), "default 1e-5"},
       {"together", boolean(),
        "the mean and variance are those of all channels of all tokens; "
        "default false"}},
      {},
      {}};
  return type;
}

const ObjectType &addType() {
  static const ObjectType type{
      "add",
      "scale * (x + y).",
      {
          {"source", string(), "y: an earlier stream or layer", true},
          {"scale", number(), "default 1; 0.5 gives the mean"},
      },
      {},
      {}};
  return type;
}

const ObjectType &l2NormType() {
  static const ObjectType type{
      "l2_norm", "x / |x| of each vector.", {}, {}, {}};
  return type;
}

const ObjectType &insertType() {
  static const ObjectType type{
      "insert",
      "Vectors of an earlier stream in the places of the tokens with one id, "
      "in their order.",
      {
          {"source", string(), "the earlier stream, or a layer of one", true},
          {"id", integer(0), "of the tokens that are replaced", true},
          {"grid", array(integer(1), 2),
           "rows and columns that the vectors of an image are, for rotary "
           "positions in sections"},
          {"add", boolean(),
           "add vectors to the tokens' instead of replacing these; default "
           "false"},
          {"bidirectional", choice({"none", "image", "prompt"}),
           "where attention is causal, the tokens of one image see each other "
           "in both directions, or all tokens of a prompt do; default none"},
      },
      {},
      {}};
  return type;
}

const ObjectType &windowsType() {
  static const ObjectType type{
      "windows",
      "Windows of an image's places, each a sequence of its own. Those at the "
      "right and lower edge may be smaller.",
      {{"size", either({integer(1), array(integer(1), 2)}),
        "places on each side, or rows and columns", true}},
      {},
      {}};
  return type;
}

const ObjectType &wholeType() {
  static const ObjectType type{
      "whole", "The places of whole images again, behind windows.", {}, {}, {}};
  return type;
}

const ObjectType &mergeType() {
  static const ObjectType type{
      "merge",
      "Squares of an image's places as one, their channels side by side.",
      {{"size", integer(2), "places on each side; default 2"},
       {"mean", boolean(),
        "the mean of its places instead of their channels; default false"}},
      {},
      {}};
  return type;
}

const ObjectType &unpatchType() {
  static const ObjectType type{
      "unpatch",
      "An image [batch, channels, height, width] of whose squares the places "
      "have the numbers, row by row, all channels of one next to each other.",
      {{"size", integer(1), "of a square, on each side; default 2"}},
      {},
      {}};
  return type;
}

const ObjectType &similarityType() {
  static const ObjectType type{
      "similarity",
      "Scalar products of the pooled vectors of two streams, [batch, other "
      "batch].",
      {
          {"source", string(), "the other: an earlier stream or layer", true},
          {"temperature", boolean(),
           "multiply by exp of the weight scale; default false"},
          {"bias", boolean(), "add the weight bias, one number; default false"},
      },
      {},
      {}};
  return type;
}

} // namespace attune::spec
