//===- FewRows.cpp - Few rows against a panel -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A product of few rows is as fast as its weights come from memory. A block
// takes one panel: of its T threads, thread t adds up the products of rows t,
// t + T and so on of the panel, which lie one behind the other, several at a
// time so that many loads are under way. The fewer panels there are, the more
// threads each has, or memory would wait for the chip. Then lanes exchange
// their sums by halves, and the warps theirs through shared memory, always in
// the same order.
//
// Where the rows are the norm of others, a block reads those: their squares are
// one sum more beside the products, whose factor one by their root is. A layer
// norm has to know the mean first, as a difference of two sums would cancel:
// the threads find it and the squares of what is left before they multiply.

#include "QuantizedNumbers.h"
#include "TensorCores.h"

#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attune {

static int64_t ceilOf(int64_t number, int64_t by) {
  return (number + by - 1) / by;
}

namespace {
/// Some rows against one panel, by the threads of a block.
class FewRowsOfPanel {
public:
  FewRowsOfPanel(BlockBuilder &b, LinearKernel &kernel, Value thread,
                 int64_t threads, Value panel, const LinearKernel::Group &group,
                 int64_t rows, const FewRowsMemory &shared);
  /// Each thread's part of the sums: for gate and up, and for each row, a
  /// vector of the panel's lanes; then the squares of each row, if they are
  /// found meanwhile.
  KernelBuilder::Values sumProducts(BlockBuilder &b);
  /// The sums of a warp's threads, which all of them then have.
  void addLanes(BlockBuilder &b, MutableArrayRef<Value> total);
  /// One thread for each result adds up the warps' sums and stores it.
  void addWarps(BlockBuilder &b, ValueRange total);

private:
  /// A row of a panel as it is stored, and what scales it, if anything does.
  struct Weights {
    Value numbers, scales, zeros;
  };
  /// What a place of the depth has: weights, of gate and up apart, and what
  /// rows are multiplied by and added to, if they are normalised.
  struct Loaded {
    SmallVector<Weights, 2> weights;
    Value gamma, beta;
  };
  SmallVector<Loaded> loadWeights(BlockBuilder &b, ArrayRef<Value> at);
  /// A column of a row of weights, as f32.
  Value widen(BlockBuilder &b, const Weights &weights, int64_t column);
  /// Adds the products at some places, all loaded first. `isThere` says whether
  /// the last of them exists, if that is not known.
  KernelBuilder::Values addProducts(BlockBuilder &b, ArrayRef<Value> at,
                                    ArrayRef<Loaded> loaded, ValueRange before,
                                    Value isThere);
  SmallVector<Value> placesFrom(BlockBuilder &b, Value base, int64_t count);
  Value keepInside(BlockBuilder &b, MutableArrayRef<Value> at, int64_t left);
  void awaitRows(BlockBuilder &b);
  /// The columns of a row at a place, as they are read.
  Value loadColumns(BlockBuilder &b, Value row, Value place);
  bool sumsSquares() { return shared.statistics && !kernel.norm.centred; }
  /// Means and factors of all rows, where they have to be known before.
  void findStatistics(BlockBuilder &b);
  /// The average of what `term` makes of a row's columns, for each row.
  SmallVector<Value>
  averages(BlockBuilder &b, int64_t slot,
           llvm::function_ref<Value(BlockBuilder &, int64_t row, Value columns)>
               term);
  Value normalise(BlockBuilder &b, Value x, int64_t r, const Loaded &place);
  void storeByWarps(BlockBuilder &b, ValueRange sums, Value memory,
                    int64_t first);
  /// The sum of what the warps left in shared memory, always in one order.
  Value sumOfWarps(BlockBuilder &b, Value memory,
                   llvm::function_ref<Value(int64_t warp)> placeOf);
  /// One by the root of an average of squares.
  Value inverseRoot(BlockBuilder &b, Value squares);

