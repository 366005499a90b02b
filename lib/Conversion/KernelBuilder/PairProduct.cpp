//===- PairProduct.cpp - Products of pairs of bf16 --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/PairProduct.h"

#include "mlir/Dialect/X86Vector/X86VectorDialect.h"

#include <algorithm>

using namespace mlir;

namespace attune {

// The instruction exists for registers of up to 512 bits.
int64_t pairLanes(int64_t lanes) { return std::min<int64_t>(lanes, 16); }

Value loadPairs(KernelBuilder &k, Value tensor, ValueRange indices,
                int64_t lanes) {
  Type element = cast<RankedTensorType>(tensor.getType()).getElementType();
  auto type = VectorType::get({2 * lanes}, element);
  Value padding =
      arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(element));
  auto map =
      AffineMap::getMinorIdentityMap(indices.size(), 1, k.b.getContext());
  return vector::TransferReadOp::create(
      k.b, k.loc, type, tensor, indices, AffineMapAttr::get(map), padding,
      /*mask=*/Value(), k.b.getBoolArrayAttr({true}));
}

Value splatPair(KernelBuilder &k, Value tensor, ValueRange indices,
                int64_t lanes) {
  Value pair = loadPairs(k, tensor, indices, 1);
  SmallVector<int64_t> places;
  for (int64_t lane = 0; lane < lanes; ++lane)
    places.append({0, 1});
  return vector::ShuffleOp::create(k.b, k.loc, pair, pair, places);
}

Value addPairProducts(KernelBuilder &k, Value sums, Value a, Value b) {
  return x86vector::DotBF16Op::create(k.b, k.loc, sums.getType(), sums, a, b);
}

KernelBuilder::Values emitPairMicrokernel(
    KernelBuilder &k, int64_t rows, Value steps, ValueRange inits,
    llvm::function_ref<Value(KernelBuilder &, int64_t, Value)> loadA,
    llvm::function_ref<Value(KernelBuilder &, Value, int64_t)> loadB) {
  using Values = KernelBuilder::Values;
  int64_t lanes = cast<VectorType>(inits[0].getType()).getDimSize(0);
  int64_t each = pairLanes(lanes), parts = lanes / each;
  // An accumulator is as many registers as instructions fill.
  Values split;
  for (Value init : inits)
    for (int64_t part = 0; part < parts; ++part)
      split.push_back(parts == 1
                          ? init
                          : Value(vector::ExtractStridedSliceOp::create(
                                k.b, k.loc, init, {part * each}, {each}, {1})));
  Values sums =
      k.forLoop(k.index(0), steps, 1, split,
                [&](KernelBuilder &k, Value step, ValueRange carried) {
                  Values columns, next;
                  for (int64_t part = 0; part < parts; ++part)
                    columns.push_back(loadB(k, step, part * each));
                  for (int64_t row = 0; row < rows; ++row) {
                    Value pair = loadA(k, row, step);
                    for (int64_t part = 0; part < parts; ++part)
                      next.push_back(addPairProducts(
                          k, carried[row * parts + part], columns[part], pair));
                  }
                  return next;
                });
  if (parts == 1)
    return sums;
  Values joined;
  for (int64_t row = 0; row < rows; ++row) {
    Value all = k.splat(0.0, lanes);
    for (int64_t part = 0; part < parts; ++part)
      all = vector::InsertStridedSliceOp::create(
          k.b, k.loc, sums[row * parts + part], all,
          ArrayRef<int64_t>{part * each}, ArrayRef<int64_t>{1});
    joined.push_back(all);
  }
  return joined;
}

} // namespace attune
