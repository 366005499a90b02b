//===- LinearTiles.cpp - Matrix products on tensor cores --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block computes a tile of the result. Slices of the rows and panels along
// the depth pass through a ring of stages in shared memory: while the tensor
// cores work on one, copies of the next ones are under way. Elements outside
// the matrices are not read: their places are filled with zeros.
//
// Panels are [depth][8 channels] of 16 bits, so one row of one is what one lane
// names to ldmatrix, and eight of them, one behind the other, touch every bank
// once. Rows of activations are swizzled (see SwizzledRows).
//
// Activations of f32 are split into terms that the tensor cores take and whose
// products with the weights are exact in f32:
//
//   weights bf16   three parts of 8 bits each, by cutting off: all 24 bits
//   weights f16    two parts of tf32, the second one rounded: 23 bits; the
//                  weights are numbers of tf32 as they are. The depth is taken
//                  in another order, so that a lane has what it needs: columns
//                  2m and 2m + 1 of a fragment instead of m and m + 4.
//
//   weights f32    both are cut into three parts of 8 bits, rounded, and six of
//                  the nine products made: the others are below 2^-26 of the
//                  whole. So large a number that it rounds to infinity in bf16
//                  gives NaN.
//
// The smallest parts are added first. An infinite activation gives NaN.
//
// Numbers of 4 or 8 bits pass through the ring as they are stored. A lane makes
// its pairs of 16 bits of them, which hold them as they are, so the sums of a
// stage are as exact as those with weights of 16 bits; then the scales of their
// group meet these. A zero point is subtracted there, too, times the sum of the
// activations.
//
// With tf32 one product of f32 with f32 takes their place, both rounded to 11
// bits, in the order of the depth that weights of f16 have.

#include "QuantizedNumbers.h"
#include "TensorCores.h"

#include "attune/TargetInfo/GpuFragments.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

bool LinearKernel::fitsTensorCores() {
  Type weights = elementOf(weight), inputs = elementOf(input);
  if (bits)
    return (inputs.isF32() || inputs.isBF16() || inputs.isF16()) &&
           lanes() == 8 && group % 16 == 0 && alignmentOfRows(input) % 4 == 0;
  auto panel = cast<MemRefType>(weight.getType());
  return (weights.isBF16() || weights.isF16() || weights.isF32()) &&
         (inputs.isF32() || inputs == weights) &&
         panel.getShape().back() == 8 && alignmentOfRows(weight) % 16 == 0 &&
         alignmentOfRows(input) % 4 == 0;
}

int64_t LinearKernel::stagesOf(const ProductTile &tile) {
  return tile.stages ? tile.stages
                     : usualStages(bytesOf(input), bytesOf(weight));
}

namespace {

/// One kernel; the members are what its parts share.
class Tiles {
public:
  Tiles(LinearKernel &kernel, KernelBuilder &k, const ProductTile &tile)
      : kernel(kernel), tile(tile), b(k), rows{bytesOf(kernel.input)},
        step(rows.elementsOfRow()), split(rows.elementBytes == 4),
        wide(bytesOf(kernel.weight) == 4), numbers(kernel.numbers()),
        stages(kernel.stagesOf(tile)) {}

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    depth = kernel.depth();
    storedPanels = kernel.panels() * kernel.parts();
    Value blockRows = kernel.countGroups(b, tile.rows);
    int64_t columns = (storedPanels * 8 + tile.columns - 1) / tile.columns;
    BlockLaunch launch(b, b.mul(blockRows, columns), tile.threads());
    thread = launch.thread;
    stageA = tile.rows * step;
    stageB = tile.columns * step / (kernel.bits ? 8 / kernel.bits : 1);
    sharedA = launch.shared(stages * stageA, elementOf(kernel.input));
    sharedB = launch.shared(stages * stageB, elementOf(kernel.weight));

    TilePlace at(b, launch.block, blockRows, columns);
    group = kernel.groupAt(b, at.row, tile.rows);
    firstPanel = b.mul(at.column, tile.columns / 8);
    lane = b.rem(thread, 32);
    Value warp = b.div(thread, 32);
    warpRow = b.mul(b.div(warp, tile.warpColumns), tile.rowsOfWarp());
    warpPanel = b.mul(b.rem(warp, tile.warpColumns), tile.columnsOfWarp() / 8);

