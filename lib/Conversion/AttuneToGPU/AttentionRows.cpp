//===- AttentionRows.cpp - Which rows a block has, and their results ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Shared by the kernels of attention, before and after their products: a block
// has some rows of the queries of all heads that share keys, a warp 16 of them.

#include "Attention.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

AttentionPlace::AttentionPlace(BlockBuilder &b, AttentionIntoOp op,
                               const AttentionSizes &sizes, Value number,
                               Value tiles, int64_t tileRows, int64_t tileKeys)
    : modifiers(ScoreModifiers::of(op)), sizes(&sizes), tileKeys(tileKeys) {
  Value at = b.rem(number, tiles), heads = b.div(number, tiles);
  // Late queries see more keys: they begin, so that none is left at the end.
  if (modifiers.isCausal())
    at = b.sub(b.sub(tiles, b.index(1)), at);
  batch = b.div(heads, sizes.kvHeads);
  kvHead = b.rem(heads, sizes.kvHeads);
  lastRow = b.sub(sizes.rows, b.index(1));
  firstRow = b.mul(at, tileRows);
  firstQuery = queryOf(b, firstRow);
  Value lastQuery =
      queryOf(b, b.min(b.add(firstRow, b.index(tileRows - 1)), lastRow));
  allKeys = keysOfBatch(b, modifiers, sizes.keys, batch);
  upToLast = keysUpToLast(b, modifiers, sizes.keys, batch);
  Value one = b.index(1);
  begin = keysOfTile(b, reach(b), allKeys, firstQuery, one, tileKeys).begin;
  end = seenTo(b, lastQuery);
}

void AttentionPlace::takePart(BlockBuilder &b, Value part, Value parts) {
  Value count = b.max(b.sub(end, begin), b.index(0));
  Value each = keysOfPart(b, count, parts, tileKeys);
  begin = b.add(begin, b.mul(part, each));
  end = b.min(end, b.add(begin, each));
}

void AttentionPlace::enterWarp(BlockBuilder &b, Value warp, Value lane) {
  Value warpRow = b.add(firstRow, b.mul(warp, kWarpRows));
  for (int64_t half = 0; half < 2; ++half) {
    AttentionRow &row = rows[half];
    Value number = b.add(warpRow, placeInSum(Computed(b, lane), half).row);
    row.there = b.less(number, sizes->rows);
    number = b.min(number, lastRow);
    row.query = queryOf(b, number);
    row.head = headOf(b, number);
    row.begin = seenFrom(b, row.query);
    row.end = b.min(seenTo(b, row.query), end);
  }
  // Every row of the warp sees the keys from latestBegin to earliestEnd.
  Value first = queryOf(b, b.min(warpRow, lastRow));
  Value late =
      queryOf(b, b.min(b.add(warpRow, b.index(kWarpRows - 1)), lastRow));
  earliestEnd = b.min(seenTo(b, first), end);
  latestBegin = seenFrom(b, late);
}

Value AttentionPlace::countSteps(BlockBuilder &b) const {
  return b.ceilDiv(b.max(b.sub(end, begin), b.index(0)), tileKeys);
}

Value AttentionPlace::onEdge(BlockBuilder &b, Value first) const {
  Value edge = b.less(earliestEnd, b.add(first, b.index(tileKeys)));
  if (!modifiers.window)
    return edge;
  return arith::OrIOp::create(b.b, b.loc, edge, b.less(first, latestBegin));
}

Value AttentionPlace::lastKey(BlockBuilder &b) const {
  if (!modifiers.lengths)
    return b.sub(sizes->keys, b.index(1));
  return b.max(b.sub(end, b.index(1)), b.index(0));
}

Value AttentionPlace::queryOf(BlockBuilder &b, Value number) const {
  return b.div(number, sizes->group);
}
Value AttentionPlace::headOf(BlockBuilder &b, Value number) const {
  return b.add(b.mul(kvHead, sizes->group), b.rem(number, sizes->group));
}

KeysInReach AttentionPlace::reach(BlockBuilder &b) const {
  return {b, modifiers, sizes->queries, upToLast};
}
Value AttentionPlace::seenTo(BlockBuilder &b, Value query) const {
  return keysOfTile(b, reach(b), allKeys, query, b.index(1)).end;
}
Value AttentionPlace::seenFrom(BlockBuilder &b, Value query) const {
  KeysInReach reach = this->reach(b);
  Value begin = reach.begin(reach.ownKey(query));
  return begin ? begin : b.index(0);
}

