//===- CountDecode.cpp - Cost of a generated token --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Counter.h"

#include <algorithm>

using namespace attune::spec;

namespace attune {

void Counter::countDecode(const Layer &layer) {
  double repeat = static_cast<double>(layer.repeat);
  bool isTable = std::holds_alternative<Embedding>(layer.op) ||
                 std::holds_alternative<Positions>(layer.op);
  // Every weight is multiplied by every sequence of the batch once. A table is
  // read one row a sequence. Experts that the token does not go through stay
  // where they are.
  double weights = 0, matrices = 0;
  for (const WeightRole &role : weightRoles(layer)) {
    double columns = static_cast<double>(std::max<int64_t>(role.columns, 1));
    double rows = static_cast<double>(isTable ? 1 : role.rows);
    if (role.parts > 1)
      rows *=
          std::min(static_cast<double>(role.parts),
                   here.batch * static_cast<double>(mixtureOf(layer)->active));
    weights += repeat * rows * columns;
    if (!isTable && role.columns != 0)
      matrices += repeat * rows * columns;
  }
  if (const auto *linear = std::get_if<Linear>(&layer.op))
    if (!linear->tied.empty()) {
      double table = static_cast<double>(linear->out) *
                     static_cast<double>(layer.inputWidth);
      weights += table;
      matrices += table;
    }
  decode.flops += 2 * here.batch * matrices;
  decode.bytes += weights * sizeOf(model.dtype);
  if (const auto *attention = std::get_if<Attention>(&layer.op))
    if (attention->projections)
      countDecode(*attention, repeat);
  const auto *block = std::get_if<Block>(&layer.op);
  if (block && layer.cycle.empty() && block->attention)
    countDecode(*block->attention, repeat);
  for (size_t i = 0; i < layer.cycle.size(); ++i)
    if (layer.cycle[i].attention)
      countDecode(*layer.cycle[i].attention,
                  static_cast<double>(repeatsOf(layer, i)));
}

/// The keys and values that the token sees.
void Counter::countDecode(const Attention &attention, double repeat) {
  double keys = here.tokens;
  if (attention.window)
    keys = std::min(keys, static_cast<double>(*attention.window));
  double channels = static_cast<double>(attention.headDim + attention.valueDim);
  if (const auto &latent = attention.latent) {
    if (const auto &index = latent->index) {
      double channels = static_cast<double>(index->headDim);
      decode.flops += repeat * 2 * here.batch *
                      static_cast<double>(index->heads) * keys * channels;
      decode.bytes +=
          repeat * here.batch * keys * channels * sizeOf(model.dtype);
      keys = std::min(keys, static_cast<double>(index->top));
    }
    double row =
        static_cast<double>(latent->rank + attention.headDim - latent->nopeDim);
    decode.flops += repeat * 2 * here.batch *
                    static_cast<double>(attention.heads) * keys *
                    (row + static_cast<double>(latent->rank));
    decode.bytes += repeat * here.batch * keys * row * sizeOf(model.dtype);
    return;
  }
  if (attention.linear) {
    double sums = static_cast<double>(attention.headDim) *
                  static_cast<double>(numSums(attention));
    double heads = static_cast<double>(attention.heads + attention.kvHeads);
    decode.flops += repeat * 2 * here.batch * heads * sums;
    decode.bytes += repeat * 2 * here.batch *
                    static_cast<double>(attention.kvHeads) * sums *
                    activationSize;
    return;
  }
  decode.flops += repeat * 2 * here.batch *
                  static_cast<double>(attention.heads) * keys * channels;
  decode.bytes += repeat * here.batch * static_cast<double>(attention.kvHeads) *
                  keys * bytesCached(model, channels, 2);
}

} // namespace attune