    if (!kernel.tasks)
      return compute();
    b.when(b.less(group.first, group.end), [&](BlockBuilder &) { compute(); });
  }

private:
  void compute() {
    findRows();
    int64_t steps = (depth + step - 1) / step;
    for (int64_t i = 0; i < stages - 1; ++i) {
      if (i < steps)
        copyStage(b, b.index(i * step), b.index(i));
      commitCopies(b);
    }
    auto sumType = VectorType::get({2, 2}, b.b.getF32Type());
    Value zero = arith::ConstantOp::create(
        b.b, b.loc, DenseElementsAttr::get(sumType, 0.0f));
    KernelBuilder::Values sums(rowTiles() * columnTiles(), zero);
    sums =
        b.forLoop(b.index(0), b.index(steps), 1, sums,
                  [&](KernelBuilder &k, Value i, ValueRange carried) {
                    BlockBuilder b(k);
                    // Waits for the next stage, and until all threads are done
                    // with the one before, which is refilled.
                    awaitCopies(b, stages - 2);
                    Value ahead = b.add(i, b.index(stages - 1));
                    b.when(b.less(ahead, b.index(steps)), [&](BlockBuilder &b) {
                      copyStage(b, b.mul(ahead, step), b.rem(ahead, stages));
                    });
                    commitCopies(b);
                    Value stage = b.rem(i, stages);
                    KernelBuilder::Values next(carried);
                    if (kernel.bits) {
                      addQuantized(b, stage, i, next);
                      return next;
                    }
                    for (int64_t k = 0; k < step; k += 16)
                      multiply(b, stage, k, next);
                    return next;
                  });
    store(sums);
  }

  int64_t rowTiles() const { return tile.rowsOfWarp() / 16; }
  int64_t columnTiles() const { return tile.columnsOfWarp() / 8; }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// Chunks of a row of activations.
  int64_t chunks() const {
    return rows.elementsOfRow() / rows.elementsOfChunk();
  }

  /// Which rows a thread copies from, stage after stage.
  void findRows() {
    for (int64_t i = 0; i < tile.rows * chunks(); i += tile.threads()) {
      Value row =
          b.add(group.first, b.div(b.add(thread, b.index(i)), chunks()));
      isThere.push_back(b.less(row, group.end));
      source.push_back(
          kernel.sourceOf(b, b.min(row, b.sub(group.end, b.index(1)))));
    }
  }

  /// Starts copies of the rows and panels from `k` on.
  void copyStage(BlockBuilder &b, Value k, Value stage) {
    int64_t chunk = rows.elementsOfChunk();
    int64_t unit = std::min<int64_t>(chunk, alignmentOfRows(kernel.input) /
                                                rows.elementBytes);
    Value start = b.mul(stage, stageA);
    for (int64_t i = 0; i < tile.rows * chunks(); i += tile.threads()) {
      Value number = b.add(thread, b.index(i));
      Value row = b.div(number, chunks()), column = b.rem(number, chunks());
      Value to =
          b.add(start, rows.placeOf(Computed(b, row), Computed(b, column)));
      Value from = source[i / tile.threads()],
            there = isThere[i / tile.threads()];
      for (int64_t part = 0; part < chunk; part += unit) {
        Value at = b.add(b.add(k, b.mul(column, chunk)), b.index(part));
        Value count = b.select(there, validOf(b, at, unit, depth), b.index(0));
        copyAsync(b, sharedA, b.add(to, b.index(part)), kernel.input,
                  {from, at}, unit, count);
      }
    }
    if (kernel.bits)
      copyNumbers(b, k, b.mul(stage, stageB));
    else
      copyPanels(b, k, b.mul(stage, stageB));
  }

  void copyPanels(BlockBuilder &b, Value k, Value start) {
    // Rows of a panel have one copy, or two.
    int64_t copies = wide ? 2 : 1, elements = 8 / copies;
    for (int64_t i = 0; i < tile.columns / 8 * step * copies;
         i += tile.threads()) {
      Value number = b.add(thread, b.index(i));
      Value line = b.div(number, copies), column = b.rem(number, copies);
      Value panel = b.add(firstPanel, b.div(line, step));
      Value place = b.rem(line, step);
      Value at = b.add(k, wide ? wideRowAt(Computed(b, place)) : place);
      Value there = b.less(panel, b.index(storedPanels));
      if (depth % step != 0)
        there = b.both(there, b.less(at, b.index(depth)));
      copyAsync(b, sharedB, b.add(start, b.mul(number, elements)),
                kernel.weight,
                kernel.panelAt(
                    group, b.min(panel, b.index(storedPanels - 1)),
                    {b.min(at, b.index(depth - 1)), b.mul(column, elements)}),
                elements, b.select(there, b.index(elements), b.index(0)));
    }
  }