  LinearKernel &kernel;
  Value thread, panel;
  int64_t threads;
  const LinearKernel::Group &group;
  QuantizedNumbers quantized;
  int64_t rows, lanes, panelBytes;
  FewRowsMemory shared;
  SmallVector<Value> rowAt, means, factors;
};
} // namespace

FewRowsOfPanel::FewRowsOfPanel(BlockBuilder &b, LinearKernel &kernel,
                               Value thread, int64_t threads, Value panel,
                               const LinearKernel::Group &group, int64_t rows,
                               const FewRowsMemory &shared)
    : kernel(kernel), thread(thread), panel(panel), threads(threads),
      group(group), quantized(kernel.numbers()), rows(rows),
      lanes(kernel.lanes()), shared(shared) {
  auto weightType = cast<MemRefType>(kernel.weight.getType());
  panelBytes =
      weightType.getShape().back() * weightType.getElementTypeBitWidth() / 8;
  for (int64_t r = 0; r < rows; ++r) {
    // Missing rows repeat the last one, and are not stored.
    Value row = rows == 1 ? group.first
                          : b.min(b.add(group.first, b.index(r)),
                                  b.sub(group.end, b.index(1)));
    rowAt.push_back(kernel.sourceOf(b, row));
  }
}

SmallVector<FewRowsOfPanel::Loaded>
FewRowsOfPanel::loadWeights(BlockBuilder &b, ArrayRef<Value> at) {
  int64_t elements =
      cast<MemRefType>(kernel.weight.getType()).getShape().back();
  SmallVector<Loaded> all;
  for (Value k : at) {
    Loaded &place = all.emplace_back();
    auto channels = [&](Value from) -> Value {
      int64_t side = kernel.side();
      return from ? b.loadAt(from, {b.mul(k, side)}, side,
                             side == 1
                                 ? 0
                                 : std::min<int64_t>(side * bytesOf(from), 16))
                  : Value();
    };
    if (shared.statistics) {
      place.gamma = channels(kernel.norm.gamma);
      place.beta = channels(kernel.norm.beta);
    }
    for (int64_t part = 0; part < kernel.parts(); ++part) {
      Value number = b.add(b.mul(panel, kernel.parts()), b.index(part));
      Weights &here = place.weights.emplace_back();
      here.numbers = b.loadAt(
          kernel.weight, kernel.panelAt(group, number, {k, b.index(0)}),
          elements, std::min<int64_t>(panelBytes & -panelBytes, 16));
      if (!kernel.bits)
        continue;
      Value first = b.div(k, kernel.group / kernel.side());
      if (kernel.zeros)
        first = b.mul(first, 2);
      auto scalesAt = [&](Value row) {
        return quantized.loadScales(
            b, kernel.scales, kernel.panelAt(group, number, {row, b.index(0)}),
            lanes);
      };
      here.scales = scalesAt(first);
      if (kernel.zeros)
        here.zeros = scalesAt(b.add(first, b.index(1)));
    }
  }
  return all;
}

/// Separate from the load, or the thread would wait for the data there.
Value FewRowsOfPanel::widen(BlockBuilder &b, const Weights &weights,
                            int64_t column) {
  auto type = cast<VectorType>(weights.numbers.getType());
  if (type.getElementType().isF32())
    return weights.numbers;
  if (!kernel.bits)
    return arith::ExtFOp::create(b.b, b.loc, b.vectorType(lanes),
                                 weights.numbers);
  auto words = VectorType::get({lanes}, b.b.getI32Type());
  Value word = vector::BitCastOp::create(b.b, b.loc, words, weights.numbers);
  Value shift = arith::ConstantOp::create(
      b.b, b.loc,
      DenseElementsAttr::get(words, APInt(32, quantized.shiftOf(column))));
  Value number =
      quantized.toFloats(b, arith::ShRUIOp::create(b.b, b.loc, word, shift));
  return kernel.zeros ? arith::SubFOp::create(b.b, b.loc, number, weights.zeros)
                      : number;
}

