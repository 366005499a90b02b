//===- TileProduct.cpp - Rows against panels in a matrix unit ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// What a matrix unit multiplies lies in memory: a block of rows against one
// panel is an attune.linear_into with a scratch of static size as destination,
// which becomes loops on tiles once there are buffers (AttuneToAMX). What
// becomes of the sums is vector code on that scratch, the same as after any
// other product.

#include "PanelProduct.h"

#include "attune/Conversion/MatrixTiles.h"

using namespace mlir;

namespace attune {

Value PanelProduct::allRows(KernelBuilder &k, const VectorLowering &lowering,
                            Value numRows, Value firstPanel, Value count,
                            Value column, Value tile) const {
  auto inVectors = [&](Value number, Value tile) {
    return allRows(k, lowering.rows, number, firstPanel, count, column, tile);
  };
  if (!rowsInMemory || !pairs || widened || lowering.matrixRows == 0 ||
      !fillsMatrixTiles(2 * depth(), lanes()))
    return inVectors(numRows, tile);
  auto tiled = [&](Value number, Value tile) {
    constexpr int64_t kBlock = kMatrixBlock * kMatrixRows;
    Value rest = arith::RemUIOp::create(k.b, k.loc, number, k.index(kBlock));
    Value whole = k.sub(number, rest);
    tile =
        inTiles(k, kBlock, k.index(0), whole, firstPanel, count, column, tile);
    return inTiles(k, kMatrixRows, whole, number, firstPanel, count, column,
                   tile);
  };
  if (auto known = getConstantIntValue(numRows))
    return *known < lowering.matrixRows ? inVectors(numRows, tile)
                                        : tiled(numRows, tile);
  // All rows go one way, and the loops of the other have no turns.
  Value few = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt,
                                    numRows, k.index(lowering.matrixRows));
  Value rest = arith::SelectOp::create(k.b, k.loc, few, numRows, k.index(0));
  return inVectors(rest, tiled(k.sub(numRows, rest), tile));
}

Value PanelProduct::inTiles(KernelBuilder &k, int64_t rows, Value begin,
                            Value end, Value firstPanel, Value count,
                            Value column, Value tile) const {
  auto product = [&](KernelBuilder &k, Value row, Value panel) -> Value {
    auto slice = [&](Value source, Value first, int64_t number) -> Value {
      auto type = cast<RankedTensorType>(source.getType());
      SmallVector<OpFoldResult> offsets(type.getRank(), k.b.getIndexAttr(0)),
          sizes, strides(type.getRank(), k.b.getIndexAttr(1));
      offsets[0] = getAsOpFoldResult(first);
      sizes.push_back(k.b.getIndexAttr(number));
      for (int64_t size : type.getShape().drop_front())
        sizes.push_back(k.b.getIndexAttr(size));
      return tensor::ExtractSliceOp::create(k.b, k.loc, source, offsets, sizes,
                                            strides);
    };
    Value scratch = tensor::EmptyOp::create(
        k.b, k.loc, ArrayRef<int64_t>{rows, lanes()}, k.b.getF32Type());
    return LinearIntoOp::create(k.b, k.loc, scratch.getType(),
                                slice(rowsInMemory, inputRow(k, row), rows),
                                slice(weight, panel, 1), /*bias=*/Value(),
                                scratch, Activation::Identity, /*gated=*/false,
                                /*residual=*/false, /*scale=*/FloatAttr())
        .getResult();
  };
  auto onePanel = [&](KernelBuilder &k, Value row, Value first, Value last,
                      Value i, Value tile) {
    Value panel = k.add(firstPanel, i), gates, sums;
    if (gated) {
      gates = product(k, row, k.mul(panel, 2));
      sums = product(k, row, k.add(k.mul(panel, 2), k.index(1)));
    } else {
      sums = product(k, row, panel);
    }
    Outputs outputs = outputsOf(k, panel, k.add(column, k.mul(i, lanes())));
    loadBias(k, outputs);
    return k.forLoop(first, last, 1, tile,
                     [&](KernelBuilder &k, Value at, ValueRange carried) {
                       auto load = [&](Value from) {
                         return k.load(from, {k.sub(at, row), k.index(0)},
                                       lanes());
                       };
                       return KernelBuilder::Values{
                           finish(k, outputs, gated ? load(gates) : Value(),
                                  load(sums), at, carried[0])};
                     })[0];
  };
  return k.forLoop(begin, end, rows, tile,
                   [&](KernelBuilder &k, Value first, ValueRange carried) {
                     // The last tile ends with the last row: rows that it
                     // shares with the one before are multiplied twice and
                     // written once.
                     Value row = k.min(first, k.sub(end, k.index(rows)));
                     Value last = k.min(k.add(first, k.index(rows)), end);
                     return k.forLoop(
                         k.index(0), count, 1, carried,
                         [&](KernelBuilder &k, Value i, ValueRange carried) {
                           return KernelBuilder::Values{
                               onePanel(k, row, first, last, i, carried[0])};
                         });
                   })[0];
}

} // namespace attune
