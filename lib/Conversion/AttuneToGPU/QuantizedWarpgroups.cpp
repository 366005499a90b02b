//===- QuantizedWarpgroups.cpp - Weights in few bits by wgmma -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// wgmma takes B from shared memory alone, where weights are numbers of 4 or 8
// bits. But A may be in registers. So the product is the transposed one: A are
// the weights of 64 columns, whose numbers a lane widens to pairs of 16 bits,
// and B are the rows as they lie in shared memory. Sums have a row for each
// column of the result, and a column for each row.
//
// The pairs of the next stage are made while this stage's products are under
// way. Numbers are exact in 16 bits, and so are the sums of a group up to the
// rounding of f32; scales meet these when the group ends. The first product of
// a group replaces what the sums were. A zero point is subtracted at the end,
// times the sum of the row's activations, of which each of the 256 threads adds
// up half of a row's part of a stage.
//
// At the end lanes exchange sums, eight rows by eight columns at a time, such
// that each has neighbours of a row: what mma.sync would have given.

#include "QuantizedNumbers.h"
#include "WarpgroupTiles.h"

#include "attune/TargetInfo/GpuFragments.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

namespace {

class QuantizedProducts {
public:
  QuantizedProducts(BlockBuilder &b, TileOfBlock &block)
      : block(block), kernel(block.kernel), tile(block.tile),
        numbers(kernel.numbers()), half(elementOf(kernel.input).isF16()) {
    lane = b.rem(block.thread, 32);
    // The number among the threads that multiply.
    thread = b.sub(block.thread, b.index(kGroup));
    warpPanel = b.mul(b.div(thread, 32), kPanels);
  }

  void emit(BlockBuilder &b) {
    Value sums = zeroSums(b, tile.rows);
    KernelBuilder::Values carried = {sums};
    block.ring.awaitFull(b, b.index(0));
    for (int64_t k = 0; k < tile.depth; k += kStep)
      llvm::append_range(carried, loadPairs(b, b.index(0), k));
    int64_t stages = stagesOfGroup();
    firstOfScales = b.div(block.firstStep, stages);
    carried =
        b.forLoop(b.index(0), b.ceilDiv(block.numSteps, stages), 1, carried,
                  [&](KernelBuilder &k, Value i, ValueRange carried) {
                    BlockBuilder b(k);
                    KernelBuilder::Values next(carried);
                    addGroups(b, i, next);
                    return next;
                  });
    store(b, carried[0]);
  }

private:
  /// The depth of a product, and panels of a warp.
  static constexpr int64_t kStep = 16, kPanels = 2;

  static Value plus(BlockBuilder &b, Value x, Value y) {
    return arith::AddFOp::create(b.b, b.loc, x, y);
  }

  /// Stages whose columns share scales, and groups of a stage.
  int64_t stagesOfGroup() const {
    return kernel.groupProduct().stagesOfGroup();
  }
  int64_t groupsOfStage() const {
    return std::max<int64_t>(1, tile.depth / kernel.group);
  }

  //===--------------------------------------------------------------------===//
  // Sums of groups
  //===--------------------------------------------------------------------===//

  /// Adds what the group, or the groups, that begin with stage
  /// `i * stagesOfGroup()` give to the first of `carried`; the others are the
  /// pairs of the next stage.
  void addGroups(BlockBuilder &b, Value i, KernelBuilder::Values &carried) {
    int64_t stages = stagesOfGroup(), groups = groupsOfStage();
    for (int64_t part = 0; part < groups; ++part) {
      Value number =
          b.add(b.mul(b.add(firstOfScales, i), groups), b.index(part));
      SmallVector<Scales> scales = loadScales(b, number);
      KernelBuilder::Values some = {unsetSums(b, tile.rows)};
      if (kernel.zeros)
        some.push_back(b.f32(0));
      size_t own = some.size();
      some.append(carried.begin() + 1, carried.end());
      Value first = b.mul(i, stages);
      if (stages == 1) {
        addStage(b, first, part, i32(b, 0), some, own);
      } else {
        Value end = b.min(b.add(first, b.index(stages)), block.numSteps);
        // The first one replaces the sums.
        some.push_back(i32(b, 0));
        some = b.forLoop(first, end, 1, some,
                         [&](KernelBuilder &k, Value stage, ValueRange before) {
                           BlockBuilder b(k);
                           KernelBuilder::Values next(before.drop_back());
                           addStage(b, stage, 0, before.back(), next, own);
                           next.push_back(i32(b, 1));
                           return next;
                         });
        some.pop_back();
      }
      std::copy(some.begin() + own, some.end(), carried.begin() + 1);
      Value rowSums;
      if (kernel.zeros)
        rowSums = shareRowSums(b, number, some[1]);
      carried[0] = addScaled(b, scales, some[0], rowSums, part, carried[0]);
    }
  }

