//===- QuadProduct.cpp - Products of four bytes at once ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attune {

Value loadQuads(KernelBuilder &k, Value tensor, ValueRange indices,
                int64_t lanes) {
  Type element = cast<ShapedType>(tensor.getType()).getElementType();
  Value padding =
      arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(element));
  auto map =
      AffineMap::getMinorIdentityMap(indices.size(), 1, k.b.getContext());
  return vector::TransferReadOp::create(
      k.b, k.loc, VectorType::get({4 * lanes}, element), tensor, indices,
      AffineMapAttr::get(map), padding,
      /*mask=*/Value(), k.b.getBoolArrayAttr({true}));
}

Value splatQuad(KernelBuilder &k, Value tensor, ValueRange indices,
                int64_t lanes) {
  // As one number of 32 bits, which is broadcast from memory.
  Value quad = vector::BitCastOp::create(k.b, k.loc,
                                         VectorType::get({1}, k.b.getI32Type()),
                                         loadQuads(k, tensor, indices, 1));
  Value number = vector::ExtractOp::create(k.b, k.loc, quad, 0);
  Value all = vector::BroadcastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), number);
  return vector::BitCastOp::create(
      k.b, k.loc, VectorType::get({4 * lanes}, k.b.getI8Type()), all);
}

namespace {
/// The same bits as numbers of another width, and arithmetic on them.
struct Bits {
  Bits(KernelBuilder &k, Value bits, unsigned width) : k(k), value(bits) {
    auto type = cast<VectorType>(bits.getType());
    int64_t total = type.getDimSize(0) * type.getElementTypeBitWidth();
    auto wide = VectorType::get({total / width}, k.b.getIntegerType(width));
    value = vector::BitCastOp::create(k.b, k.loc, wide, bits);
  }
  Bits(KernelBuilder &k, Value value) : k(k), value(value) {}

  Value constant(int64_t number) const {
    return arith::ConstantOp::create(
        k.b, k.loc,
        cast<TypedAttr>(Attribute(DenseElementsAttr::get(
            cast<VectorType>(value.getType()),
            k.b.getIntegerAttr(
                cast<VectorType>(value.getType()).getElementType(), number)))));
  }
  Bits up(int64_t bits) const {
    return {k, arith::ShLIOp::create(k.b, k.loc, value, constant(bits))};
  }
  Bits down(int64_t bits) const {
    return {k, arith::ShRUIOp::create(k.b, k.loc, value, constant(bits))};
  }
  Bits downSigned(int64_t bits) const {
    return {k, arith::ShRSIOp::create(k.b, k.loc, value, constant(bits))};
  }
  Bits low(int64_t mask) const {
    return {k, arith::AndIOp::create(k.b, k.loc, value, constant(mask))};
  }

  KernelBuilder &k;
  Value value;
};
} // namespace

static Value callIntrinsic(KernelBuilder &k, const Twine &name, Type type,
                           ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(k.b, k.loc, type,
                                       k.b.getStringAttr(name), operands)
      .getResults();
}

static StringRef nameOfWordProducts(int64_t lanes) {
  return lanes == 16  ? "llvm.x86.avx512.pmaddw.d.512"
         : lanes == 8 ? "llvm.x86.avx2.pmadd.wd"
                      : "llvm.x86.sse2.pmadd.wd";
}

bool sumsNibblesInWords(ByteProducts how, int64_t lanes) {
  return how == ByteProducts::Words && (lanes == 8 || lanes == 16);
}

Value addNibblePairs(KernelBuilder &k, Value sums, Value weights,
                     Value inputs) {
  auto type = cast<VectorType>(sums.getType());
  StringRef name = type.getDimSize(0) == 32 ? "llvm.x86.avx512.pmaddubs.w.512"
                                            : "llvm.x86.avx2.pmadd.ub.sw";
  Value products = callIntrinsic(k, name, type, {weights, inputs});
  return arith::AddIOp::create(k.b, k.loc, sums, products);
}

Value addPairsOfWords(KernelBuilder &k, Value sums, Value words) {
  auto type = cast<VectorType>(words.getType());
  Value ones = arith::ConstantOp::create(
      k.b, k.loc, DenseElementsAttr::get(type, k.b.getI16IntegerAttr(1)));
  auto sumType = cast<VectorType>(sums.getType());
  Value pairs = callIntrinsic(k, nameOfWordProducts(sumType.getDimSize(0)),
                              sumType, {words, ones});
  return arith::AddIOp::create(k.b, k.loc, sums, pairs);
}