  /// A panel's rows of a stage lie one behind the other.
  void copyNumbers(BlockBuilder &b, Value k, Value start) {
    constexpr int64_t bytes = 16, rowBytes = 32;
    int64_t ofPanel = rowBytes * step / kernel.side() / bytes;
    int64_t all = tile.columns / 8 * ofPanel,
            storedRows = depth / kernel.side();
    Value firstRow = b.div(k, kernel.side());
    for (int64_t i = 0; i < all; i += tile.threads()) {
      Value number = b.add(thread, b.index(i));
      auto copy = [&](BlockBuilder &b) {
        Value panel = b.add(firstPanel, b.div(number, ofPanel));
        Value chunk = b.rem(number, ofPanel);
        Value row = b.add(firstRow, b.div(chunk, rowBytes / bytes));
        Value there = b.less(panel, b.index(storedPanels));
        if (depth % step != 0)
          there = b.both(there, b.less(row, b.index(storedRows)));
        copyAsync(
            b, sharedB, b.add(start, b.mul(number, bytes)), kernel.weight,
            kernel.panelAt(group, b.min(panel, b.index(storedPanels - 1)),
                           {b.min(row, b.index(storedRows - 1)),
                            b.mul(b.rem(chunk, rowBytes / bytes), bytes)}),
            bytes, b.select(there, b.index(bytes), b.index(0)));
      };
      if (i + tile.threads() <= all)
        copy(b);
      else
        b.when(b.less(number, b.index(all)), copy);
    }
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// Adds the products of 16 of the depth, from `k` of the stage on.
  void multiply(BlockBuilder &b, Value stage, int64_t k,
                KernelBuilder::Values &sums) {
    if (wide)
      return multiplyWide(b, stage, k, sums);
    Value startA = b.mul(stage, stageA), startB = b.mul(stage, stageB);
    PlaceIn<Computed> named = namedDown(Computed(b, lane));
    bool half = elementOf(kernel.weight).isF16();
    NVVM::MMATypes type = !half   ? NVVM::MMATypes::bf16
                          : split ? NVVM::MMATypes::tf32
                                  : NVVM::MMATypes::f16;
    // A fragment for each panel, or two, one for each half of the depth.
    SmallVector<Registers> panels;
    for (int64_t n = 0; n < columnTiles(); n += 2) {
      Computed panel = named.column + n + Computed(b, warpPanel);
      SmallVector<Value> pairs = loadMatrices(
          b, sharedB, b.add(startB, placeInPanels(panel, named.row + k, step)),
          4,
          /*transpose=*/true);
      if (type == NVVM::MMATypes::tf32)
        for (Value pair : pairs) {
          Value wide = arith::ExtFOp::create(b.b, b.loc, b.vectorType(2), pair);
          panels.push_back(
              toRegisters(b, {element(b, wide, 0), element(b, wide, 1)}));
        }
      else
        for (int64_t i = 0; i < 2; ++i)
          panels.push_back(
              toRegisters(b, {pairs[matrixOfB(i, 0)], pairs[matrixOfB(i, 1)]}));
    }
    for (int64_t m = 0; m < rowTiles(); ++m) {
      SmallVector<SmallVector<Registers>> parts;
      Value row = b.add(warpRow, b.index(16 * m));
      if (!split) {
        Value at =
            rows.placeOf(named.row + Computed(b, row), named.column + k / 8);
        parts = {{toRegisters(b, loadMatrices(b, sharedA, b.add(startA, at), 4,
                                              /*transpose=*/false))}};
      } else {
        SmallVector<Value> pairs = loadPairs(b, startA, row, k);
        parts = half ? cutForTF32(b, pairs) : cutForBF16(b, pairs);
      }
      for (ArrayRef<Registers> part : parts)
        for (int64_t n = 0; n < columnTiles(); ++n)
          for (auto [i, a] : llvm::enumerate(part)) {
            Value &sum = sums[m * columnTiles() + n];
            sum = multiplyAdd(b, a, panels[n * part.size() + i], sum, type);
          }
    }
  }

  /// Adds the products of stage `number` with weights in few bits, those of the
  /// columns that share scales at a time.
  void addQuantized(BlockBuilder &b, Value stage, Value number,
                    KernelBuilder::Values &sums) {
    int64_t together = kernel.group % step == 0 ? step : 16;
    for (int64_t first = 0; first < step; first += together) {
      Value at = b.add(b.mul(number, step), b.index(first));
      SmallVector<Scales> scales = loadScales(b, at);
      Value zero = arith::ConstantOp::create(
          b.b, b.loc,
          DenseElementsAttr::get(cast<VectorType>(sums[0].getType()), 0.0f));
      KernelBuilder::Values some(sums.size(), zero);
      SmallVector<Value> rowSums(2 * rowTiles(), b.f32(0));
      for (int64_t k = first; k < first + together; k += 16)
        multiplyQuantized(b, stage, k, some, rowSums);
      addScaled(b, scales, some, rowSums, sums);
    }
  }

  /// Scales and zero points of a lane's two channels of a panel.
  struct Scales {
    Value factors, zeros;
  };

  SmallVector<Scales> loadScales(BlockBuilder &b, Value column) {
    SmallVector<Scales> all;
    int64_t perGroup = kernel.zeros ? 2 : 1;
    Value row =
        b.mul(b.div(b.min(column, b.index(depth - 1)), kernel.group), perGroup);
    Value channel = placeInSum(Computed(b, lane), 0).column;
    for (int64_t n = 0; n < columnTiles(); ++n) {
      Value panel = b.min(b.add(b.add(firstPanel, warpPanel), b.index(n)),
                          b.index(storedPanels - 1));
      auto load = [&](Value row) {
        return numbers.loadScales(
            b, kernel.scales, kernel.panelAt(group, panel, {row, channel}), 2);
      };
      Scales &here = all.emplace_back();
      here.factors = load(row);
      if (kernel.zeros)
        here.zeros = load(b.add(row, b.index(1)));
    }
    return all;
  }

  /// Adds the products of numbers without their scales, and of a lane's
  /// columns of rows `lane / 4` and eight further their sums.
  void multiplyQuantized(BlockBuilder &b, Value stage, int64_t k,
                         KernelBuilder::Values &sums,
                         MutableArrayRef<Value> rowSums) {
    bool half = elementOf(kernel.input).isF16();
    NVVM::MMATypes type = half ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
    SmallVector<Registers> panels;
    for (int64_t n = 0; n < columnTiles(); ++n)
      panels.push_back(loadNumbers(b, b.mul(stage, stageB), n, k, half));
    Value startA = b.mul(stage, stageA);
    PlaceIn<Computed> named = namedDown(Computed(b, lane));
    for (int64_t m = 0; m < rowTiles(); ++m) {
      Value row = b.add(warpRow, b.index(16 * m));
      SmallVector<Value> pairs;
      SmallVector<SmallVector<Registers>> parts;
      if (split) {
        pairs = loadPairs(b, startA, row, k);
        parts = cutForBF16(b, pairs);
      } else {
        Value at =
            rows.placeOf(named.row + Computed(b, row), named.column + k / 8);
        pairs = loadMatrices(b, sharedA, b.add(startA, at), 4,
                             /*transpose=*/false);
        parts = {{toRegisters(b, pairs)}};
      }
      for (ArrayRef<Registers> part : parts)
        for (int64_t n = 0; n < columnTiles(); ++n) {
          Value &sum = sums[m * columnTiles() + n];
          sum = multiplyAdd(b, part[0], panels[n], sum, type);
        }
      if (!kernel.zeros)
        continue;
      for (auto [i, pair] : llvm::enumerate(pairs)) {
        Value wide =
            split ? pair
                  : arith::ExtFOp::create(b.b, b.loc, b.vectorType(2), pair)
                        .getResult();
        Value &sum = rowSums[2 * m + i % 2];
        for (int64_t element = 0; element < 2; ++element)
          sum = arith::AddFOp::create(b.b, b.loc, sum,
                                      attune::element(b, wide, element));
      }
    }
  }

  /// The registers of B that a lane has of panel `n`: columns 2 m, 2 m + 1, and
  /// those eight further, of channel `lane / 4`, of which m is `lane % 4`.
  Registers loadNumbers(BlockBuilder &b, Value start, int64_t n, int64_t k,
                        bool half) {
    constexpr int64_t rowBytes = 32;
    int64_t side = kernel.side();
    Value panel = b.add(
        start, b.mul(b.add(warpPanel, b.index(n)), step / side * rowBytes));
    Computed column = Computed(b, lane) % 4 * 2;
    auto words = VectorType::get({1}, b.b.getI32Type());
    Registers registers;
    for (int64_t behind = 0; behind < 16; behind += 8) {
      Computed row = column / side + (k + behind) / side;
      Value at = row * rowBytes + Computed(b, lane) / 4 * 4;
      Value word = b.loadAt(sharedB, {b.add(panel, at)}, 4, 4);
      word = element(b, bitCast(b, word, words), 0);
      registers.push_back(toRegister(b, numbers.toPair(b, word, column, half)));
    }
    return registers;
  }

  /// sums + scales (some - zeros rowSums).
  void addScaled(BlockBuilder &b, ArrayRef<Scales> scales, ValueRange some,
                 MutableArrayRef<Value> rowSums, KernelBuilder::Values &sums) {
    // The four lanes of a row have all of its columns.
    for (Value &sum : rowSums)
      for (int32_t distance = 1; kernel.zeros && distance < 4; distance *= 2)
        sum = arith::AddFOp::create(
            b.b, b.loc, sum,
            gpu::ShuffleOp::create(b.b, b.loc, sum, distance, 32,
                                   gpu::ShuffleMode::XOR)
                .getShuffleResult());
    auto type = cast<VectorType>(sums[0].getType());
    auto inRows = [&](Value pair) -> Value {
      return vector::BroadcastOp::create(b.b, b.loc, type, pair);
    };
    for (int64_t m = 0; m < rowTiles(); ++m)
      for (int64_t n = 0; n < columnTiles(); ++n) {
        Value value = some[m * columnTiles() + n];
        if (kernel.zeros) {
          Value low = rowSums[2 * m], high = rowSums[2 * m + 1];
          Value ofRow = vector::FromElementsOp::create(
              b.b, b.loc, type, ValueRange{low, low, high, high});
          Value zeros =
              arith::MulFOp::create(b.b, b.loc, inRows(scales[n].zeros), ofRow);
          value = minus(b, value, zeros);
        }
        Value &sum = sums[m * columnTiles() + n];
        sum = b.fma(value, inRows(scales[n].factors), sum);
      }
  }

  /// The same of f32 with f32: for each part of the rows those parts of the
  /// panels with which it makes a product that counts.
  void multiplyWide(BlockBuilder &b, Value stage, int64_t k,
                    KernelBuilder::Values &sums) {
    Value startA = b.mul(stage, stageA), startB = b.mul(stage, stageB);
    SmallVector<SmallVector<Value>> pairsOfPanel;
    for (int64_t n = 0; n < columnTiles(); ++n) {
      Value panel =
          b.add(startB, b.mul(b.add(warpPanel, b.index(n)), step * 8));
      SmallVector<Value> &pairs = pairsOfPanel.emplace_back();
      for (int64_t half = 0; half < 16; half += 8) {
        SmallVector<Value> numbers;
        for (int64_t odd = 0; odd < 2; ++odd) {
          Value at =
              b.add(panel, placeInWidePanel(Computed(b, lane), k + half + odd));
          numbers.push_back(element(b, b.loadAt(sharedB, {at}, 1, 4), 0));
        }
        pairs.push_back(vector::FromElementsOp::create(
            b.b, b.loc, b.vectorType(2), numbers));
      }
    }
    if (kernel.tf32)
      return multiplyRounded(b, startA, k, pairsOfPanel, sums);
    SmallVector<SmallVector<SmallVector<Registers>>> panels;
    for (ArrayRef<Value> pairs : pairsOfPanel)
      panels.push_back(cutForBF16(b, pairs, /*round=*/true));
    for (int64_t m = 0; m < rowTiles(); ++m) {
      Value row = b.add(warpRow, b.index(16 * m));
      auto parts = cutForBF16(b, loadPairs(b, startA, row, k), /*round=*/true);
      // By the size of the products; part 2 is the largest.
      for (int64_t size = 2; size <= 4; ++size)
        for (int64_t part = size - 2; part <= 2; ++part)
          for (int64_t n = 0; n < columnTiles(); ++n) {
            Value &sum = sums[m * columnTiles() + n];
            sum = multiplyAdd(b, parts[part][0], panels[n][size - part][0], sum,
                              NVVM::MMATypes::bf16);
          }
    }
  }

  /// One product of numbers rounded to tf32 for each half of the depth.
  void multiplyRounded(BlockBuilder &b, Value startA, int64_t k,
                       ArrayRef<SmallVector<Value>> pairsOfPanel,
                       KernelBuilder::Values &sums) {
    auto round = [&](Value number) { return roundToTF32(b, number); };
    SmallVector<SmallVector<Registers>> panels;
    for (ArrayRef<Value> pairs : pairsOfPanel) {
      SmallVector<Registers> &halves = panels.emplace_back();
      for (Value pair : pairs)
        halves.push_back(
            {round(element(b, pair, 0)), round(element(b, pair, 1))});
    }
    for (int64_t m = 0; m < rowTiles(); ++m) {
      Value row = b.add(warpRow, b.index(16 * m));
      SmallVector<Registers> halves =
          halvesOf(b, loadPairs(b, startA, row, k), round);
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t n = 0; n < columnTiles(); ++n) {
          Value &sum = sums[m * columnTiles() + n];
          sum = multiplyAdd(b, halves[half], panels[n][half], sum,
                            NVVM::MMATypes::tf32);
        }
    }
  }

