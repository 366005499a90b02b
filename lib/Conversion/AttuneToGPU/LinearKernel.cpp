//===- LinearKernel.cpp - Few rows against a panel --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A product of few rows is as fast as its weights come from memory. A block of
// 128 threads takes one panel: thread t adds up the products of rows t, t + 128
// and so on of the panel, which lie one behind the other, four at a time so
// that many loads are under way. Then lanes exchange their sums by halves, and
// the warps theirs through shared memory, always in the same order.

#include "BlockBuilder.h"

#include "attune/Conversion/Activations.h"

using namespace mlir;

namespace attune {

constexpr int64_t kThreads = 128, kWarps = kThreads / 32, kUnroll = 4;

int64_t LinearKernel::width() {
  return cast<MemRefType>(op.getDest().getType()).getDimSize(1);
}
int64_t LinearKernel::depth() {
  return cast<MemRefType>(op.getWeight().getType()).getDimSize(1);
}
int64_t LinearKernel::panels() {
  return cast<MemRefType>(op.getWeight().getType()).getDimSize(0) / parts();
}

void LinearKernel::finish(BlockBuilder &b, Value sum, Value up, Value row,
                          Value column) {
  int64_t lanes = cast<VectorType>(sum.getType()).getDimSize(0);
  auto bytes = [&](Value buffer) {
    return lanes * cast<MemRefType>(buffer.getType()).getElementTypeBitWidth() /
           8;
  };
  auto addBias = [&](Value value, Value first) -> Value {
    if (!op.getBias())
      return value;
    // The second half of an odd number of entries is aligned to one.
    int64_t align = width() % lanes == 0 ? bytes(op.getBias())
                                         : bytes(op.getBias()) / lanes;
    return arith::AddFOp::create(
        b.b, b.loc, value, b.loadWide(op.getBias(), {first}, lanes, align));
  };
  Value y = emitActivation(b, op.getActivation(), addBias(sum, column));
  if (up)
    y = arith::MulFOp::create(b.b, b.loc,
                              addBias(up, b.add(column, b.index(width()))), y);
  if (auto scale = op.getScale())
    y = arith::MulFOp::create(b.b, b.loc, y,
                              b.splat(scale->convertToDouble(), lanes));
  int64_t align =
      std::min(bytes(op.getDest()), std::max(alignmentOfRows(op.getDest()),
                                             bytes(op.getDest()) / lanes));
  if (op.getResidual())
    y = arith::AddFOp::create(
        b.b, b.loc, y, b.loadWide(op.getDest(), {row, column}, lanes, align));
  b.storeAt(y, op.getDest(), {row, column}, align);
}

void LinearKernel::emitForFewRows(KernelBuilder &outer, int64_t rows) {
  OpBuilder::InsertionGuard guard(outer.b);
  BlockBuilder b(outer);
  auto weightType = cast<MemRefType>(op.getWeight().getType());
  int64_t lanes = weightType.getDimSize(2), depth = this->depth();
  int64_t panelBytes = lanes * weightType.getElementTypeBitWidth() / 8;
  int64_t sums = parts() * rows;
  Value numRows = b.sizeOf(op.getDest(), 0);
  Value blocks = b.mul(b.index(panels()), b.ceilDiv(numRows, rows));
  BlockLaunch launch(b, blocks, kThreads);
  Value shared = launch.shared(kWarps * sums * lanes, b.b.getF32Type());
  Value panel = b.rem(launch.block, panels());
  Value firstRow = b.mul(b.div(launch.block, panels()), rows);
  SmallVector<Value> rowAt;
  for (int64_t r = 0; r < rows; ++r)
    // Rows that are not there are the last one again, and not stored.
    rowAt.push_back(rows == 1 ? firstRow
                              : b.min(b.add(firstRow, b.index(r)),
                                      b.sub(numRows, b.index(1))));
  // Adds the products at some places of the depth, all loaded first.
  auto addProducts = [&](BlockBuilder &b, ArrayRef<Value> at,
                         ValueRange before) {
    SmallVector<Value> weights, inputs, next(before);
    for (Value k : at) {
      for (int64_t part = 0; part < parts(); ++part)
        weights.push_back(b.loadWide(
            op.getWeight(),
            {b.add(b.mul(panel, parts()), b.index(part)), k, b.index(0)}, lanes,
            std::min<int64_t>(panelBytes & -panelBytes, 16)));
      for (Value row : rowAt) {
        Value x = b.loadWide(op.getInput(), {row, k}, 1, 0);
        inputs.push_back(vector::BroadcastOp::create(
            b.b, b.loc, b.vectorType(lanes),
            vector::ExtractOp::create(b.b, b.loc, x, int64_t{0})));
      }
    }
    for (size_t i = 0; i < at.size(); ++i)
      for (int64_t part = 0; part < parts(); ++part)
        for (int64_t r = 0; r < rows; ++r)
          next[part * rows + r] =
              b.fma(inputs[i * rows + r], weights[i * parts() + part],
                    next[part * rows + r]);
    return next;
  };
  KernelBuilder::Values zero(sums, b.splat(0.0, lanes));
  int64_t step = kThreads * kUnroll, whole = depth / step * step;
  KernelBuilder::Values total =
      b.forLoop(b.index(0), b.index(whole), step, zero,
                [&](KernelBuilder &k, Value base, ValueRange carried) {
                  BlockBuilder b(k);
                  SmallVector<Value> at;
                  for (int64_t i = 0; i < kUnroll; ++i)
                    at.push_back(b.add(b.add(base, launch.thread),
                                       b.index(i * kThreads)));
                  return addProducts(b, at, carried);
                });
  if (whole < depth)
    total = b.forLoop(b.add(launch.thread, b.index(whole)), b.index(depth),
                      kThreads, total,
                      [&](KernelBuilder &k, Value at, ValueRange carried) {
                        BlockBuilder b(k);
                        return addProducts(b, at, carried);
                      });
  // Lanes of a warp: all end with the same sums.
  for (Value &sum : total) {
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < lanes; ++i) {
      Value x = vector::ExtractOp::create(b.b, b.loc, sum, i);
      for (int32_t distance = 16; distance > 0; distance /= 2) {
        Value other = gpu::ShuffleOp::create(b.b, b.loc, x, distance, 32,
                                             gpu::ShuffleMode::XOR)
                          .getShuffleResult();
        x = arith::AddFOp::create(b.b, b.loc, x, other);
      }
      numbers.push_back(x);
    }
    sum = vector::FromElementsOp::create(b.b, b.loc, b.vectorType(lanes),
                                         numbers);
  }
  Value warp = b.div(launch.thread, 32), lane = b.rem(launch.thread, 32);
  b.when(b.less(lane, b.index(1)), [&](BlockBuilder &b) {
    for (auto [i, sum] : llvm::enumerate(total))
      b.storeAt(sum, shared,
                {b.mul(b.add(b.mul(warp, sums), b.index(i)), lanes)}, 16);
  });
  b.barrier();
  // One thread for each result.
  b.when(b.less(launch.thread, b.index(rows * lanes)), [&](BlockBuilder &b) {
    Value r = b.div(launch.thread, lanes), n = b.rem(launch.thread, lanes);
    Value row = b.add(firstRow, r);
    Value column = b.add(b.mul(panel, lanes), n);
    auto sumUp = [&](int64_t part) {
      SmallVector<Value> of;
      for (int64_t warp = 0; warp < kWarps; ++warp)
        of.push_back(b.loadAt(
            shared,
            {b.add(b.mul(b.add(r, b.index(warp * sums + part * rows)), lanes),
                   n)},
            1, 4));
      while (of.size() > 1) {
        size_t half = of.size() / 2;
        for (size_t i = 0; i < half; ++i)
          of[i] = arith::AddFOp::create(b.b, b.loc, of[i], of[i + half]);
        of.resize(half);
      }
      return of[0];
    };
    Value inside =
        b.both(b.less(row, numRows), b.less(column, b.index(width())));
    b.when(inside, [&](BlockBuilder &b) {
      finish(b, sumUp(0), op.getGated() ? sumUp(1) : Value(), row, column);
    });
  });
}

} // namespace attune
