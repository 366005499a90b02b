//===- AttentionMerge.cpp - Parts of the keys put together ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// One thread for each number of the result: it reads the parts' states, which
// its neighbours read as well, and their sums, which are next to theirs. In
// order, so that the result is the same every time.

#include "Attention.h"

#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>

using namespace mlir;

namespace attune {

void emitMerge(KernelBuilder &k, AttentionIntoOp op,
               const AttentionSizes &sizes, const AttentionParts &parts) {
  constexpr int64_t threads = 128;
  OpBuilder::InsertionGuard guard(k.b);
  BlockBuilder b(k);
  Value total = b.mul(b.mul(sizes.batches, sizes.heads * sizes.valueWidth),
                      sizes.queries);
  BlockLaunch launch(b, b.ceilDiv(total, threads), threads);
  Value number = b.add(b.mul(launch.block, threads), launch.thread);
  b.when(b.less(number, total), [&](BlockBuilder &b) {
    Value channel = b.rem(number, sizes.valueWidth);
    Value row = b.div(number, sizes.valueWidth);
    Value query = b.rem(row, sizes.queries), heads = b.div(row, sizes.queries);
    Value head = b.rem(heads, sizes.heads), batch = b.div(heads, sizes.heads);
    Value first = b.mul(row, parts.count);
    auto stateOf = [&](BlockBuilder &b, Value part, int64_t column) {
      return b.loadNumber(parts.states, {b.add(first, part), b.index(column)});
    };
    Value none = b.f32(-INFINITY), zero = b.f32(0);
    Value most = b.forLoop(b.index(0), parts.count, 1, none,
                           [&](KernelBuilder &k, Value part, ValueRange most) {
                             BlockBuilder b(k);
                             return KernelBuilder::Values{
                                 maximum(b, most[0], stateOf(b, part, 0))};
                           })[0];
    Value safe = orZero(b, most);
    KernelBuilder::Values sums = b.forLoop(
        b.index(0), parts.count, 1, {zero, zero},
        [&](KernelBuilder &k, Value part, ValueRange sums) {
          BlockBuilder b(k);
          Value share = weightOfMaximum(b, stateOf(b, part, 0), safe);
          Value here = b.loadNumber(parts.sums, {b.add(first, part), channel});
          auto addTo = [&](Value sum, Value of) -> Value {
            return math::FmaOp::create(b.b, b.loc, share, of, sum);
          };
          return KernelBuilder::Values{addTo(sums[0], here),
                                       addTo(sums[1], stateOf(b, part, 1))};
        });
    FinishedRow done = finishRow(b, op, most, sums[1], head);
    Value result = arith::MulFOp::create(b.b, b.loc, sums[0], done.factor);
    if (Type type = elementOf(op.getDest()); !type.isF32())
      result = arith::TruncFOp::create(b.b, b.loc, type, result);
    SmallVector<Value> place = {batch, head, query, channel};
    if (isMerged(op))
      place = {batch, query, b.add(b.mul(head, sizes.valueWidth), channel)};
    memref::StoreOp::create(b.b, b.loc, result, op.getDest(), place);
    if (Value lse = op.getLse())
      b.when(b.less(channel, b.index(1)), [&](BlockBuilder &b) {
        memref::StoreOp::create(b.b, b.loc, done.logSumExp, lse,
                                ValueRange{batch, head, query});
      });
  });
}

} // namespace attune
