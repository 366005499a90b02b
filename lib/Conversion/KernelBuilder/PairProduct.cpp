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
  Type element = cast<ShapedType>(tensor.getType()).getElementType();
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
  int64_t lanes = cast<VectorType>(inits[0].getType()).getDimSize(0);
  return emitSplitMicrokernel(
      k, rows, pairLanes(lanes), steps, inits, loadA, loadB,
      [](KernelBuilder &k, Value sums, Value a, Value b) {
        return addPairProducts(k, sums, b, a);
      });
}

} // namespace attune
