//===- AttentionPairs.cpp - Keys and values as pairs of bf16 ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// On CPUs that multiply pairs of bf16, operands lie in pairs along the depth of
// a product (VNNI-2 layout): channels of queries and keys, keys of
// probabilities and values. Scores come out in f32 and are scaled then, since a
// scaled query would be rounded; probabilities are rounded for the product with
// values, and their sum is that of the unrounded ones.

#include "StepKernel.h"
#include "attune/Conversion/PairProduct.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

bool StepKernel::multipliesPairs(OnlineAttentionOp op, int64_t width) {
  for (Value heads : {op.getQuery(), op.getKey(), op.getValue()})
    if (!tensorType(heads).getElementType().isBF16())
      return false;
  return width % (2 * kSquare) == 0;
}

Value StepKernel::packKeyPairs(KernelBuilder &k, Value to) {
  Value last = k.sub(keys, k.index(1));
  auto packSquare = [&](KernelBuilder &k, Value panel, int64_t lane,
                        Value column, Value panels) {
    Values square;
    for (int64_t i = 0; i < kSquare; ++i) {
      Value n = k.add(k.mul(panel, lanes), k.index(lane + i));
      square.push_back(loadPairs(
          k, op.getKey(), {batch, kvHead, k.min(n, last), column}, kSquare));
    }
    square = transposeSquare(k, square, /*unit=*/2);
    Value first =
        arith::DivUIOp::create(k.b, k.loc, column, k.index(2)).getResult();
    for (int64_t i = 0; i < kSquare; ++i)
      panels = k.store(square[i], panels,
                       {panel, k.add(first, k.index(i)), k.index(2 * lane)});
    return panels;
  };
  return k.forLoop(k.index(0), k.ceilDiv(keys, lanes), 1, to,
                   [&](KernelBuilder &k, Value panel, ValueRange c) {
                     Value panels = c[0];
                     for (int64_t lane = 0; lane < lanes; lane += kSquare)
                       panels = k.forLoop(
                           k.index(0), k.index(width), 2 * kSquare, panels,
                           [&](KernelBuilder &k, Value column, ValueRange c) {
                             return Values{
                                 packSquare(k, panel, lane, column, c[0])};
                           })[0];
                     return Values{panels};
                   })[0];
}

Value StepKernel::packValuePairs(KernelBuilder &k, Value to) {
  Value packed = k.forLoop(
      k.index(0), keys, 2, to, [&](KernelBuilder &k, Value n, ValueRange c) {
        Value next = k.add(n, k.index(1));
        // An odd last key is paired with zeros.
        Value paired = arith::CmpIOp::create(
            k.b, k.loc, arith::CmpIPredicate::slt, next, keys);
        Value pair = arith::DivUIOp::create(k.b, k.loc, n, k.index(2));
        Value packed = c[0];
        for (int64_t panel = 0; panel < valuePanels; ++panel) {
          int64_t column = panel * lanes;
          Value valid = valueWidth - column < lanes
                            ? k.index(valueWidth - column)
                            : Value();
          auto load = [&](Value key) {
            return k.load(op.getValue(), {batch, kvHead, key, k.index(column)},
                          lanes, valid);
          };
          Value first = load(n);
          Value second = arith::SelectOp::create(
              k.b, k.loc, paired, load(k.min(next, k.sub(keys, k.index(1)))),
              k.splat(0.0, lanes));
          packed =
              k.store(vector::InterleaveOp::create(k.b, k.loc, first, second),
                      packed, {k.index(panel), pair, k.index(0)});
        }
        return Values{packed};
      })[0];
  if (!matrix)
    return packed;
  // A matrix unit takes whole panels of keys, whose last probabilities are 0.
  Value end = k.mul(k.ceilDiv(keys, lanes), lanes / 2);
  return k.forLoop(k.ceilDiv(keys, 2), end, 1, packed,
                   [&](KernelBuilder &k, Value pair, ValueRange c) {
                     Value packed = c[0];
                     for (int64_t panel = 0; panel < valuePanels; ++panel)
                       packed = k.store(k.splat(0.0, 2 * lanes), packed,
                                        {k.index(panel), pair, k.index(0)});
                     return Values{packed};
                   })[0];
}

Values StepKernel::pairProducts(KernelBuilder &k, Value block, Value panel) {
  return emitPairMicrokernel(
      k, rows, k.index(width / 2), Values(rows, k.splat(0.0, lanes)),
      [&](KernelBuilder &k, int64_t row, Value step) {
        return splatPair(k, packedQueries,
                         {block, k.index(row), k.mul(step, 2)},
                         pairLanes(lanes));
      },
      [&](KernelBuilder &k, Value step, int64_t lane) {
        return loadPairs(k, packedKeys, {panel, step, k.index(2 * lane)},
                         pairLanes(lanes));
      });
}

Values StepKernel::sumPairs(KernelBuilder &k, Value panel, Value probabilities,
                            Value first, Value depth, ValueRange sums) {
  Value firstPair = arith::DivUIOp::create(k.b, k.loc, first, k.index(2));
  return emitPairMicrokernel(
      k, rows, k.ceilDiv(depth, 2), sums,
      [&](KernelBuilder &k, int64_t row, Value step) {
        return splatPair(k, probabilities,
                         {k.index(row), k.add(first, k.mul(step, 2))},
                         pairLanes(lanes));
      },
      [&](KernelBuilder &k, Value step, int64_t lane) {
        return loadPairs(k, packedValues,
                         {panel, k.add(firstPair, step), k.index(2 * lane)},
                         pairLanes(lanes));
      });
}

} // namespace attune
