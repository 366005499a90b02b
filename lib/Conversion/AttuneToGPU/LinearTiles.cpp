//===- LinearTiles.cpp - Matrix products on tensor cores --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block computes a tile of the result. Slices of the rows and panels along
// the depth pass through a ring of stages in shared memory: while the tensor
// cores work on one, copies of the next ones are under way. What lies outside
// the matrices is not read: its place is filled with zeros.
//
// Panels are [depth][8 channels] of 16 bits, so one row of one is what one lane
// names to ldmatrix, and eight of them, one behind the other, touch every bank
// once. Rows of activations are swizzled (see SwizzledRows).
//
// Activations of f32 are cut into parts that the tensor cores take and whose
// products with the weights are exact in f32:
//
//   weights bf16   three parts of 8 bits each, by cutting off: all 24 bits
//   weights f16    two parts of tf32, the second one rounded: 23 bits; the
//                  weights are numbers of tf32 as they are. The depth is taken
//                  in another order, so that a lane has what it needs: columns
//                  2m and 2m + 1 of a fragment instead of m and m + 4.
//
// The smallest parts are added first. An infinite activation gives NaN.

#include "TensorCores.h"

#include "attune/Analysis/GpuTiles.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

bool LinearKernel::fitsTensorCores() {
  Type weight = elementOf(op.getWeight()), input = elementOf(op.getInput());
  auto panel = cast<MemRefType>(op.getWeight().getType());
  return (weight.isBF16() || weight.isF16()) &&
         (input.isF32() || input == weight) && panel.getDimSize(2) == 8 &&
         alignmentOfRows(op.getWeight()) % 16 == 0 &&
         alignmentOfRows(op.getInput()) % 4 == 0;
}

namespace {

/// Blocks of so many rows of tiles work on the same columns at one time, so
/// that what they read stays in the second-level cache.
constexpr int64_t kRowsOfBlocks = 8;

/// One kernel; the members are what its parts share.
class Tiles {
public:
  Tiles(LinearKernel &kernel, KernelBuilder &k, const ProductTile &tile)
      : kernel(kernel), op(kernel.op), tile(tile), b(k),
        rows{bytesOf(op.getInput())}, step(rows.elementsOfRow()),
        stages(rows.elementBytes == 4 ? 4 : 3), split(rows.elementBytes == 4) {}

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    depth = kernel.depth();
    storedPanels = kernel.panels() * kernel.parts();
    numRows = b.sizeOf(op.getDest(), 0);
    Value blockRows = b.ceilDiv(numRows, tile.rows);
    int64_t columns = (storedPanels * 8 + tile.columns - 1) / tile.columns;
    BlockLaunch launch(b, b.mul(blockRows, columns), tile.threads());
    thread = launch.thread;
    stageA = tile.rows * step;
    stageB = tile.columns * step;
    sharedA = launch.shared(stages * stageA, elementOf(op.getInput()));
    sharedB = launch.shared(stages * stageB, elementOf(op.getWeight()));

    // Which tile: some rows of tiles, column by column.
    Value inGroup = b.index(kRowsOfBlocks * columns);
    Value first = b.mul(b.div(launch.block, inGroup), kRowsOfBlocks);
    Value height = b.min(b.sub(blockRows, first), b.index(kRowsOfBlocks));
    Value within = b.rem(launch.block, inGroup);
    firstRow = b.mul(b.add(first, b.rem(within, height)), tile.rows);
    firstPanel = b.mul(b.div(within, height), tile.columns / 8);
    lane = b.rem(thread, 32);
    Value warp = b.div(thread, 32);
    warpRow = b.mul(b.div(warp, tile.warpColumns), tile.rowsOfWarp());
    warpPanel = b.mul(b.rem(warp, tile.warpColumns), tile.columnsOfWarp() / 8);

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
                    // The stage that is next has come, and everybody is done
                    // with the one before, which is filled anew.
                    awaitCopies(b, stages - 2);
                    Value ahead = b.add(i, b.index(stages - 1));
                    b.when(b.less(ahead, b.index(steps)), [&](BlockBuilder &b) {
                      copyStage(b, b.mul(ahead, step), b.rem(ahead, stages));
                    });
                    commitCopies(b);
                    Value stage = b.rem(i, stages);
                    KernelBuilder::Values next(carried);
                    for (int64_t k = 0; k < step; k += 16)
                      multiply(b, stage, k, next);
                    return next;
                  });
    store(sums);
  }

