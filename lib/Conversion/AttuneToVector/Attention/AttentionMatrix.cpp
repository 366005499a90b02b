//===- AttentionMatrix.cpp - Many queries in a matrix unit ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block is 32 rows. Operands lie in pairs of bf16, as in AttentionPairs.cpp,
// and both products are attune.linear_into, which convert-attune-to-amx turns
// into tiles:
//
//   for each panel of keys: scores of 32 rows and 32 keys, unscaled
//   for 16 rows at a time: scale, masks, maxima and probabilities, in vectors
//   as
//     everywhere; the sums so far, rescaled
//   for each panel of values: tiles add probabilities times values to the sums
//     of 32 rows and 32 channels, for some keys at a time
//
// Panels of keys are whole, so their last probabilities may be those of keys
// that nobody sees: zeros, and so are the packed values behind the last one.

#include "../Matmul/TileOperands.h"
#include "StepKernel.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

/// Keys that are added to a tile of sums before it goes back to memory.
constexpr int64_t kDepth = 128;

} // namespace

void StepKernel::makeMatrixScratch(KernelBuilder &k) {
  sumScratch = scratch(k, {valuePanels, rows, lanes});
}

/// Rows of a block from row `first` on, as many as a tile has.
SmallVector<StepKernel::Row> StepKernel::rowsOfTile(KernelBuilder &k,
                                                    Value block, Value first) {
  SmallVector<Row> at;
  first = k.add(k.mul(block, rows), first);
  for (int64_t i = 0; i < kMatrixRows; ++i)
    at.push_back(rowAt(k, k.add(first, k.index(i))));
  return at;
}

/// The products of a block of rows with the panels of keys that it sees.
void StepKernel::scoreInTiles(KernelBuilder &k, Value block,
                              const Range &range) {
  Value zero = k.index(0);
  Value queries = viewOf(k, packedQueries, {block, zero, zero}, {rows, width});
  k.forLoop(firstPanel(k, range), k.ceilDiv(range.last, lanes), 1, {},
            [&](KernelBuilder &k, Value panel, ValueRange) {
              fetchNext(k, block, panel);
              multiplyInTiles(k, queries,
                              viewOf(k, packedKeys, {panel, zero, zero},
                                     {1, width / 2, 2 * lanes}),
                              viewOf(k, scoreScratch,
                                     {zero, k.mul(panel, lanes)},
                                     {rows, lanes}),
                              /*adds=*/false);
              return Values{};
            });
}

/// Adds probabilities times values to the sums of a block of rows.
void StepKernel::sumInTiles(KernelBuilder &k, Value block, const Range &range) {
  Value zero = k.index(0);
  Value first = k.mul(firstPanel(k, range), lanes);
  Value end = k.mul(k.ceilDiv(range.last, lanes), lanes);
  // Few and long products first, and then the rest.
  Value products =
      arith::DivSIOp::create(k.b, k.loc, k.sub(end, first), k.index(kDepth));
  Value rest = k.add(first, k.mul(products, kDepth));
  k.forLoop(
      zero, k.index(valuePanels), 1, {},
      [&](KernelBuilder &k, Value panel, ValueRange) {
        fetchNext(k, block, k.add(k.ceilDiv(keys, lanes), panel));
        Value sums = viewOf(k, sumScratch, {panel, zero, zero}, {rows, lanes});
        auto add = [&](Value from, Value to, int64_t depth) {
          k.forLoop(from, to, depth, {},
                    [&](KernelBuilder &k, Value key, ValueRange) {
                      Value pair =
                          arith::DivUIOp::create(k.b, k.loc, key, k.index(2));
                      multiplyInTiles(
                          k,
                          viewOf(k, narrowScratch, {zero, key}, {rows, depth}),
                          viewOf(k, packedValues, {panel, pair, zero},
                                 {1, depth / 2, 2 * lanes}),
                          sums, /*adds=*/true);
                      return Values{};
                    });
        };
        add(first, rest, kDepth);
        add(rest, end, lanes);
        return Values{};
      });
}

/// Accumulates the keys into one block of rows.
Values StepKernel::foldInTiles(KernelBuilder &k, Value block,
                               ValueRange carried) {
  Value zero = k.index(0);
  Range seen = visible(k, rowsOf(k, block));
  scoreInTiles(k, block, seen);
  // A tile of nothing but copies of the last row would fold the keys into it
  // once more. What comes of its rows is not read.
  Value left = k.min(k.index(rows), k.sub(countRows(k), k.mul(block, rows)));
  auto eachTile = [&](KernelBuilder &k, auto body) {
    k.forLoop(zero, left, kMatrixRows, {},
              [&](KernelBuilder &k, Value first, ValueRange) {
                body(k, first, rowsOfTile(k, block, first));
                return Values{};
              });
  };
  auto eachPanel = [&](KernelBuilder &k, Value first, auto body) {
    k.forLoop(zero, k.index(valuePanels), 1, {},
              [&](KernelBuilder &k, Value panel, ValueRange) {
                for (int64_t i = 0; i < kMatrixRows; ++i)
                  body(k, i, k.mul(panel, lanes),
                       Values{panel, k.add(first, k.index(i)), zero});
                return Values{};
              });
  };
  eachTile(k, [&](KernelBuilder &k, Value first, ArrayRef<Row> at) {
    // Probabilities of all keys that the block sees, since it is multiplied as
    // a whole.
    Range range = visible(k, at);
    range.first = seen.first;
    range.last = seen.last;
    auto scores = [&](KernelBuilder &k, Value panel, Value scores) {
      Values loaded;
      for (int64_t i = 0; i < kMatrixRows; ++i)
        loaded.push_back(k.load(
            scores, {k.add(first, k.index(i)), k.mul(panel, lanes)}, lanes));
      return loaded;
    };
    auto rescale = [&](KernelBuilder &k, ValueRange factors, Value, Value,
                       Value, Value acc) {
      eachPanel(k, first,
                [&](KernelBuilder &k, int64_t i, Value column, Values to) {
                  Value x = k.load(acc, place(k, acc, at[i], column), lanes);
                  k.store(arith::MulFOp::create(k.b, k.loc, x,
                                                k.splat(factors[i], lanes)),
                          sumScratch, to);
                });
      return acc;
    };
    foldRows(k, at, range, first, carried, scores, rescale, narrowScratch);
  });
  sumInTiles(k, block, seen);
  eachTile(k, [&](KernelBuilder &k, Value first, ArrayRef<Row> at) {
    eachPanel(k, first,
              [&](KernelBuilder &k, int64_t i, Value column, Values from) {
                k.store(k.load(sumScratch, from, lanes), carried[1],
                        place(k, carried[1], at[i], column));
              });
  });
  return Values(carried);
}

} // namespace attune