  /// Fragments of tf32, one for each half of the depth, of four pairs that are
  /// side by side: columns 2m and 2m + 1 stand for m and m + 4.
  static SmallVector<Registers>
  halvesOf(BlockBuilder &b, ArrayRef<Value> pairs,
           llvm::function_ref<Value(Value)> toWord) {
    SmallVector<Registers> halves;
    for (int64_t half = 0; half < 4; half += 2) {
      Registers &words = halves.emplace_back();
      for (int64_t i = 0; i < 4; ++i) {
        WordOfA word = wordOfA(i);
        words.push_back(
            toWord(element(b, pairs[half + word.half], word.number)));
      }
    }
    return halves;
  }

  /// The four pairs of f32 that a lane has of a fragment of A.
  SmallVector<Value> loadPairs(BlockBuilder &b, Value start, Value row,
                               int64_t k) {
    SmallVector<Value> pairs;
    for (int64_t pair = 0; pair < 4; ++pair) {
      PlaceIn<Computed> first = placeInA(Computed(b, lane), pair);
      Value place =
          rows.placeOfElement(first.row + Computed(b, row), first.column + k);
      pairs.push_back(b.loadAt(sharedA, {b.add(start, place)}, 2, 8));
    }
    return pairs;
  }

  /// `value` without the bits that are 0 in `mask`.
  static Value cutOff(BlockBuilder &b, Value value, uint32_t mask) {
    auto f32 = cast<VectorType>(value.getType());
    auto i32 = VectorType::get(f32.getShape(), b.b.getI32Type());
    Value bits = arith::AndIOp::create(
        b.b, b.loc, bitCast(b, value, i32),
        arith::ConstantOp::create(
            b.b, b.loc, DenseElementsAttr::get(i32, APInt(32, mask))));
    return bitCast(b, bits, f32);
  }
  static Value minus(BlockBuilder &b, Value lhs, Value rhs) {
    return arith::SubFOp::create(b.b, b.loc, lhs, rhs);
  }