Value FewRowsOfPanel::loadColumns(BlockBuilder &b, Value row, Value place) {
  int64_t side = kernel.side();
  Value from = shared.statistics ? kernel.norm.rows : kernel.input;
  int64_t align = std::min(alignmentOfRows(from), side * bytesOf(from));
  return b.loadWide(from, {row, b.mul(place, side)}, side,
                    side == 1 ? 0 : align);
}

KernelBuilder::Values FewRowsOfPanel::addProducts(BlockBuilder &b,
                                                  ArrayRef<Value> at,
                                                  ArrayRef<Loaded> loaded,
                                                  ValueRange before,
                                                  Value isThere) {
  int64_t side = kernel.side();
  SmallVector<SmallVector<Value>> inputs; // by place and row, its columns
  KernelBuilder::Values next(before);
  auto replace = [&](Value &sum, Value more, size_t place) {
    bool last = isThere && place + 1 == at.size();
    sum = last ? b.select(isThere, more, sum) : more;
  };
  SmallVector<Value> read;
  for (Value k : at)
    for (Value row : rowAt)
      read.push_back(loadColumns(b, row, k));
  for (auto [i, place] : llvm::enumerate(loaded))
    for (int64_t r = 0; r < rows; ++r) {
      Value x = read[i * rows + r];
      if (sumsSquares()) {
        Value &squares = next[kernel.parts() * rows + r];
        Value more = squares;
        for (int64_t column = 0; column < side; ++column) {
          Value one = vector::BroadcastOp::create(
              b.b, b.loc, b.vectorType(1),
              vector::ExtractOp::create(b.b, b.loc, x, column));
          more = b.fma(one, one, more);
        }
        replace(squares, more, i);
      }
      if (shared.statistics)
        x = normalise(b, x, r, place);
      SmallVector<Value> &columns = inputs.emplace_back();
      for (int64_t column = 0; column < side; ++column)
        columns.push_back(vector::BroadcastOp::create(
            b.b, b.loc, b.vectorType(lanes),
            vector::ExtractOp::create(b.b, b.loc, x, column)));
    }
  for (size_t i = 0; i < at.size(); ++i)
    for (int64_t part = 0; part < kernel.parts(); ++part) {
      const Weights &here = loaded[i].weights[part];
      auto sums = MutableArrayRef(next).slice(part * rows, rows);
      KernelBuilder::Values more(sums.begin(), sums.end());
      if (here.scales)
        more.assign(rows, b.splat(0.0, lanes));
      for (int64_t column = 0; column < side; ++column) {
        Value wide = widen(b, here, column);
        for (int64_t r = 0; r < rows; ++r)
          more[r] = b.fma(inputs[i * rows + r][column], wide, more[r]);
      }
      for (int64_t r = 0; r < rows; ++r) {
        if (here.scales)
          more[r] = b.fma(more[r], here.scales, sums[r]);
        replace(sums[r], more[r], i);
      }
    }
  return next;
}

/// Columns of row `r` as they are multiplied, but for what their sums are
/// multiplied by.
Value FewRowsOfPanel::normalise(BlockBuilder &b, Value x, int64_t r,
                                const Loaded &place) {
  int64_t side = kernel.side();
  auto all = [&](Value one) { // in all columns
    return vector::BroadcastOp::create(
        b.b, b.loc, b.vectorType(side),
        vector::ExtractOp::create(b.b, b.loc, one, 0));
  };
  if (kernel.norm.centred) {
    x = arith::SubFOp::create(b.b, b.loc, x, all(means[r]));
    x = arith::MulFOp::create(b.b, b.loc, x, all(factors[r]));
  }
  if (place.gamma) {
    Value gamma = b.widen(place.gamma);
    if (kernel.norm.offset != 0)
      gamma = arith::AddFOp::create(b.b, b.loc, gamma,
                                    b.splat(kernel.norm.offset, side));
    x = arith::MulFOp::create(b.b, b.loc, x, gamma);
  }
  if (place.beta)
    x = arith::AddFOp::create(b.b, b.loc, x, b.widen(place.beta));
  return x;
}

