//===- AttentionFewQuads.cpp - Scores of eight rows and four keys ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The product of queries and keys of AttentionFewRows.cpp, where more rows
// share keys than a vector has groups of four lanes: four in 16 lanes, two in
// eight.
//
// The lanes belong to as many rows, with four consecutive channels (or pairs of
// them) of each: lane-interleaved partial sums. Queries are packed that way
// once. The same channels of a key, read in place, are broadcast to every row
// by the load itself and serve two vectors of rows: Zen 4's multipliers would
// wait for one such load per product. The four partial sums of a row remain.
// The sums of four keys are added up, for a fifth of the instructions that
// whole rows in 16 lanes take, or a half of those in eight, to 4x4 register
// blocks of rows by keys, which become rows when they are exponentiated, or to
// 2x4 blocks, whose halves are stored as rows.

#include "StepKernel.h"

#include "attune/Conversion/PairProduct.h"

#include <numeric>

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

constexpr int64_t kLanes = 16; // of an instruction, where quads are kept

/// Four vectors, the phases of some rows side by side, are added up to a quad:
/// the first row of all four, the second, and so on.
Value sumPhases(KernelBuilder &k, ArrayRef<Value> keys) {
  int64_t lanes = cast<VectorType>(keys[0].getType()).getNumElements();
  auto round = [&](Value a, Value b) -> Value {
    SmallVector<int64_t> even, odd;
    for (int64_t i = 0; i < lanes; ++i) {
      even.push_back(i / 4 * 4 + i % 2 * 2 + i % 4 / 2 * lanes);
      odd.push_back(even.back() + 1);
    }
    return arith::AddFOp::create(k.b, k.loc, shuffle(k, a, b, even),
                                 shuffle(k, a, b, odd));
  };
  return round(round(keys[0], keys[1]), round(keys[2], keys[3]));
}

} // namespace

void StepKernel::makeQuadScratch(KernelBuilder &k) {
  int64_t chunk = quadChunk();
  fewQueryScratch =
      scratch(k, {fewRows / quadRows(), width / chunk, quadRows() * chunk},
              /*pairs=*/fewPairs);
}

/// Queries in the layout that quadsOf reads; missing rows repeat the last one.
Value StepKernel::packFewQueries(KernelBuilder &k, Value to) {
  int64_t chunk = quadChunk();
  Value rows = k.min(k.index(fewRows), countRows(k));
  Value end = k.mul(k.ceilDiv(rows, productRows), productRows / quadRows());
  auto packTile = [&](KernelBuilder &k, Value tile, ValueRange c) {
    Value packed = c[0];
    for (int64_t i = 0; i < quadRows(); ++i) {
      Row row = rowAt(k, k.add(k.mul(tile, quadRows()), k.index(i)));
      packed = k.forLoop(
          k.index(0), k.index(width / chunk), 1, packed,
          [&](KernelBuilder &k, Value at, ValueRange c) {
            Value x =
                k.load(op.getQuery(),
                       place(k, op.getQuery(), row, k.mul(at, chunk)), chunk);
            // Scores of pairs are scaled instead: see AttentionPairs.cpp.
            if (!fewPairs)
              x = arith::MulFOp::create(
                  k.b, k.loc, x,
                  k.splat(op.getScale().convertToDouble(), chunk));
            return Values{k.store(x, c[0], {tile, at, k.index(i * chunk)})};
          })[0];
    }
    return Values{packed};
  };
  return k.forLoop(k.index(0), end, 1, to, packTile)[0];
}

