//===- VisiblePairs.cpp - What attention sees -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "VisiblePairs.h"

#include <algorithm>
#include <cmath>

using namespace attune::spec;

namespace attune {

/// Sum over m = 0 .. count-1 of m + shift, clamped to [0, limit].
static double sumClamped(double count, double shift, double limit) {
  // Rows before `begin` give 0, rows from `end` on give `limit`.
  double begin = std::clamp(-shift, 0.0, count);
  double end = std::clamp(limit - shift, begin, count);
  double ramp = (end - begin) * ((begin + end - 1) / 2 + shift);
  return ramp + (count - end) * limit;
}

/// How many (query, key) pairs of some rows and columns causal masks and
/// windows show; `shift` leads from a query's row to its column.
static double visiblePairs(const Attention &attention, double rows,
                           double columns, double shift) {
  bool causal = attention.causal != Causal::None;
  if (!causal && !attention.window)
    return rows * columns;
  double ahead = causal ? 1 : static_cast<double>(*attention.window);
  double seen = sumClamped(rows, shift + ahead, columns);
  if (attention.window)
    seen -= sumClamped(rows, shift + 1 - static_cast<double>(*attention.window),
                       columns);
  return seen;
}

double visiblePairs(const Attention &attention, double queries, double keys) {
  if (attention.sequenceRank)
    return queries * static_cast<double>(attention.sequenceRank->rank);
  double shift = attention.causal == Causal::TopLeft ? 0 : keys - queries;
  const auto &sparse = attention.blockSparse;
  if (!sparse || !sparse->maskInput.empty())
    return visiblePairs(attention, queries, keys, shift);
  double size = static_cast<double>(sparse->block), seen = 0;
  double local = static_cast<double>(sparse->local);
  double first = static_cast<double>(sparse->global);
  for (double i = 0; i * size < queries; ++i) {
    // Columns of blocks [from, to) of this row of blocks.
    auto add = [&](double from, double to) {
      double begin = std::min(from * size, keys);
      double end = std::clamp(to * size, begin, keys);
      seen += visiblePairs(attention, std::min(size, queries - i * size),
                           end - begin, shift + i * size - begin);
    };
    if (i < first) {
      add(0, std::ceil(keys / size));
      continue;
    }
    add(0, first);
    add(std::max(i - local, first), i + local + 1);
  }
  return seen;
}

} // namespace attune