Value FewRowsOfPanel::inverseRoot(BlockBuilder &b, Value squares) {
  return math::RsqrtOp::create(
      b.b, b.loc,
      arith::AddFOp::create(b.b, b.loc, squares, b.splat(kernel.norm.eps, 1)));
}

Value FewRowsOfPanel::sumOfWarps(
    BlockBuilder &b, Value memory,
    llvm::function_ref<Value(int64_t warp)> placeOf) {
  SmallVector<Value> of;
  for (int64_t warp = 0; warp < threads / 32; ++warp)
    of.push_back(b.loadAt(memory, {placeOf(warp)}, 1, 4));
  while (of.size() > 1) {
    size_t half = of.size() / 2;
    for (size_t i = 0; i < half; ++i)
      of[i] = arith::AddFOp::create(b.b, b.loc, of[i], of[i + half]);
    of.resize(half);
  }
  return of[0];
}

SmallVector<Value> FewRowsOfPanel::averages(
    BlockBuilder &b, int64_t slot,
    llvm::function_ref<Value(BlockBuilder &, int64_t row, Value columns)>
        term) {
  // Vectors that are loaded at once.
  constexpr int64_t most = 8;
  int64_t side = kernel.side(), depth = kernel.depth() / side;
  KernelBuilder::Values total(rows, b.splat(0.0, side));
  auto add = [&](BlockBuilder &b, ArrayRef<Value> at, ValueRange before,
                 Value isThere) {
    SmallVector<Value> read;
    for (Value place : at)
      for (Value row : rowAt)
        read.push_back(loadColumns(b, row, place));
    KernelBuilder::Values next(before);
    for (size_t i = 0; i < at.size(); ++i)
      for (int64_t r = 0; r < rows; ++r) {
        Value more = arith::AddFOp::create(b.b, b.loc, next[r],
                                           term(b, r, read[i * rows + r]));
        bool last = isThere && i + 1 == at.size();
        next[r] = last ? b.select(isThere, more, next[r]) : more;
      }
    return next;
  };
  int64_t step = most * threads, whole = depth / step * step;
  if (whole > 0)
    total =
        b.forLoop(b.index(0), b.index(whole), step, total,
                  [&](KernelBuilder &k, Value base, ValueRange carried) {
                    BlockBuilder b(k);
                    return add(b, placesFrom(b, base, most), carried, Value());
                  });
  if (int64_t left = depth - whole) {
    SmallVector<Value> at =
        placesFrom(b, b.index(whole), ceilOf(left, threads));
    total = add(b, at, total, keepInside(b, at, left));
  }
  for (Value &sum : total)
    sum = b.splat(vector::ReductionOp::create(b.b, b.loc,
                                              vector::CombiningKind::ADD, sum),
                  1);
  addLanes(b, total);
  int64_t first = slot * threads / 32 * rows;
  storeByWarps(b, total, shared.statistics, first);
  b.barrier();
  SmallVector<Value> found;
  for (int64_t r = 0; r < rows; ++r) {
    Value sum = sumOfWarps(b, shared.statistics, [&](int64_t warp) {
      return b.index(first + warp * rows + r);
    });
    found.push_back(
        arith::DivFOp::create(b.b, b.loc, sum, b.splat(kernel.depth(), 1)));
  }
  return found;
}

void FewRowsOfPanel::findStatistics(BlockBuilder &b) {
  if (!shared.statistics || !kernel.norm.centred)
    return;
  means = averages(b, 0, [](BlockBuilder &, int64_t, Value x) { return x; });
  factors = averages(b, 1, [&](BlockBuilder &b, int64_t r, Value x) -> Value {
    Value mean = vector::BroadcastOp::create(
        b.b, b.loc, x.getType(),
        vector::ExtractOp::create(b.b, b.loc, means[r], 0));
    Value left = arith::SubFOp::create(b.b, b.loc, x, mean);
    return arith::MulFOp::create(b.b, b.loc, left, left);
  });
  for (Value &factor : factors)
    factor = inverseRoot(b, factor);
}