/// The products of two quads' rows from `number` on with four keys from `key`
/// on.
Values StepKernel::quadsOf(KernelBuilder &k, Value number, Value key,
                           const Lying &keys) {
  Value first = arith::DivUIOp::create(k.b, k.loc, number, k.index(quadRows()));
  Value tiles[] = {first, k.add(first, k.index(1))};
  int64_t chunk = quadChunk();
  SmallVector<int64_t> repeated;
  for (int64_t i = 0; i < quadRows() * chunk; ++i)
    repeated.push_back(i % chunk);
  auto load = [&](KernelBuilder &k, Value from, ValueRange at, int64_t count) {
    return fewPairs ? loadPairs(k, from, at, count / 2)
                    : k.load(from, at, count);
  };
  Values at;
  for (int64_t i = 0; i < kQuad; ++i)
    at.push_back(keys.upToLast(k, k.add(key, k.index(i))));
  // Four sums of the first rows, four of the others.
  auto some = [&](KernelBuilder &k, Value begin, int64_t steps, ValueRange c) {
    Values sums(c);
    for (int64_t i = 0; i < steps; ++i) {
      Value step = k.add(begin, k.index(i)), column = k.mul(step, chunk);
      Values queries;
      for (Value tile : tiles)
        queries.push_back(
            load(k, fewQueries, {tile, step, k.index(0)}, quadRows() * chunk));
      for (auto [key, row] : llvm::enumerate(at)) {
        Value x = load(k, keys.tensor, keys.at(k, row, column), chunk);
        x = shuffle(k, x, x, repeated);
        for (auto [tile, query] : llvm::enumerate(queries)) {
          Value &sum = sums[tile * kQuad + key];
          sum = fewPairs ? addPairProducts(k, sum, query, x)
                         : k.fma(query, x, sum);
        }
      }
    }
    return sums;
  };
  // The unrolled code needs no more queries than fit in half the registers.
  int64_t steps = width / chunk;
  int64_t together = std::min<int64_t>(steps, 2 * quadRows());
  int64_t whole = steps / together * together;
  Values sums(2 * kQuad, k.splat(0.0, lanes / 2));
  if (steps == together)
    sums = some(k, k.index(0), steps, sums);
  else
    sums = k.forLoop(k.index(0), k.index(whole), together, sums,
                     [&](KernelBuilder &k, Value at, ValueRange c) {
                       return some(k, at, together, c);
                     });
  if (whole < steps)
    sums = some(k, k.index(whole), steps - whole, sums);
  return {sumPhases(k, ArrayRef(sums).take_front(kQuad)),
          sumPhases(k, ArrayRef(sums).take_back(kQuad))};
}

/// Puts quads of the rows from `number` on and the keys from `key` on where
/// these rows will have the scores of the panel at `start`: two to a row.
Value StepKernel::storeQuads(KernelBuilder &k, ValueRange quads, Value number,
                             Value start, Value key, Value scores) {
  Value at = k.mul(key, kQuad);
  Value row =
      k.add(number, arith::DivUIOp::create(k.b, k.loc, at, k.index(lanes)));
  Value column = k.add(scoreOf(k, start),
                       arith::RemUIOp::create(k.b, k.loc, at, k.index(lanes)));
  for (auto [i, quad] : llvm::enumerate(quads))
    scores = k.store(quad, scores, {k.add(row, k.index(i * kQuad)), column});
  return scores;
}

/// The scores of a panel for the four rows from `number` on, out of quads.
Values StepKernel::rowsOfQuads(KernelBuilder &k, Value number, Value start,
                               Value scores) {
  Values rows;
  SmallVector<Values> halves; // of two quads each: two rows, eight keys
  for (int64_t i = 0; i < lanes / kQuad; i += 2) {
    auto load = [&](int64_t quad) {
      int64_t at = quad * kLanes;
      return k.load(scores,
                    {k.add(number, k.index(at / lanes)),
                     k.add(scoreOf(k, start), k.index(at % lanes))},
                    kLanes);
    };
    Value a = load(i), b = load(i + 1);
    SmallVector<int64_t> low, high;
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      low.push_back(lane / 8 * 4 + lane % 4 + lane % 8 / 4 * kLanes);
      high.push_back(low.back() + 8);
    }
    halves.push_back({shuffle(k, a, b, low), shuffle(k, a, b, high)});
  }
  for (int64_t row = 0; row < kQuad; ++row) {
    auto eight = [&](int64_t i) { return halves[i][row / 2]; };
    SmallVector<int64_t> half, all(lanes);
    for (int64_t lane = 0; lane < kLanes; ++lane)
      half.push_back(lane % 8 + row % 2 * 8 + lane / 8 * kLanes);
    std::iota(all.begin(), all.end(), 0);
    rows.push_back(shuffle(k, shuffle(k, eight(0), eight(1), half),
                           shuffle(k, eight(2), eight(3), half), all));
  }
  return rows;
}

} // namespace attune