private:
  int64_t rowTiles() const { return tile.rowsOfWarp() / 16; }
  int64_t columnTiles() const { return tile.columnsOfWarp() / 8; }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// Starts copies of the rows and panels from `k` on.
  void copyStage(BlockBuilder &b, Value k, Value stage) {
    int64_t chunk = rows.elementsOfChunk(),
            chunks = rows.elementsOfRow() / chunk;
    int64_t unit = std::min<int64_t>(chunk, alignmentOfRows(op.getInput()) /
                                                rows.elementBytes);
    Value start = b.mul(stage, stageA);
    for (int64_t i = 0; i < tile.rows * chunks; i += tile.threads()) {
      Value number = b.add(thread, b.index(i));
      Value row = b.div(number, chunks), column = b.rem(number, chunks);
      Value to = b.add(start, placeOf(b, rows, row, column));
      Value from = b.add(firstRow, row);
      Value there = b.less(from, numRows);
      from = b.min(from, b.sub(numRows, b.index(1)));
      for (int64_t part = 0; part < chunk; part += unit) {
        Value at = b.add(b.add(k, b.mul(column, chunk)), b.index(part));
        Value count = b.select(there, validOf(b, at, unit, depth), b.index(0));
        copyAsync(b, sharedA, b.add(to, b.index(part)), op.getInput(),
                  {from, at}, unit, count);
      }
    }
    start = b.mul(stage, stageB);
    for (int64_t i = 0; i < tile.columns / 8 * step; i += tile.threads()) {
      Value number = b.add(thread, b.index(i));
      Value panel = b.add(firstPanel, b.div(number, step));
      Value at = b.add(k, b.rem(number, step));
      Value there = b.less(panel, b.index(storedPanels));
      if (depth % step != 0)
        there = b.both(there, b.less(at, b.index(depth)));
      copyAsync(b, sharedB, b.add(start, b.mul(number, 8)), op.getWeight(),
                {b.min(panel, b.index(storedPanels - 1)),
                 b.min(at, b.index(depth - 1)), b.index(0)},
                8, b.select(there, b.index(8), b.index(0)));
    }
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// Adds the products of 16 of the depth, from `k` of the stage on.
  void multiply(BlockBuilder &b, Value stage, int64_t k,
                KernelBuilder::Values &sums) {
    Value startA = b.mul(stage, stageA), startB = b.mul(stage, stageB);
    Value matrix = b.div(lane, 8), line = b.rem(lane, 8);
    bool half = elementOf(op.getWeight()).isF16();
    NVVM::MMATypes type = !half   ? NVVM::MMATypes::bf16
                          : split ? NVVM::MMATypes::tf32
                                  : NVVM::MMATypes::f16;
    // A fragment for each panel, or two, one for each half of the depth.
    SmallVector<Registers> panels;
    for (int64_t n = 0; n < columnTiles(); n += 2) {
      // Matrices: both halves of the depth of one panel, then of the next.
      Value panel = b.add(b.add(warpPanel, b.index(n)), b.div(matrix, 2));
      Value at = b.add(b.mul(b.rem(matrix, 2), 8), b.add(line, b.index(k)));
      at = b.mul(b.add(b.mul(panel, step), at), 8);
      SmallVector<Value> pairs =
          loadMatrices(b, sharedB, b.add(startB, at), 4, /*transpose=*/true);
      if (type == NVVM::MMATypes::tf32)
        for (Value pair : pairs) {
          Value wide = arith::ExtFOp::create(b.b, b.loc, b.vectorType(2), pair);
          panels.push_back(
              toRegisters(b, {element(b, wide, 0), element(b, wide, 1)}));
        }
      else
        for (ArrayRef<Value> all = pairs; !all.empty(); all = all.drop_front(2))
          panels.push_back(toRegisters(b, all.take_front(2)));
    }
    for (int64_t m = 0; m < rowTiles(); ++m) {
      SmallVector<SmallVector<Registers>> parts;
      Value row = b.add(warpRow, b.index(16 * m));
      if (!split) {
        // Matrices: both halves of the rows, then of the depth.
        Value at = b.add(b.add(row, b.mul(b.rem(matrix, 2), 8)), line);
        Value chunk = b.add(b.div(matrix, 2), b.index(k / 8));
        parts = {{toRegisters(
            b,
            loadMatrices(b, sharedA, b.add(startA, placeOf(b, rows, at, chunk)),
                         4, /*transpose=*/false))}};
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

  /// The four pairs of f32 that a lane has of a fragment of A.
  SmallVector<Value> loadPairs(BlockBuilder &b, Value start, Value row,
                               int64_t k) {
    Value group = b.div(lane, 4), member = b.rem(lane, 4);
    SmallVector<Value> pairs;
    for (int64_t pair = 0; pair < 4; ++pair) {
      FragmentPlace first = placeInA(0, pair);
      Value at = b.add(b.add(row, group), b.index(first.row));
      Value chunk = b.add(b.div(member, 2), b.index((k + first.column) / 4));
      Value place =
          b.add(placeOf(b, rows, at, chunk), b.mul(b.rem(member, 2), 2));
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

  /// Three fragments, the smallest first.
  static SmallVector<SmallVector<Registers>> cutForBF16(BlockBuilder &b,
                                                        ArrayRef<Value> pairs) {
    constexpr uint32_t high = 0xffff0000;
    Type i32 = b.b.getI32Type();
    auto number = [&](uint32_t value) -> Value {
      return arith::ConstantOp::create(b.b, b.loc,
                                       b.b.getIntegerAttr(i32, int32_t(value)));
    };
    SmallVector<SmallVector<Registers>> fragments(3, {Registers()});
    for (Value rest : pairs)
      for (int part = 2; part >= 0; --part) {
        Value here = part ? cutOff(b, rest, high) : rest;
        // The upper halves of two words side by side.
        Value low = toRegister(b, element(b, here, 0));
        Value up = toRegister(b, element(b, here, 1));
        low = arith::ShRUIOp::create(b.b, b.loc, low, number(16));
        up = arith::AndIOp::create(b.b, b.loc, up, number(high));
        fragments[part][0].push_back(arith::OrIOp::create(b.b, b.loc, low, up));
        if (part)
          rest = minus(b, rest, here);
      }
    return fragments;
  }

  /// Two fragments, each in two halves of the depth.
  static SmallVector<SmallVector<Registers>> cutForTF32(BlockBuilder &b,
                                                        ArrayRef<Value> pairs) {
    SmallVector<Value> low, high;
    auto i32 = VectorType::get({2}, b.b.getI32Type());
    for (Value pair : pairs) {
      high.push_back(cutOff(b, pair, 0xffffe000));
      // Half of the last bit that stays, and what is behind is cut off.
      Value rest = minus(b, pair, high.back());
      Value half = arith::ConstantOp::create(
          b.b, b.loc, DenseElementsAttr::get(i32, APInt(32, 0x1000)));
      Value bits =
          arith::AddIOp::create(b.b, b.loc, bitCast(b, rest, i32), half);
      low.push_back(cutOff(b, bitCast(b, bits, rest.getType()), 0xffffe000));
    }
    auto fragments = [&](ArrayRef<Value> of) {
      SmallVector<Registers> halves;
      for (int64_t half = 0; half < 4; half += 2)
        halves.push_back(toRegisters(
            b, {element(b, of[half], 0), element(b, of[half + 1], 0),
                element(b, of[half], 1), element(b, of[half + 1], 1)}));
      return halves;
    };
    return {fragments(low), fragments(high)};
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  void store(ArrayRef<Value> sums) {
    Value group = b.div(lane, 4), member = b.rem(lane, 4);
    int64_t parts = kernel.parts(), width = kernel.width();
    Value channels = b.index(width);
    // Channels of a warp's first panel, or pair of panels.
    Value column = b.mul(b.div(b.add(firstPanel, warpPanel), parts), 8);
    column = b.add(column, b.mul(member, 2));
    for (int64_t m = 0; m < rowTiles(); ++m)
      for (int64_t half = 0; half < 2; ++half) {
        Value row =
            b.add(b.add(firstRow, warpRow),
                  b.add(group, b.index(16 * m + placeInSum(0, half).row)));
        auto pairOf = [&](int64_t n) -> Value {
          return vector::ExtractOp::create(b.b, b.loc,
                                           sums[m * columnTiles() + n], half);
        };
        b.when(b.less(row, numRows), [&](BlockBuilder &b) {
          for (int64_t n = 0; n < columnTiles(); n += parts) {
            Value sum = pairOf(n), up = parts == 2 ? pairOf(n + 1) : Value();
            Value at = b.add(column, b.index(n / parts * 8));
            if (width % 2 == 0) {
              b.when(b.less(at, channels), [&](BlockBuilder &b) {
                kernel.finish(b, sum, up, row, at);
              });
              continue;
            }
            for (int64_t i = 0; i < 2; ++i) {
              Value here = b.add(at, b.index(i));
              auto one = [&](Value pair) -> Value {
                return pair ? vector::ExtractStridedSliceOp::create(
                                  b.b, b.loc, pair, ArrayRef<int64_t>{i},
                                  ArrayRef<int64_t>{1}, ArrayRef<int64_t>{1})
                                  .getResult()
                            : Value();
              };
              b.when(b.less(here, channels), [&](BlockBuilder &b) {
                kernel.finish(b, one(sum), one(up), row, here);
              });
            }
          }
        });
      }
  }

  LinearKernel &kernel;
  LinearIntoOp op;
  const ProductTile &tile;
  BlockBuilder b;
  SwizzledRows rows;    ///< of activations
  int64_t step, stages; ///< elements of the depth at a time; of the ring
  bool split;           ///< activations are f32
  int64_t depth = 0, storedPanels = 0, stageA = 0, stageB = 0;
  Value numRows, thread, lane, firstRow, firstPanel, warpRow, warpPanel;
  Value sharedA, sharedB;
};

} // namespace

void LinearKernel::emitTiles(KernelBuilder &k, const ProductTile &tile) {
  Tiles(*this, k, tile).emit();
}

} // namespace attune
