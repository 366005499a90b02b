//===- AttentionFewPairs.cpp - Few queries, in pairs of bf16 --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What AttentionFewRows.cpp does, where the CPU multiplies pairs of bf16.
//
// An instruction has 16 lanes. Where eight rows share a key, they are those of
// four rows, and of each row four pairs that follow each other, its phases.
// Queries are packed that way once. As many pairs of a key, where it lies, are
// repeated for every row, which a load does, and serve both fours: Zen 4's
// multipliers would wait for one such load per product. What is left are the
// phases of a sum; those of four keys are added up, for a fifth of the
// instructions that 16 lanes take, to quads: four rows by four keys. These
// become rows when they are weighed.
//
// Values of two keys become pairs by two shuffles.

#include "StepKernel.h"

#include "attune/Analysis/TargetDescription.h"
#include "attune/Conversion/PairProduct.h"

#include <numeric>

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

// Lanes of an instruction, and channels of each of the rows that are in them.
constexpr int64_t kLanes = 16, kChunk = 2 * kLanes / kQuad;

/// Two rows of `2 * kLanes` bf16 as pairs: those of the first and of the second
/// halves of all blocks of 128 bits, which is what a shuffle within them gives.
std::pair<Value, Value> interleaveBlocks(KernelBuilder &k, Value a, Value b) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    int64_t at = lane / 4 * 8 + lane % 4;
    low.append({at, at + 2 * kLanes});
    high.append({at + 4, at + 4 + 2 * kLanes});
  }
  return {shuffle(k, a, b, low), shuffle(k, a, b, high)};
}

/// `2 * kLanes` sums, apart as interleaveBlocks leaves channels, and together.
std::pair<Value, Value> splitBlocks(KernelBuilder &k, Value sums) {
  SmallVector<int64_t> low, high;
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    low.push_back(lane / 4 * 8 + lane % 4);
    high.push_back(low.back() + 4);
  }
  return {shuffle(k, sums, sums, low), shuffle(k, sums, sums, high)};
}
Value joinBlocks(KernelBuilder &k, Value low, Value high) {
  SmallVector<int64_t> all;
  for (int64_t lane = 0; lane < 2 * kLanes; ++lane)
    all.push_back(lane / 8 * 4 + lane % 4 + lane % 8 / 4 * kLanes);
  return shuffle(k, low, high, all);
}

/// Four vectors, the phases of four rows side by side, are added up to a quad:
/// the first row of all four, the second, and so on.
Value sumPhases(KernelBuilder &k, ArrayRef<Value> keys) {
  auto round = [&](Value a, Value b) -> Value {
    SmallVector<int64_t> even, odd;
    for (int64_t i = 0; i < kLanes; ++i) {
      even.push_back(i / 4 * 4 + i % 2 * 2 + i % 4 / 2 * kLanes);
      odd.push_back(even.back() + 1);
    }
    return arith::AddFOp::create(k.b, k.loc, shuffle(k, a, b, even),
                                 shuffle(k, a, b, odd));
  };
  return round(round(keys[0], keys[1]), round(keys[2], keys[3]));
}

} // namespace

void StepKernel::makeFewPairsScratch(KernelBuilder &k) {
  narrowFewScratch = scratch(k, {fewRows, keysFolded}, /*pairs=*/true);
  if (makesQuads())
    fewQueryScratch = scratch(k, {fewRows / kQuad, width / kChunk, 2 * kLanes},
                              /*pairs=*/true);
}

/// Queries as quadsOf wants them; of rows that there are not, the last one.
Value StepKernel::packFewQueries(KernelBuilder &k, Value to) {
  Value rows = k.min(k.index(fewRows), countRows(k));
  Value end = k.mul(k.ceilDiv(rows, productRows), productRows / kQuad);
  auto packTile = [&](KernelBuilder &k, Value tile, ValueRange c) {
    Value packed = c[0];
    for (int64_t i = 0; i < kQuad; ++i) {
      Row row = rowAt(k, k.add(k.mul(tile, kQuad), k.index(i)));
      packed = k.forLoop(
          k.index(0), k.index(width / kChunk), 1, packed,
          [&](KernelBuilder &k, Value at, ValueRange c) {
            Value x =
                k.load(op.getQuery(),
                       place(k, op.getQuery(), row, k.mul(at, kChunk)), kChunk);
            return Values{k.store(x, c[0], {tile, at, k.index(i * kChunk)})};
          })[0];
    }
    return Values{packed};
  };
  return k.forLoop(k.index(0), end, 1, to, packTile)[0];
}