Value halvesOfByteFloats(KernelBuilder &k, Value codes) {
  Type type = codes.getType();
  auto like = [&](Type element) -> Type {
    auto vector = dyn_cast<VectorType>(type);
    return vector ? VectorType::get(vector.getShape(), element) : element;
  };
  auto constant = [&](int32_t number) -> Value {
    TypedAttr attr = k.b.getI32IntegerAttr(number);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(k.b, k.loc, attr);
  };
  // The sign stays the uppermost of 16 bits; the rest is one bit further down,
  // behind a bit of the exponent that is 0.
  Value bits = arith::ShRSIOp::create(k.b, k.loc, codes, constant(17));
  bits = arith::AndIOp::create(k.b, k.loc, bits, constant(0xbf80));
  bits =
      arith::TruncIOp::create(k.b, k.loc, like(k.b.getIntegerType(16)), bits);
  Value half =
      arith::BitcastOp::create(k.b, k.loc, like(k.b.getF16Type()), bits);
  return arith::ExtFOp::create(k.b, k.loc, like(k.b.getF32Type()), half);
}

/// By arithmetic: 0 to 4 are their own doubles, 5 to 7 are 6, 8 and 12.
static Value computeDoubles(KernelBuilder &k, Value codes) {
  Type type = codes.getType(), element = getElementTypeOrSelf(type);
  auto constant = [&](int64_t number) -> Value {
    TypedAttr attr = k.b.getIntegerAttr(element, number);
    if (auto vector = dyn_cast<VectorType>(type))
      attr = DenseElementsAttr::get(vector, Attribute(attr));
    return arith::ConstantOp::create(k.b, k.loc, attr);
  };
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(k.b, k.loc, x, y);
  };
  Value size = arith::AndIOp::create(k.b, k.loc, codes, constant(7));
  auto from = [&](Value number, int64_t least, int64_t value) -> Value {
    Value is = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::uge,
                                     number, constant(least));
    return arith::SelectOp::create(k.b, k.loc, is, constant(value),
                                   constant(0));
  };
  Value doubled =
      add(add(size, from(size, 5, 1)), add(from(size, 6, 1), from(size, 7, 3)));
  Value zero = constant(kFloatZero);
  Value negative = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::uge,
                                         codes, constant(8));
  return arith::SelectOp::create(
      k.b, k.loc, negative,
      arith::SubIOp::create(k.b, k.loc, zero, doubled).getResult(),
      add(zero, doubled));
}

Value doublesOfFloats(KernelBuilder &k, Value codes, ByteProducts how,
                      int64_t lanes) {
  auto type = dyn_cast<VectorType>(codes.getType());
  bool wide = lanes == 8 || lanes == 16;
  if (how == ByteProducts::Any || !wide || !type ||
      type.getNumElements() != 4 * lanes || !type.getElementType().isInteger(8))
    return computeDoubles(k, codes);
  // One instruction looks up every byte, in 16 that each 128 bits have.
  static constexpr int8_t table[] = {12, 13, 14, 15, 16, 18, 20, 24,
                                     12, 11, 10, 9,  8,  6,  4,  0};
  SmallVector<int8_t> repeated;
  for (int64_t i = 0; i < type.getNumElements(); ++i)
    repeated.push_back(table[i % 16]);
  Value numbers = arith::ConstantOp::create(
      k.b, k.loc, DenseElementsAttr::get(type, ArrayRef<int8_t>(repeated)));
  return callIntrinsic(
      k, lanes == 16 ? "llvm.x86.avx512.pshuf.b.512" : "llvm.x86.avx2.pshuf.b",
      type, {numbers, codes});
}

Value addQuadProducts(KernelBuilder &k, ByteProducts how, Value sums,
                      Value weights, Value inputs) {
  auto type = cast<VectorType>(sums.getType());
  int64_t lanes = type.getDimSize(0);
  auto add = [&](Value x, Value y) -> Value {
    return arith::AddIOp::create(k.b, k.loc, x, y);
  };
  switch (how) {
  case ByteProducts::Quads:
    return callIntrinsic(k, "llvm.x86.avx512.vpdpbusd." + Twine(32 * lanes),
                         type, {sums, weights, inputs});
  case ByteProducts::Words: {
    // Even and odd bytes as words, whose neighbours one instruction multiplies
    // and adds: at most 2 * 255 * 128 each.
    StringRef name = nameOfWordProducts(lanes);
    Bits w(k, weights, 16), x(k, inputs, 16);
    Value even = callIntrinsic(k, name, type,
                               {w.low(255).value, x.up(8).downSigned(8).value});
    Value odd =
        callIntrinsic(k, name, type, {w.down(8).value, x.downSigned(8).value});
    return add(sums, add(even, odd));
  }
  case ByteProducts::Any:
    for (int64_t byte = 0; byte < 4; ++byte) {
      Bits w(k, weights, 32), x(k, inputs, 32);
      Value product =
          arith::MulIOp::create(k.b, k.loc, w.down(8 * byte).low(255).value,
                                x.up(24 - 8 * byte).downSigned(24).value);
      sums = add(sums, product);
    }
    return sums;
  }
  llvm_unreachable("an unknown way to multiply bytes");
}

} // namespace attune
