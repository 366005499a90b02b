//===- AttentionPacking.cpp - Queries, keys and values in panels ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepKernel.h"

#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

Value shuffle(KernelBuilder &k, Value a, Value b, ArrayRef<int64_t> lanes) {
  return vector::ShuffleOp::create(k.b, k.loc, a, b, lanes);
}

Values transposeSquare(KernelBuilder &k, ArrayRef<Value> rows, int64_t unit) {
  auto shuffle = [&](KernelBuilder &k, Value a, Value b,
                     ArrayRef<int64_t> lanes) {
    SmallVector<int64_t> elements;
    for (int64_t lane : lanes)
      for (int64_t i = 0; i < unit; ++i)
        elements.push_back(lane * unit + i);
    return attune::shuffle(k, a, b, elements);
  };
  Values pairs, quads, columns;
  for (int64_t i = 0; i < kSquare; i += 2) {
    pairs.push_back(
        shuffle(k, rows[i], rows[i + 1], {0, 8, 1, 9, 4, 12, 5, 13}));
    pairs.push_back(
        shuffle(k, rows[i], rows[i + 1], {2, 10, 3, 11, 6, 14, 7, 15}));
  }
  for (int64_t half = 0; half < kSquare; half += 4)
    for (int64_t i = half; i < half + 2; ++i) {
      quads.push_back(
          shuffle(k, pairs[i], pairs[i + 2], {0, 1, 8, 9, 4, 5, 12, 13}));
      quads.push_back(
          shuffle(k, pairs[i], pairs[i + 2], {2, 3, 10, 11, 6, 7, 14, 15}));
    }
  for (int64_t i = 0; i < 4; ++i)
    columns.push_back(
        shuffle(k, quads[i], quads[i + 4], {0, 1, 2, 3, 8, 9, 10, 11}));
  for (int64_t i = 0; i < 4; ++i)
    columns.push_back(
        shuffle(k, quads[i], quads[i + 4], {4, 5, 6, 7, 12, 13, 14, 15}));
  return columns;
}

Value addUp(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::AddFOp::create(k.b, k.loc, lhs, rhs);
}

Value combineSquare(KernelBuilder &k, Values rows, Combine combine) {
  // Each round combines different lanes of two vectors, and each vector of the
  // result has lanes of as many more rows: of pairs, of fours (both within 128
  // bits), then of whole blocks of 128 bits.
  int64_t lanes = rows.size();
  auto meet = [&](Value a, Value b, llvm::function_ref<int64_t(int64_t)> low,
                  int64_t step) -> Value {
    SmallVector<int64_t> lows, highs;
    for (int64_t lane = 0; lane < lanes; ++lane) {
      lows.push_back(low(lane));
      highs.push_back(lows.back() + step);
    }
    return combine(k, shuffle(k, a, b, lows), shuffle(k, a, b, highs));
  };
  auto round = [&](llvm::function_ref<int64_t(int64_t)> low, int64_t step) {
    Values met;
    for (size_t i = 0; i < rows.size(); i += 2)
      met.push_back(meet(rows[i], rows[i + 1], low, step));
    rows = met;
  };
  // a0 b0 a1 b1, a2 b2 a3 b3
  round([&](int64_t i) { return i / 4 * 4 + i % 4 / 2 + i % 2 * lanes; }, 2);
  // a0 a1 b0 b1, a2 a3 b2 b3
  round([&](int64_t i) { return i / 4 * 4 + i % 2 + i % 4 / 2 * lanes; }, 2);
  // Halves of vectors: the blocks that stay apart are combined next.
  if (lanes == 16)
    round([&](int64_t i) { return i % 8 + i / 8 * lanes; }, 8);
  round(
      [&](int64_t i) {
        int64_t block = i / 4, half = lanes / 8;
        return block % half * 8 + i % 4 + block / half * lanes;
      },
      4);
  return rows[0];
}

Value StepKernel::scratch(KernelBuilder &k, ArrayRef<int64_t> shape,
                          bool pairs) {
  Type element = pairs ? Type(k.b.getBF16Type()) : Type(k.b.getF32Type());
  return k.scratch(shape, element, onBuffers());
}

Value StepKernel::countRows(KernelBuilder &k) {
  return k.mul(k.dim(op.getQuery(), 2), group);
}
Value StepKernel::countRowBlocks(KernelBuilder &k) {
  return k.ceilDiv(countRows(k), rows);
}

StepKernel::Row StepKernel::rowAt(KernelBuilder &k, Value number) {
  Value queries = k.dim(op.getQuery(), 2);
  Value total = k.mul(queries, group);
  number = k.min(number, k.sub(total, k.index(1)));
  if (group == 1)
    return {k.index(0), number};
  if (maxQueries == 1)
    return {number, k.index(0)};
  return {arith::DivUIOp::create(k.b, k.loc, number, queries),
          arith::RemUIOp::create(k.b, k.loc, number, queries)};
}

