//===- QuantizedNumbers.cpp - Numbers of 4 or 8 bits as floats ------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Multiprocessors convert few integers at a time. But 2^23 + n has the bits of
// n as its lowest ones, so that an `or` and a subtraction, which is exact,
// convert it, too. The same goes for 128 + n in bf16, if n is below 128, and
// for 1024 + n in f16, both numbers of a register at a time. `prmt` puts bytes
// where they are needed, with other bits beside them.

#include "QuantizedNumbers.h"

#include "attune/Conversion/PowerScales.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

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

namespace {
/// Arithmetic of two numbers of 16 bits in a word.
class Pairs {
public:
  Pairs(BlockBuilder &b, bool half)
      : b(b), word(b.b.getI32Type()),
        pair(VectorType::get({2}, half ? Type(b.b.getF16Type())
                                       : Type(b.b.getBF16Type()))) {}

  Value constant(uint32_t bits) {
    return arith::ConstantOp::create(b.b, b.loc,
                                     b.b.getIntegerAttr(word, APInt(32, bits)));
  }
  /// The same 16 bits twice.
  Value both(uint32_t bits) { return constant(bits << 16 | bits); }
  template <typename Op> Value make(Value x, Value y) {
    return Op::create(b.b, b.loc, x, y);
  }
  Value floats(Value bits) {
    auto lanes = VectorType::get({1}, word);
    return vector::BitCastOp::create(
        b.b, b.loc, pair, vector::BroadcastOp::create(b.b, b.loc, lanes, bits));
  }

private:
  BlockBuilder &b;
  Type word;
  VectorType pair;
};
} // namespace

Value QuantizedNumbers::toPair(BlockBuilder &b, Value word, Computed column,
                               bool half) const {
  Pairs of(b, half);
  auto masked = [&](Value x, uint32_t bits) {
    return of.make<arith::AndIOp>(x, of.both(bits));
  };
  auto shifted = [&](Value x, uint32_t by) {
    return of.make<arith::ShLIOp>(x, of.constant(by));
  };
  // Codes of neighbours are in bytes side by side; one goes to each half.
  column = column % columnsOfWord();
  // The bits of 1024 and of 128.
  uint32_t base = half ? 0x6400 : 0x4300;
  if (bits == 8) {
    // Bytes `column` and `column` + 1 of the word in the upper bytes of the
    // halves, or in the lower ones, and beside them those of `others`.
    auto spread = [&](bool upper, uint32_t others) {
      uint32_t first = upper ? 0x1404 : 0x4140, step = upper ? 0x1010 : 0x0101;
      Value which = arith::IndexCastOp::create(b.b, b.loc, b.b.getI32Type(),
                                               column * step + first);
      return LLVM::CallIntrinsicOp::create(
                 b.b, b.loc, b.b.getI32Type(),
                 b.b.getStringAttr("llvm.nvvm.prmt"),
                 ValueRange{word, of.constant(others), which})
          .getResult(0);
    };
    if (floats) {
      // Where the type has exponent and fraction: its exponent counts from
      // another number, which a factor mends.
      uint32_t shift = half ? 1 : 4, fraction = half ? 10 : 7;
      Value code = spread(/*upper=*/true, 0);
      Value size = of.make<arith::ShRUIOp>(code, of.constant(shift));
      Value number = of.make<arith::OrIOp>(masked(size, 0x7f00 >> shift),
                                           masked(code, 0x8000));
      uint32_t bias = half ? 15 : 127;
      uint32_t factor = (bias - 7 + bias) << fraction;
      return of.make<arith::MulFOp>(of.floats(number),
                                    of.floats(of.both(factor)));
    }
    uint32_t middle = zeros ? 0 : 128;
    Value code = spread(/*upper=*/false, (base >> 8) * 0x01010101);
    if (half)
      return of.make<arith::SubFOp>(of.floats(code),
                                    of.floats(of.both(base + middle)));
    // In bf16 the upper bit says whether 256 or 128 is subtracted, which makes
    // n - 128 of n.
    Value size = masked(code, 0xff7f);
    Value less = of.make<arith::XOrIOp>(masked(code, 0xff80), of.both(0x0080));
    Value number = of.make<arith::SubFOp>(of.floats(size), of.floats(less));
    return zeros ? of.make<arith::AddFOp>(number, of.floats(of.both(base)))
                 : number;
  }
  word = of.make<arith::ShRUIOp>(
      word, arith::IndexCastOp::create(b.b, b.loc, b.b.getI32Type(),
                                       shiftOf(column)));
  Value code = of.make<arith::OrIOp>(
      of.make<arith::AndIOp>(word, of.constant(15)),
      of.make<arith::AndIOp>(shifted(word, 8), of.constant(15 << 16)));
  if (floats) {
    // The same; a doubled exponent that counts from 0.
    uint32_t fraction = half ? 10 : 7;
    Value number = of.make<arith::OrIOp>(shifted(masked(code, 7), fraction - 1),
                                         shifted(masked(code, 8), 12));
    uint32_t bias = half ? 15 : 127;
    uint32_t factor = (bias + bias) << fraction;
    return of.make<arith::MulFOp>(of.floats(number),
                                  of.floats(of.both(factor)));
  }
  // Minus 1024 or 128, and what is in the middle.
  uint32_t middle = zeros ? 0 : 8;
  return of.make<arith::SubFOp>(
      of.floats(of.make<arith::OrIOp>(code, of.both(base))),
      of.floats(of.both(base + middle)));
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