  /// The nearest number that cutting off with `mask` keeps.
  static Value roundOff(BlockBuilder &b, Value value, uint32_t mask) {
    auto i32 = VectorType::get(
        llvm::cast<VectorType>(value.getType()).getShape(), b.b.getI32Type());
    Value half = arith::ConstantOp::create(
        b.b, b.loc, DenseElementsAttr::get(i32, APInt(32, (~mask + 1) / 2)));
    Value bits =
        arith::AddIOp::create(b.b, b.loc, bitCast(b, value, i32), half);
    return cutOff(b, bitCast(b, bits, value.getType()), mask);
  }

  /// The register of two numbers of bf16, given as f32 that hold no more.
  static Value upperHalves(BlockBuilder &b, Value pair) {
    auto number = [&](uint32_t value) -> Value {
      return arith::ConstantOp::create(
          b.b, b.loc, b.b.getIntegerAttr(b.b.getI32Type(), int32_t(value)));
    };
    Value low = toRegister(b, element(b, pair, 0));
    Value up = toRegister(b, element(b, pair, 1));
    low = arith::ShRUIOp::create(b.b, b.loc, low, number(16));
    up = arith::AndIOp::create(b.b, b.loc, up, number(0xffff0000));
    return arith::OrIOp::create(b.b, b.loc, low, up);
  }

