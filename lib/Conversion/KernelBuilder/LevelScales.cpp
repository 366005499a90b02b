//===- LevelScales.cpp - Scales in two levels -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/LevelScales.h"

using namespace mlir;

namespace attune {

Value loadBytes(KernelBuilder &k, Value rows, ValueRange indices,
                int64_t lanes) {
  Value padding =
      arith::ConstantOp::create(k.b, k.loc, k.b.getI8IntegerAttr(0));
  auto map =
      AffineMap::getMinorIdentityMap(indices.size(), 1, k.b.getContext());
  return vector::TransferReadOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI8Type()), rows, indices,
      AffineMapAttr::get(map), padding,
      /*mask=*/Value(), k.b.getBoolArrayAttr({true}));
}

Value halvesOfBytes(KernelBuilder &k, Value lower, Value upper) {
  int64_t lanes = cast<VectorType>(lower.getType()).getNumElements();
  SmallVector<int64_t> places;
  for (int64_t i = 0; i < lanes; ++i)
    places.append({i, lanes + i});
  Value both = vector::ShuffleOp::create(k.b, k.loc, lower, upper, places);
  Value halves = vector::BitCastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getF16Type()), both);
  return arith::ExtFOp::create(k.b, k.loc, k.vectorType(lanes), halves);
}

Value halfOfBytes(KernelBuilder &k, Value lower, Value upper) {
  auto wide = [&](Value byte) -> Value {
    return arith::ExtUIOp::create(k.b, k.loc, k.b.getIntegerType(16), byte);
  };
  Value eight = arith::ConstantOp::create(k.b, k.loc, k.b.getI16IntegerAttr(8));
  Value bits = arith::OrIOp::create(
      k.b, k.loc, wide(lower),
      arith::ShLIOp::create(k.b, k.loc, wide(upper), eight));
  Value half = arith::BitcastOp::create(k.b, k.loc, k.b.getF16Type(), bits);
  return arith::ExtFOp::create(k.b, k.loc, k.b.getF32Type(), half);
}

} // namespace attune