//===----------------------------------------------------------------------===//
// Results
//===----------------------------------------------------------------------===//

namespace {
using PairOf = llvm::function_ref<Value(BlockBuilder &, int64_t, int64_t)>;
} // namespace

/// The lane's sums of a row, times `factor` if it is given; channels begin at
/// `start`, which is even, if that is given.
static void storeRow(BlockBuilder &b, const AttentionSizes &sizes,
                     const AttentionResult &result, PairOf pairOf, int64_t half,
                     Value to, ArrayRef<Value> row, Value factor,
                     Value start = {}) {
  int64_t bytes = bytesOf(to);
  int64_t lanes = sizes.valueWidth % 2 == 0 ? 2 : 1;
  // An even number of channels lies before each head of merged ones.
  int64_t align =
      lanes == 1 ? bytes
                 : std::min(2 * bytes, std::max(alignmentOfRows(to), bytes));
  Value column = placeInSum(Computed(b, result.lane), 0).column;
  for (int64_t n = 0; n < result.tiles; ++n) {
    Value pair = pairOf(b, n, half);
    for (int64_t i = 0; i < 2; i += lanes) {
      SmallVector<Value> numbers;
      for (int64_t lane = 0; lane < lanes; ++lane) {
        Value x = element(b, pair, i + lane);
        numbers.push_back(factor ? arith::MulFOp::create(b.b, b.loc, x, factor)
                                 : x);
      }
      Value vector = vector::FromElementsOp::create(
          b.b, b.loc, b.vectorType(lanes), numbers);
      Value channel =
          b.add(b.add(result.firstChannel, column), b.index(8 * n + i));
      SmallVector<Value> place(row);
      place.push_back(start ? b.add(start, channel) : channel);
      auto put = [&](BlockBuilder &b) { b.storeAt(vector, to, place, align); };
      if (result.before + 8 * (n + 1) <= sizes.valueWidth)
        put(b);
      else
        b.when(b.less(channel, b.index(sizes.valueWidth)), put);
    }
  }
}

void storeResult(BlockBuilder &b, AttentionIntoOp op,
                 const AttentionSizes &sizes, const AttentionPlace &place,
                 const AttentionResult &result, PairOf pairOf) {
  const AttentionParts *parts = result.parts;
  for (int64_t half = 0; half < 2; ++half) {
    const AttentionRow &row = place.rows[half];
    Value most = result.sums.most[half];
    Value sum = amongLanes(b, result.sums.sum[half],
                           [](BlockBuilder &b, Value lhs, Value rhs) -> Value {
                             return arith::AddFOp::create(b.b, b.loc, lhs, rhs);
                           });
    // One lane writes each value that is the same for all channels.
    Value first =
        b.less(b.add(b.rem(result.lane, 4), result.firstChannel), b.index(1));
    b.when(row.there, [&](BlockBuilder &b) {
      if (parts) {
        Value number = b.add(b.mul(place.batch, sizes.heads), row.head);
        number = b.add(b.mul(number, sizes.queries), row.query);
        number = b.add(b.mul(number, parts->count), result.part);
        storeRow(b, sizes, result, pairOf, half, parts->sums, {number}, {});
        b.when(first, [&](BlockBuilder &b) {
          Value state = vector::FromElementsOp::create(
              b.b, b.loc, b.vectorType(2), ValueRange{most, sum});
          b.storeAt(state, parts->states, {number, b.index(0)}, 8);
        });
        return;
      }
      FinishedRow done = finishRow(b, op, most, sum, row.head);
      if (isMerged(op))
        storeRow(b, sizes, result, pairOf, half, op.getDest(),
                 {place.batch, row.query}, done.factor,
                 b.mul(row.head, sizes.valueWidth));
      else
        storeRow(b, sizes, result, pairOf, half, op.getDest(),
                 {place.batch, row.head, row.query}, done.factor);
      if (Value lse = op.getLse())
        b.when(first, [&](BlockBuilder &b) {
          memref::StoreOp::create(b.b, b.loc, done.logSumExp, lse,
                                  ValueRange{place.batch, row.head, row.query});
        });
    });
  }
}

} // namespace attune