  /// Three fragments, the smallest first. Rounded terms may have either sign,
  /// so the error has no direction.
  static SmallVector<SmallVector<Registers>>
  cutForBF16(BlockBuilder &b, ArrayRef<Value> pairs, bool round = false) {
    constexpr uint32_t high = 0xffff0000;
    SmallVector<SmallVector<Registers>> fragments(3, {Registers()});
    for (Value rest : pairs)
      for (int part = 2; part >= 0; --part) {
        Value here = !part   ? rest
                     : round ? roundOff(b, rest, high)
                             : cutOff(b, rest, high);
        fragments[part][0].push_back(upperHalves(b, here));
        if (part)
          rest = minus(b, rest, here);
      }
    return fragments;
  }

  /// Two fragments, each in two halves of the depth.
  static SmallVector<SmallVector<Registers>> cutForTF32(BlockBuilder &b,
                                                        ArrayRef<Value> pairs) {
    SmallVector<Value> low, high;
    constexpr uint32_t kept = 0xffffe000;
    for (Value pair : pairs) {
      high.push_back(cutOff(b, pair, kept));
      low.push_back(roundOff(b, minus(b, pair, high.back()), kept));
    }
    auto toWord = [&](Value number) { return toRegister(b, number); };
    return {halvesOf(b, low, toWord), halvesOf(b, high, toWord)};
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void store(ArrayRef<Value> sums) {
    for (int64_t m = 0; m < rowTiles(); ++m) {
      Value row = b.add(b.add(group.first, warpRow), b.index(16 * m));
      kernel.storeSums(b, group, lane, row, b.add(firstPanel, warpPanel),
                       columnTiles(),
                       [&](BlockBuilder &b, int64_t n, int64_t half) -> Value {
                         return vector::ExtractOp::create(
                             b.b, b.loc, sums[m * columnTiles() + n], half);
                       });
    }
  }

  LinearKernel &kernel;
  const ProductTile &tile;
  BlockBuilder b;
  SwizzledRows rows;        ///< of activations
  int64_t step;             ///< elements of the depth at a time
  bool split, wide;         ///< activations, weights are f32
  QuantizedNumbers numbers; ///< of weights in few bits
  int64_t stages;           ///< of the ring
  int64_t depth = 0, storedPanels = 0, stageA = 0, stageB = 0;
  LinearKernel::Group group;
  KernelBuilder::Values source, isThere;
  Value thread, lane, firstPanel, warpRow, warpPanel;
  Value sharedA, sharedB;
};

} // namespace

