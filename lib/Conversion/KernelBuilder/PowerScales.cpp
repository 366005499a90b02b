//===- PowerScales.cpp - Scales that are powers of two ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/PowerScales.h"

using namespace mlir;

namespace attune {

Value loadPowers(KernelBuilder &k, Value tensor, ValueRange indices,
                 int64_t lanes) {
  // The type has no zero to pad with.
  Type element = cast<ShapedType>(tensor.getType()).getElementType();
  Value padding =
      arith::ConstantOp::create(k.b, k.loc, k.b.getFloatAttr(element, 1.0));
  auto map =
      AffineMap::getMinorIdentityMap(indices.size(), 1, k.b.getContext());
  return vector::TransferReadOp::create(
      k.b, k.loc, VectorType::get({lanes}, element), tensor, indices,
      AffineMapAttr::get(map), padding,
      /*mask=*/Value(), k.b.getBoolArrayAttr({true}));
}

Value halvesOfPowers(KernelBuilder &k, Value powers) {
  auto like = [&](Type element) -> Type {
    auto type = dyn_cast<VectorType>(powers.getType());
    return type ? VectorType::get(type.getShape(), element) : element;
  };
  auto constant = [&](TypedAttr number) -> Value {
    auto type = dyn_cast<VectorType>(powers.getType());
    if (type)
      number = DenseElementsAttr::get(
          VectorType::get(type.getShape(), number.getType()),
          Attribute(number));
    return arith::ConstantOp::create(k.b, k.loc, number);
  };
  Type words = like(k.b.getI32Type());
  Value exponent =
      arith::BitcastOp::create(k.b, k.loc, like(k.b.getI8Type()), powers);
  exponent = arith::ExtUIOp::create(k.b, k.loc, words, exponent);
  Value bits = arith::ShLIOp::create(k.b, k.loc, exponent,
                                     constant(k.b.getI32IntegerAttr(23)));
  // Exponent 0 is 2^-127, which f32 has among its smallest numbers.
  bits = arith::MaxUIOp::create(k.b, k.loc, bits,
                                constant(k.b.getI32IntegerAttr(0x400000)));
  Value power =
      arith::BitcastOp::create(k.b, k.loc, like(k.b.getF32Type()), bits);
  return arith::MulFOp::create(k.b, k.loc, power,
                               constant(k.b.getF32FloatAttr(0.5f)));
}

} // namespace attune