  /// Adds the products of stage `i`, or of part `part` of its groups, to the
  /// first of `some`, unless `add` is 0, and of the activations their sums to
  /// the second. What follows from `own` on are its pairs; those of the next
  /// stage replace them.
  void addStage(BlockBuilder &b, Value i, int64_t part, Value add,
                KernelBuilder::Values &some, size_t own) {
    int64_t groups = groupsOfStage(), depth = tile.depth / groups;
    Value stage = block.ring.stageOf(b, i);
    Value rows = block.rowsOf(b, stage);
    Value sums = fenceSums(b, some[0]);
    for (int64_t k = part * depth; k < (part + 1) * depth; k += kStep) {
      ArrayRef<Value> pairs = ArrayRef(some).slice(own + k / kStep * 4, 4);
      sums = multiplyHeld(
          b, sums, pairs,
          descriptor(b, b.add(rows, b.index(tile.rowStep(k / kStep))),
                     tile.rowDescriptor()),
          elementOf(kernel.input), add, /*transpose=*/false);
      add = i32(b, 1);
    }
    NVVM::WgmmaGroupSyncAlignedOp::create(b.b, b.loc);

    // Behind the last stage its own pairs are made again, and not used.
    Value next = b.min(b.add(i, b.index(1)), b.sub(block.numSteps, b.index(1)));
    if (part == 0)
      block.ring.awaitFull(b, next);
    for (int64_t k = part * depth; k < (part + 1) * depth; k += kStep)
      llvm::copy(loadPairs(b, block.ring.stageOf(b, next), k),
                 some.begin() + own + k / kStep * 4);
    if (kernel.zeros && part == 0)
      ownSum = sumOfRow(b, rows);
    if (kernel.zeros)
      some[1] = plus(b, some[1], ownSum);
    some[0] = awaitSums(b, 0, sums);
    if (part + 1 == groups)
      block.ring.giveBack(b, lane, i);
  }

  /// The four pairs of A that a lane has of 16 of the depth from `k` on.
  SmallVector<Value> loadPairs(BlockBuilder &b, Value stage, int64_t k) {
    constexpr int64_t rowBytes = 32;
    int64_t side = kernel.side();
    Value panels = block.panelsOf(b, stage);
    SmallVector<Value> pairs;
    for (int64_t pair = 0; pair < 4; ++pair) {
      // Rows of A are channels: eight of one panel, and eight of the next.
      PlaceIn<Computed> first = placeInA(Computed(b, lane), pair);
      Value panel = b.add(warpPanel, b.index(pair % 2));
      Computed row = (first.column + k) / side;
      Value at = row * rowBytes + Computed(b, lane) / 4 * 4;
      at = b.add(at, b.mul(panel, tile.depth / side * rowBytes));
      Type i32 = b.b.getI32Type();
      Value word = LLVM::LoadOp::create(
          b.b, b.loc, i32,
          pointerTo(b, b.add(panels, at), NVVM::NVVMMemorySpace::Shared), 4);
      Value two = numbers.toPair(b, word, first.column, half);
      pairs.push_back(
          element(b, bitCast(b, two, VectorType::get({1}, i32)), 0));
    }
    return pairs;
  }

  //===--------------------------------------------------------------------===//
  // Scales and zero points
  //===--------------------------------------------------------------------===//

