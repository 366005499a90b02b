//===- QuantizedNumbers.cpp - Numbers of 4 or 8 bits as floats ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Multiprocessors convert few integers at a time. But 2^23 + n has the bits of
// n as its lowest ones, so that an `or` and a subtraction, which is exact,
// convert it, too.

#include "QuantizedNumbers.h"

#include "attune/Conversion/PowerScales.h"

using namespace mlir;

namespace attune {

namespace {
/// Arithmetic of words with constants.
struct Words {
  BlockBuilder &b;

  Value constant(Value like, uint32_t number) const {
    auto type = cast<VectorType>(like.getType());
    return arith::ConstantOp::create(
        b.b, b.loc, DenseElementsAttr::get(type, APInt(32, number)));
  }
  template <typename Op> Value make(Value x, uint32_t number) const {
    return Op::create(b.b, b.loc, x, constant(x, number));
  }
};
} // namespace

Value QuantizedNumbers::toFloats(BlockBuilder &b, Value words) const {
  constexpr uint32_t base = 0x4b000000; // 2^23
  Words of{b};
  auto f32 = VectorType::get(cast<VectorType>(words.getType()).getShape(),
                             b.b.getF32Type());
  int64_t lanes = f32.getDimSize(0);
  Value code = of.make<arith::AndIOp>(words, (1u << bits) - 1);
  auto minus = [&](Value bits, double number) -> Value {
    return arith::SubFOp::create(
        b.b, b.loc,
        arith::BitcastOp::create(b.b, b.loc, f32,
                                 of.make<arith::OrIOp>(bits, base)),
        b.splat(number, lanes));
  };
  if (floats && bits == 8) {
    // Where f32 has exponent and fraction, for an exponent that counts from 7.
    Value sign = of.make<arith::ShLIOp>(of.make<arith::AndIOp>(code, 128), 24);
    Value rest = of.make<arith::ShLIOp>(of.make<arith::AndIOp>(code, 127), 20);
    Value small = arith::BitcastOp::create(
        b.b, b.loc, f32,
        arith::OrIOp::create(b.b, b.loc, sign, rest).getResult());
    return arith::MulFOp::create(b.b, b.loc, small, b.splat(0x1p120, lanes));
  }
  if (!floats)
    return minus(code, 8388608.0 + (zeros ? 0 : 1 << (bits - 1)));
  // Twice 0, 0.5, 1, 1.5, 2, 3, 4 and 6 in the half bytes of a word.
  Value place = of.make<arith::ShLIOp>(of.make<arith::AndIOp>(code, 7), 2);
  Value size =
      arith::ShRUIOp::create(b.b, b.loc, of.constant(code, 0xc8643210), place);
  size = minus(of.make<arith::AndIOp>(size, 15), 8388608.0);
  Value sign = of.make<arith::ShLIOp>(of.make<arith::AndIOp>(code, 8), 28);
  Value number = arith::OrIOp::create(
      b.b, b.loc, arith::BitcastOp::create(b.b, b.loc, words.getType(), size),
      sign);
  return arith::BitcastOp::create(b.b, b.loc, f32, number);
}

Value QuantizedNumbers::loadScales(BlockBuilder &b, Value scales, ValueRange at,
                                   int64_t lanes) const {
  Type type = cast<MemRefType>(scales.getType()).getElementType();
  int64_t bytes = lanes * type.getIntOrFloatBitWidth() / 8;
  if (floats && bits == 4)
    return halvesOfPowers(b, b.loadAt(scales, at, lanes, bytes));
  return b.loadWide(scales, at, lanes, std::min<int64_t>(bytes, 16));
}

} // namespace attune