/// A warp's sums, one number each, from place `first` on.
void FewRowsOfPanel::storeByWarps(BlockBuilder &b, ValueRange sums,
                                  Value memory, int64_t first) {
  Value warp = b.div(thread, 32), lane = b.rem(thread, 32);
  b.when(b.less(lane, b.index(1)), [&](BlockBuilder &b) {
    for (auto [i, sum] : llvm::enumerate(sums))
      b.storeAt(sum, memory,
                {b.add(b.mul(warp, sums.size()), b.index(first + i))}, 4);
  });
}

SmallVector<Value> FewRowsOfPanel::placesFrom(BlockBuilder &b, Value base,
                                              int64_t count) {
  SmallVector<Value> at;
  for (int64_t i = 0; i < count; ++i)
    at.push_back(b.add(b.add(base, thread), b.index(i * threads)));
  return at;
}

/// Moves the last of these places, `left` of which exist, to where the depth
/// ends, if it might be behind; whether it exists, if that is not known.
Value FewRowsOfPanel::keepInside(BlockBuilder &b, MutableArrayRef<Value> at,
                                 int64_t left) {
  if (left % threads == 0)
    return Value();
  int64_t depth = kernel.depth() / kernel.side();
  Value isThere = b.less(at.back(), b.index(depth));
  at.back() = b.min(at.back(), b.index(depth - 1));
  return isThere;
}

void FewRowsOfPanel::awaitRows(BlockBuilder &b) {
  if (kernel.dependent && !kernel.tasks)
    NVVM::GriddepcontrolOp::create(b.b, b.loc, NVVM::GridDepActionKind::wait);
  findStatistics(b);
}

KernelBuilder::Values FewRowsOfPanel::sumProducts(BlockBuilder &b) {
  // A step's places of the depth: few enough that the blocks of all panels have
  // registers at once, and the same number in each step.
  int64_t depth = kernel.depth() / kernel.side();
  int64_t ofThread = ceilOf(depth, threads);
  int64_t loadBytes = kernel.gated ? 48 : rows > 1 ? 64 : 128;
  // Columns and their gains take registers as well.
  if (shared.statistics && kernel.bits)
    loadBytes = std::min<int64_t>(loadBytes, 96);
  // A row of numbers in few bits has several columns.
  int64_t most = std::max<int64_t>(kernel.bits ? 1 : 2,
                                   loadBytes / panelBytes /
                                       (kernel.bits && rows > 1 ? 2 : 1));
  int64_t places = ceilOf(ofThread, ceilOf(ofThread, most));
  int64_t step = places * threads, whole = depth / step * step;
  KernelBuilder::Values total(kernel.parts() * rows, b.splat(0.0, lanes));
  if (sumsSquares())
    total.append(rows, b.splat(0.0, 1));
  int64_t first = 0;
  if (whole > 0) {
    SmallVector<Value> at = placesFrom(b, b.index(0), places);
    SmallVector<Loaded> weights = loadWeights(b, at);
    // The first weights are loaded while the kernel that makes the rows still
    // runs.
    awaitRows(b);
    total = addProducts(b, at, weights, total, Value());
    first = step;
  }
  if (first < whole)
    total = b.forLoop(b.index(first), b.index(whole), step, total,
                      [&](KernelBuilder &k, Value base, ValueRange carried) {
                        BlockBuilder b(k);
                        SmallVector<Value> at = placesFrom(b, base, places);
                        return addProducts(b, at, loadWeights(b, at), carried,
                                           Value());
                      });
  if (int64_t left = depth - whole) {
    SmallVector<Value> at =
        placesFrom(b, b.index(whole), ceilOf(left, threads));
    Value isThere = keepInside(b, at, left);
    SmallVector<Loaded> weights = loadWeights(b, at);
    if (first == 0)
      awaitRows(b);
    total = addProducts(b, at, weights, total, isThere);
  }
  return total;
}