  /// The scale of a lane's channel in a panel, and minus its product with the
  /// zero point.
  struct Scales {
    Value factor, minusZero;
  };
  SmallVector<Scales> loadScales(BlockBuilder &b, Value number) {
    int64_t perGroup = kernel.zeros ? 2 : 1;
    Value last = b.index((block.depth - 1) / kernel.group);
    Value row = b.mul(b.min(number, last), perGroup);
    Value channel = b.div(lane, 4);
    int64_t stored = kernel.panels() * kernel.parts();
    SmallVector<Scales> all;
    for (int64_t n = 0; n < kPanels; ++n) {
      Value panel = b.add(b.add(block.firstPanel, warpPanel), b.index(n));
      panel = b.min(panel, b.index(stored - 1));
      auto load = [&](Value row) {
        Value one = numbers.loadScales(
            b, kernel.scales,
            kernel.panelAt(block.group, panel, {row, channel}), 1);
        return element(b, one, 0);
      };
      Scales &here = all.emplace_back();
      here.factor = load(row);
      if (kernel.zeros)
        here.minusZero = arith::NegFOp::create(
            b.b, b.loc,
            arith::MulFOp::create(b.b, b.loc, here.factor,
                                  load(b.add(row, b.index(1)))));
    }
    return all;
  }

  /// The row whose parts of stages a thread adds up, with its neighbour. Of few
  /// rows several threads have the same.
  Value ownRow(BlockBuilder &b) { return b.rem(b.div(thread, 2), tile.rows); }
  /// The sum of half of a stage's part of a row.
  Value sumOfRow(BlockBuilder &b, Value rows) {
    Value row = ownRow(b), first = b.mul(b.rem(thread, 2), 4);
    auto words = VectorType::get({4}, b.b.getI32Type());
    auto halves = VectorType::get({8}, elementOf(kernel.input));
    Value sum;
    for (int64_t chunk = 0; chunk < 4; ++chunk) {
      Value place = placeInAtom(Computed(b, row),
                                Computed(b, b.add(first, b.index(chunk))));
      Value loaded = LLVM::LoadOp::create(
          b.b, b.loc, words,
          pointerTo(b, b.add(rows, place), NVVM::NVVMMemorySpace::Shared), 16);
      Value wide = arith::ExtFOp::create(b.b, b.loc, b.vectorType(8),
                                         bitCast(b, loaded, halves));
      sum = sum ? plus(b, sum, wide) : wide;
    }
    Value total = element(b, sum, 0);
    for (int64_t i = 1; i < 8; ++i)
      total = plus(b, total, element(b, sum, i));
    return total;
  }

  /// Where the sums of group `number` are of half `part` of each stage.
  Value rowSumsOf(BlockBuilder &b, Value number, Value part) {
    Value start = b.add(block.shared, b.index(tile.ringBytes()));
    Value place = b.add(b.mul(b.rem(number, 2), 2), part);
    return b.add(start, b.mul(place, tile.rows * 4));
  }
  /// Gives each thread's sum to all of them; both halves of a row's part that
  /// are of one group as one.
  Value shareRowSums(BlockBuilder &b, Value number, Value sum) {
    if (groupsOfStage() == 1)
      sum = plus(
          b, sum,
          gpu::ShuffleOp::create(b.b, b.loc, sum, 1, 32, gpu::ShuffleMode::XOR)
              .getShuffleResult());
    Value to = rowSumsOf(b, number, b.rem(thread, 2));
    to = b.add(to, b.mul(ownRow(b), 4));
    LLVM::StoreOp::create(b.b, b.loc, sum,
                          pointerTo(b, to, NVVM::NVVMMemorySpace::Shared), 4);
    NVVM::BarrierOp::create(b.b, b.loc, TypeRange(), i32(b, 1),
                            i32(b, 2 * kGroup), {}, Value());
    return rowSumsOf(b, number, b.index(0));
  }

