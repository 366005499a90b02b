//===- AttentionFewPairs.cpp - Few queries, in pairs of bf16 --------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The product of probabilities and values of AttentionFewRows.cpp, where the
// CPU multiplies pairs of bf16: the values of two keys become pairs by two
// shuffles.

#include "StepKernel.h"

#include "attune/Conversion/PairProduct.h"
#include "attune/TargetInfo/TargetDescription.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

constexpr int64_t kLanes = 16; // of an instruction

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

} // namespace

/// Adds probabilities times values of keys [first, last) to the sums of all
/// rows.
Value StepKernel::sumFewPairs(KernelBuilder &k, Value first, Value last,
                              Value probabilities, Value acc) {
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
      Values apart;
      for (const Row &row : at)
        for (int64_t p = 0; p < count; ++p) {
          Value x = k.load(acc, place(k, acc, row, columnOf(k, p)), lanes);
          auto [low, high] = splitBlocks(k, x);
          apart.append({low, high});
        }
      // Passes fetch in order, not their own channels, which would be a stream
      // of every other line.
      Value firstPair =
          k.mul(passOfValues(k, number, column, chunk), k.ceilDiv(depth, 2));
      // Adds two keys; a missing second one has zero probability.
      auto addPairs = [&](KernelBuilder &k, Value i, ValueRange c) {
        Value pair = arith::DivUIOp::create(k.b, k.loc, i, k.index(2));
        fetch(k, fetching, k.add(firstPair, pair));
        Value both[] = {i,
                        k.min(k.add(i, k.index(1)), k.sub(depth, k.index(1)))};
        Values next(c), weights;
        for (int64_t row = 0; row < productRows; ++row)
          weights.push_back(splatPair(
              k, probabilities,
              {k.add(number, k.index(row)), scoreOf(k, k.add(start, i))},
              kLanes));
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
      // The last row's own sums are stored last, as in sumFew.
      for (int64_t row = productRows - 1; row >= 0; --row)
        for (int64_t p = 0; p < count; ++p) {
          int64_t sum = 2 * (row * count + p);
          acc = k.store(joinBlocks(k, apart[sum], apart[sum + 1]), acc,
                        place(k, acc, at[row], columnOf(k, p)));
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