void FewRowsOfPanel::addLanes(BlockBuilder &b, MutableArrayRef<Value> total) {
  for (Value &sum : total) {
    auto type = cast<VectorType>(sum.getType());
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < type.getDimSize(0); ++i) {
      Value x = vector::ExtractOp::create(b.b, b.loc, sum, i);
      for (int32_t distance = 16; distance > 0; distance /= 2) {
        Value other = gpu::ShuffleOp::create(b.b, b.loc, x, distance, 32,
                                             gpu::ShuffleMode::XOR)
                          .getShuffleResult();
        x = arith::AddFOp::create(b.b, b.loc, x, other);
      }
      numbers.push_back(x);
    }
    sum = vector::FromElementsOp::create(b.b, b.loc, type, numbers);
  }
}

void FewRowsOfPanel::addWarps(BlockBuilder &b, ValueRange total) {
  int64_t sums = kernel.parts() * rows;
  Value warp = b.div(thread, 32), lane = b.rem(thread, 32);
  b.when(b.less(lane, b.index(1)), [&](BlockBuilder &b) {
    for (auto [i, sum] : llvm::enumerate(total.take_front(sums)))
      b.storeAt(sum, shared.sums,
                {b.mul(b.add(b.mul(warp, sums), b.index(i)), lanes)}, 16);
  });
  if (sumsSquares())
    storeByWarps(b, total.drop_front(sums), shared.statistics, 0);
  auto barrier = gpu::BarrierOp::create(b.b, b.loc);
  if (!kernel.tasks) {
    int64_t blocks =
        blocksAtOnce(kernel.panels(), threads, rows, kernel.multiprocessors);
    // Gate and up of several rows would not have registers for their sums.
    if (kernel.gated && rows > 1)
      blocks = std::min<int64_t>(blocks, std::max<int64_t>(1, 384 / threads));
    barrier->setAttr(kBlocksAtOnce, b.b.getI64IntegerAttr(blocks));
    barrier->setAttr(kRowsOfPanel, b.b.getI64IntegerAttr(rows));
  }
  b.when(b.less(thread, b.index(rows * lanes)), [&](BlockBuilder &b) {
    Value r = b.div(thread, lanes), n = b.rem(thread, lanes);
    Value row = b.add(group.first, r);
    Value column = b.add(b.mul(panel, lanes), n);
    auto sumUp = [&](int64_t part, Value factor) -> Value {
      Value sum = sumOfWarps(b, shared.sums, [&](int64_t warp) {
        return b.add(b.mul(b.add(r, b.index(warp * sums + part * rows)), lanes),
                     n);
      });
      return factor ? arith::MulFOp::create(b.b, b.loc, sum, factor) : sum;
    };
    Value inside =
        b.both(b.less(row, group.end), b.less(column, b.index(kernel.width())));
    b.when(inside, [&](BlockBuilder &b) {
      Value factor;
      if (sumsSquares()) {
        Value squares = sumOfWarps(b, shared.statistics, [&](int64_t warp) {
          return b.add(r, b.index(warp * rows));
        });
        factor =
            inverseRoot(b, arith::DivFOp::create(b.b, b.loc, squares,
                                                 b.splat(kernel.depth(), 1)));
      }
      kernel.finish(b, group.part, sumUp(0, factor),
                    kernel.gated ? sumUp(1, factor) : Value(), row, column);
    });
  });
}

void LinearKernel::emitFewRows(BlockBuilder &b, Value thread, int64_t threads,
                               const FewRowsMemory &shared, Value panel,
                               const Group &group, int64_t rows) {
  FewRowsOfPanel product(b, *this, thread, threads, panel, group, rows, shared);
  KernelBuilder::Values total = product.sumProducts(b);
  product.addLanes(b, total);
  product.addWarps(b, total);
}

} // namespace attune