  static Value pairOf(BlockBuilder &b, Value sums, int64_t first) {
    SmallVector<Value> two;
    for (int64_t i = first; i < first + 2; ++i)
      two.push_back(LLVM::ExtractValueOp::create(b.b, b.loc, sums, i));
    return vector::FromElementsOp::create(b.b, b.loc, b.vectorType(2), two);
  }

  /// sums + factors some - factors zeros rowSums.
  Value addScaled(BlockBuilder &b, ArrayRef<Scales> scales, Value some,
                  Value rowSums, int64_t part, Value sums) {
    for (int64_t n = 0; n < tile.rows / 8; ++n) {
      Value ofRows;
      if (kernel.zeros) {
        Value first = placeInSum(Computed(b, lane), 0).column + n * 8;
        Value at = b.add(b.add(rowSums, b.index(part * tile.rows * 4)),
                         b.mul(first, 4));
        ofRows = LLVM::LoadOp::create(
            b.b, b.loc, b.vectorType(2),
            pointerTo(b, at, NVVM::NVVMMemorySpace::Shared), 8);
      }
      for (auto [channel, here] : llvm::enumerate(scales)) {
        int64_t first = 4 * n + 2 * channel;
        auto splat = [&](Value x) -> Value {
          return vector::BroadcastOp::create(b.b, b.loc, b.vectorType(2), x);
        };
        Value value = b.fma(pairOf(b, some, first), splat(here.factor),
                            pairOf(b, sums, first));
        if (kernel.zeros)
          value = b.fma(ofRows, splat(here.minusZero), value);
        for (int64_t i = 0; i < 2; ++i)
          sums = LLVM::InsertValueOp::create(b.b, b.loc, sums,
                                             element(b, value, i), first + i);
      }
    }
    return sums;
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  /// Before, a lane has two neighbouring rows of its channel, of eight rows and
  /// one panel. After, it has two channels of its row: each comes from a lane
  /// that has this channel.
  Value exchange(BlockBuilder &b, Value sums, int64_t n, int64_t panel) {
    Value odd = b.rem(b.div(lane, 4), 2);
    Value isOdd = b.less(b.index(0), odd);
    SmallVector<Value> two;
    for (int64_t i = 0; i < 2; ++i) {
      Value channel = placeInSum(Computed(b, lane), 0).column + i;
      Value from = toI32(b, b.add(b.mul(channel, 4), b.div(lane, 8)));
      SmallVector<Value> rows;
      for (int64_t row = 0; row < 2; ++row) {
        Value own = LLVM::ExtractValueOp::create(b.b, b.loc, sums,
                                                 4 * n + 2 * panel + row);
        rows.push_back(gpu::ShuffleOp::create(b.b, b.loc, own, from, i32(b, 32),
                                              gpu::ShuffleMode::IDX)
                           .getShuffleResult());
      }
      two.push_back(b.select(isOdd, rows[1], rows[0]));
    }
    return vector::FromElementsOp::create(b.b, b.loc, b.vectorType(2), two);
  }

  void store(BlockBuilder &b, Value sums) {
    Value firstPanel = b.add(block.firstPanel, warpPanel);
    for (int64_t first = 0; first < tile.rows; first += 16) {
      // All lanes exchange, also those whose rows are behind the end.
      std::array<std::array<Value, 2>, kPanels> pairs;
      for (int64_t n = 0; n < kPanels; ++n)
        for (int64_t half = 0; half < 2; ++half)
          pairs[n][half] = exchange(b, sums, first / 8 + half, n);
      block.store(b, lane, b.add(block.group.first, b.index(first)), firstPanel,
                  kPanels, [&](BlockBuilder &, int64_t n, int64_t half) {
                    return pairs[n][half];
                  });
    }
  }

  TileOfBlock &block;
  LinearKernel &kernel;
  const WarpgroupTile &tile;
  QuantizedNumbers numbers;
  bool half;
  Value lane, thread, warpPanel, ownSum;
  Value firstOfScales; ///< groups, or stages of them, before this block's
};

} // namespace

void multiplyQuantized(BlockBuilder &b, TileOfBlock &block) {
  QuantizedProducts(b, block).emit(b);
}

} // namespace attune