void LinearKernel::storeSums(
    BlockBuilder &outer, const Group &group, Value lane, Value row,
    Value firstPanel, int64_t panels,
    llvm::function_ref<Value(BlockBuilder &, int64_t, int64_t)> pairOf) {
  Value channels = outer.index(width());
  // Channels of the first panel, or pair of panels.
  Value column = outer.mul(outer.div(firstPanel, parts()), 8);
  column = outer.add(column, placeInSum(Computed(outer, lane), 0).column);
  for (int64_t half = 0; half < 2; ++half) {
    Value here = outer.add(row, placeInSum(Computed(outer, lane), half).row);
    outer.when(outer.less(here, group.end), [&](BlockBuilder &b) {
      for (int64_t n = 0; n < panels; n += parts()) {
        Value sum = pairOf(b, n, half),
              up = gated ? pairOf(b, n + 1, half) : Value();
        Value at = b.add(column, b.index(n / parts() * 8));
        if (width() % 2 == 0) {
          b.when(b.less(at, channels), [&](BlockBuilder &b) {
            finish(b, group.part, sum, up, here, at);
          });
          continue;
        }
        for (int64_t i = 0; i < 2; ++i) {
          Value one = b.add(at, b.index(i));
          auto half = [&](Value pair) -> Value {
            return pair ? vector::ExtractStridedSliceOp::create(
                              b.b, b.loc, pair, ArrayRef<int64_t>{i},
                              ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1})
                              .getResult()
                        : Value();
          };
          b.when(b.less(one, channels), [&](BlockBuilder &b) {
            finish(b, group.part, half(sum), half(up), here, one);
          });
        }
      }
    });
  }
}

void LinearKernel::emitTiles(KernelBuilder &k, const ProductTile &tile) {
  Tiles(*this, k, tile).emit();
}

} // namespace attune
