//===- ExpertTasks.cpp - The order of a mixture's work ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block for each expert, and none waits for another: each reads every slot's
// expert, counts the smaller ones, which come before its own, and places its
// own behind them. Its threads share the slots in runs, so that the order of
// equal ones is kept: one pass counts, the second one writes.

#include "BlockBuilder.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

constexpr int64_t kThreads = 128;

void emitExpertTasks(KernelBuilder &outer, ExpertTasksIntoOp op) {
  using Values = KernelBuilder::Values;
  OpBuilder::InsertionGuard guard(outer.b);
  BlockBuilder b(outer);
  int64_t active = cast<MemRefType>(op.getChosen().getType()).getDimSize(1),
          rows = op.getRows();
  Value slots = b.mul(b.sizeOf(op.getChosen(), 0), active);
  BlockLaunch launch(b, b.index(op.getExperts()), kThreads);
  Type i64 = b.b.getI64Type();
  Value lessOf = launch.shared(kThreads, i64),
        equalOf = launch.shared(kThreads, i64);
  Value expert = launch.block, thread = launch.thread, zero = b.index(0);

  auto load = [](KernelBuilder &k, Value from, ValueRange at) -> Value {
    Value number = memref::LoadOp::create(k.b, k.loc, from, at);
    return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), number);
  };
  auto store = [&](KernelBuilder &k, Value number, Value to, ValueRange at) {
    Value cast = arith::IndexCastOp::create(k.b, k.loc, i64, number);
    memref::StoreOp::create(k.b, k.loc, cast, to, at);
  };
  auto expertOf = [&](BlockBuilder &b, Value slot) {
    return load(b, op.getChosen(), {b.div(slot, active), b.rem(slot, active)});
  };
  auto isMine = [&](BlockBuilder &b, Value other) -> Value {
    return arith::CmpIOp::create(b.b, b.loc, arith::CmpIPredicate::eq, other,
                                 expert);
  };

  Value run = b.ceilDiv(slots, kThreads);
  Value begin = b.min(b.mul(thread, run), slots);
  Value end = b.min(b.add(begin, run), slots);
  Values counts = b.forLoop(
      begin, end, 1, {zero, zero},
      [&](KernelBuilder &k, Value slot, ValueRange c) {
        BlockBuilder b(k);
        Value other = expertOf(b, slot), one = b.index(1);
        return Values{b.add(c[0], b.select(b.less(other, expert), one, zero)),
                      b.add(c[1], b.select(isMine(b, other), one, zero))};
      });
  store(b, counts[0], lessOf, {thread});
  store(b, counts[1], equalOf, {thread});
  b.barrier();
  // Where the expert's slots begin, how many they are, and how many of them
  // belong to the threads before this one.
  Values sums =
      b.forLoop(zero, b.index(kThreads), 1, {zero, zero, zero},
                [&](KernelBuilder &k, Value other, ValueRange c) {
                  BlockBuilder b(k);
                  Value mine = load(b, equalOf, {other});
                  Value before = b.select(b.less(other, thread), mine, zero);
                  return Values{b.add(c[0], load(b, lessOf, {other})),
                                b.add(c[1], mine), b.add(c[2], before)};
                });
  Value first = sums[0], count = sums[1];
  b.forLoop(begin, end, 1, {b.add(first, sums[2])},
            [&](KernelBuilder &k, Value slot, ValueRange c) {
              BlockBuilder b(k);
              Value mine = isMine(b, expertOf(b, slot));
              b.when(mine, [&](BlockBuilder &b) {
                store(b, b.div(slot, active), op.getFrom(), {c[0]});
                store(b, c[0], op.getPlaces(), {slot});
              });
              return Values{b.add(c[0], b.select(mine, b.index(1), zero))};
            });
  // Its tasks, and what is left of its share of the list.
  auto entry = [&](Value place) { return b.add(b.div(place, rows), expert); };
  Value firstTask = entry(first),
        endTask = b.add(entry(b.add(first, count)), b.index(1));
  // Without the slots of other ranks' experts the list is too long.
  Value isLast = b.less(b.index(op.getExperts() - 2), expert);
  endTask = b.select(isLast, b.sizeOf(op.getTasks(), 0), endTask);
  b.forLoop(
      b.add(firstTask, thread), endTask, kThreads, {},
      [&](KernelBuilder &k, Value task, ValueRange) {
        BlockBuilder b(k);
        Value before = b.mul(b.sub(task, firstTask), rows);
        Value rest =
            arith::MaxSIOp::create(b.b, b.loc, b.sub(count, before), zero);
        store(b, expert, op.getTasks(), {task, zero});
        store(b, b.add(first, before), op.getTasks(), {task, b.index(1)});
        store(b, b.min(rest, b.index(rows)), op.getTasks(), {task, b.index(2)});
        return Values();
      });
}

} // namespace attune