SmallVector<StepKernel::Row> StepKernel::rowsOf(KernelBuilder &k, Value block) {
  SmallVector<Row> all;
  Value first = k.mul(block, rows);
  for (int64_t i = 0; i < rows; ++i)
    all.push_back(rowAt(k, k.add(first, k.index(i))));
  return all;
}

Value StepKernel::packQueries(KernelBuilder &k, Value to) {
  auto packRow = [&](KernelBuilder &k, Value block, Value i, ValueRange c) {
    Row row = rowAt(k, k.add(k.mul(block, rows), i));
    Value scale = k.splat(op.getScale().convertToDouble(), lanes);
    return forVectors(
        k, k.index(width), lanes, c,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = k.load(op.getQuery(), place(k, op.getQuery(), row, column),
                           lanes, valid);
          if (!pairs)
            x = arith::MulFOp::create(k.b, k.loc, x, scale);
          return Values{k.store(x, c[0], {block, i, column})};
        });
  };
  return k.forLoop(k.index(0), countRowBlocks(k), 1, to,
                   [&](KernelBuilder &k, Value block, ValueRange c) {
                     return k.forLoop(
                         k.index(0), k.index(rows), 1, c,
                         [&](KernelBuilder &k, Value i, ValueRange c) {
                           return packRow(k, block, i, c);
                         });
                   })[0];
}

Value StepKernel::packKeys(KernelBuilder &k, Value to) {
  if (pairs)
    return packKeyPairs(k, to);
  Value last = k.sub(keys, k.index(1));
  // Keys beyond the end repeat the last: masked later, but real memory.
  auto packSquare = [&](KernelBuilder &k, Value panel, int64_t lane,
                        Value column, int64_t columns, Value panels) {
    Values square;
    for (int64_t i = 0; i < kSquare; ++i) {
      Value n = k.add(k.mul(panel, lanes), k.index(lane + i));
      Value valid = columns < kSquare ? k.index(columns) : Value();
      square.push_back(loadHeads(k, op.getKey(),
                                 {batch, kvHead, k.min(n, last), column},
                                 kSquare, valid));
    }
    square = transposeSquare(k, square);
    for (int64_t i = 0; i < columns; ++i)
      panels = k.store(square[i], panels,
                       {panel, k.add(column, k.index(i)), k.index(lane)});
    return panels;
  };
  int64_t whole = width / kSquare * kSquare;
  return k.forLoop(k.index(0), k.ceilDiv(keys, lanes), 1, to,
                   [&](KernelBuilder &k, Value panel, ValueRange c) {
                     Value panels = c[0];
                     for (int64_t lane = 0; lane < lanes; lane += kSquare) {
                       panels = k.forLoop(
                           k.index(0), k.index(whole), kSquare, panels,
                           [&](KernelBuilder &k, Value column, ValueRange c) {
                             return Values{packSquare(k, panel, lane, column,
                                                      kSquare, c[0])};
                           })[0];
                       if (whole < width)
                         panels = packSquare(k, panel, lane, k.index(whole),
                                             width - whole, panels);
                     }
                     return Values{panels};
                   })[0];
}

Value StepKernel::packValues(KernelBuilder &k, Value to) {
  if (pairs)
    return packValuePairs(k, to);
  return k.forLoop(
      k.index(0), keys, 1, to, [&](KernelBuilder &k, Value n, ValueRange c) {
        Value packed = c[0];
        for (int64_t panel = 0; panel < valuePanels; ++panel) {
          int64_t column = panel * lanes;
          Value valid = valueWidth - column < lanes
                            ? k.index(valueWidth - column)
                            : Value();
          Value x =
              loadHeads(k, op.getValue(), {batch, kvHead, n, k.index(column)},
                        lanes, valid);
          packed = k.store(x, packed, {k.index(panel), n, k.index(0)});
        }
        return Values{packed};
      })[0];
}

/// A mask that all rows share, as numbers: 0 hides a key.
Value StepKernel::packMask(KernelBuilder &k, Value to) {
  // One element at a time: i1 vectors in memory are bits, i1 tensors bytes.
  Row any{k.index(0), k.index(0)};
  return k.forLoop(
      k.index(0), keys, 1, to, [&](KernelBuilder &k, Value n, ValueRange c) {
        Value seen = k.loadScalar(op.getMask(), place(k, op.getMask(), any, n));
        Value number =
            arith::UIToFPOp::create(k.b, k.loc, k.b.getF32Type(), seen);
        return Values{k.storeScalar(number, c[0], {n})};
      })[0];
}

} // namespace attune
