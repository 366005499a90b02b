//===- SignalSchema.cpp - Tables of conditions and chunks -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SchemaTypes.h"

namespace attune::spec {

const ObjectType &modulationType() {
  static const ObjectType type{
      "modulation",
      "What scales and shifts channels: columns of a linear layer of a pooled "
      "result.",
      {
          {"source", string(), "an earlier stream or layer [batch, width]",
           true},
          {"activation", choice({"identity", "silu"}),
           "before the linear layer; default silu"},
          {"bias", boolean(), "default true"},
      },
      {},
      {}};
  return type;
}

const ObjectType &timestepType() {
  static const ObjectType type{
      "timestep",
      "Sines and cosines of one number for each sequence, an input [batch].",
      {
          {"width", integer(2), "channels, an even number", true},
          {"period", positive(), "over 2 pi the longest; default 10000"},
          {"scale", number(), "multiplies the number; default 1"},
          {"cosines_first", boolean(), "before the sines; default true"},
          {"shift", integer(0, 1),
           "1: the last frequency is 1/period itself; default 0"},
      },
      {},
      {}};
  return type;
}

const ObjectType &chunkType() {
  static const ObjectType type{
      "chunk",
      "Cuts tokens into chunks that overlap by half, each a sequence.",
      {{"size", integer(2), "tokens of a chunk, an even number", true}},
      {},
      {}};
  return type;
}

const ObjectType &swapType() {
  static const ObjectType type{
      "swap",
      "Makes a sequence of what has the same place in its chunk; a second one "
      "undoes it.",
      {},
      {},
      {}};
  return type;
}

const ObjectType &overlapAddType() {
  static const ObjectType type{
      "overlap_add", "Sums chunks where they overlap.", {}, {}, {}};
  return type;
}

} // namespace attune::spec