/// The products of eight rows from `number` on with four keys from `key` on:
/// two quads.
Values StepKernel::quadsOf(KernelBuilder &k, Value number, Value key,
                           const Lying &keys) {
  Value first = arith::DivUIOp::create(k.b, k.loc, number, k.index(kQuad));
  Value tiles[] = {first, k.add(first, k.index(1))};
  SmallVector<int64_t> repeated;
  for (int64_t i = 0; i < 2 * kLanes; ++i)
    repeated.push_back(i % kChunk);
  Values at;
  for (int64_t i = 0; i < kQuad; ++i)
    // Keys beyond the end repeat the last: masked later, but real memory.
    at.push_back(k.min(k.add(key, k.index(i)), keys.last));
  // Four sums of the first rows, four of the others.
  auto some = [&](KernelBuilder &k, Value begin, int64_t steps, ValueRange c) {
    Values sums(c);
    for (int64_t i = 0; i < steps; ++i) {
      Value step = k.add(begin, k.index(i)), column = k.mul(step, kChunk);
      Values queries;
      for (Value tile : tiles)
        queries.push_back(
            loadPairs(k, fewQueries, {tile, step, k.index(0)}, kLanes));
      for (auto [key, row] : llvm::enumerate(at)) {
        Value x =
            loadPairs(k, keys.tensor, keys.at(k, row, column), kChunk / 2);
        x = shuffle(k, x, x, repeated);
        for (auto [tile, query] : llvm::enumerate(queries)) {
          Value &sum = sums[tile * kQuad + key];
          sum = addPairProducts(k, sum, query, x);
        }
      }
    }
    return sums;
  };
  // What is written out needs no more queries than fit in half the registers.
  int64_t steps = width / kChunk, together = std::min<int64_t>(steps, 8);
  int64_t whole = steps / together * together;
  Values sums(2 * kQuad, k.splat(0.0, kLanes));
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

/// Adds values of keys [first, last), weighed, to the sums of all rows.
Value StepKernel::sumFewPairs(KernelBuilder &k, Value first, Value last,
                              Value probabilities, Value acc) {
  Value lastRow = k.sub(countRows(k), k.index(1));
  // As many panels of channels as make 16 sums of an instruction each.
  int64_t panels =
      std::clamp<int64_t>(kLanes / (2 * productRows), 1, valueWidth / lanes);
  int64_t chunk = panels * lanes;
  auto someValues = [&](KernelBuilder &k, Value start, ValueRange c) {
    Value depth = k.min(k.index(valuesAtOnce), k.sub(last, start));
    Fetching fetching = besideValues(k, start, depth, 2, passesOfValues(chunk));
    // Some rows, `count` panels of channels.
    auto sum = [&](KernelBuilder &k, Value number, Value column, int64_t count,
                   Value acc) {
      auto columnOf = [&](KernelBuilder &k, int64_t panel) {
        return k.add(column, k.index(panel * lanes));
      };
      SmallVector<Row> at = fewAt(k, number, productRows);
      Values apart, weighed;
      for (auto [i, row] : llvm::enumerate(at)) {
        weighed.push_back(k.min(k.add(number, k.index(i)), lastRow));
        for (int64_t p = 0; p < count; ++p) {
          Value x = k.load(acc, place(k, acc, row, columnOf(k, p)), lanes);
          auto [low, high] = splitBlocks(k, x);
          apart.append({low, high});
        }
      }
      // Passes fetch in order, not their own channels, which would be a stream
      // of every other line.
      Value firstPair =
          k.mul(passOfValues(k, number, column, chunk), k.ceilDiv(depth, 2));
      // Of two keys; a second one that there is not has no weight.
      auto addPairs = [&](KernelBuilder &k, Value i, ValueRange c) {
        Value pair = arith::DivUIOp::create(k.b, k.loc, i, k.index(2));
        fetch(k, fetching, k.add(firstPair, pair));
        Value both[] = {i,
                        k.min(k.add(i, k.index(1)), k.sub(depth, k.index(1)))};
        Values next(c), weights;
        for (Value row : weighed)
          weights.push_back(splatPair(
              k, probabilities, {row, scoreOf(k, k.add(start, i))}, kLanes));
        for (int64_t p = 0; p < count; ++p) {
          auto load = [&](Value key) {
            return loadPairs(k, op.getValue(),
                             {batch, kvHead, k.add(start, key), columnOf(k, p)},
                             kLanes);
          };
          auto [low, high] = interleaveBlocks(k, load(both[0]), load(both[1]));
          for (int64_t row = 0; row < productRows; ++row) {
            int64_t at = 2 * (row * count + p);
            next[at] = addPairProducts(k, c[at], low, weights[row]);
            next[at + 1] = addPairProducts(k, c[at + 1], high, weights[row]);
          }
        }
        return next;
      };
      apart = k.forLoop(k.index(0), depth, 2, apart, addPairs);
      for (auto [i, row] : llvm::enumerate(at))
        for (int64_t p = 0; p < count; ++p) {
          int64_t at = 2 * (i * count + p);
          acc = k.store(joinBlocks(k, apart[at], apart[at + 1]), acc,
                        place(k, acc, row, columnOf(k, p)));
        }
      return acc;
    };
    auto channels = [&](KernelBuilder &k, Value column, int64_t count,
                        ValueRange c) {
      return k.forLoop(k.index(0), countRows(k), productRows, c,
                       [&](KernelBuilder &k, Value number, ValueRange c) {
                         return Values{sum(k, number, column, count, c[0])};
                       });
    };
    int64_t full = valueWidth / chunk * chunk;
    Values sums = k.forLoop(k.index(0), k.index(full), chunk, c,
                            [&](KernelBuilder &k, Value column, ValueRange c) {
                              return channels(k, column, panels, c);
                            });
    if (full < valueWidth)
      sums = channels(k, k.index(full), (valueWidth - full) / lanes, sums);
    return sums;
  };
  return k.forLoop(first, last, valuesAtOnce, acc, someValues)[0];
}

} // namespace attune
