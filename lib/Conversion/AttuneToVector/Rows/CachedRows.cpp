//===- CachedRows.cpp - Rows of a cache in bytes --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CachedRows.h"

#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

namespace {

int64_t lanesOf(Value vector) {
  return cast<VectorType>(vector.getType()).getNumElements();
}

Value splatInteger(KernelBuilder &k, Type element, int64_t lanes,
                   int64_t number) {
  return arith::ConstantOp::create(
      k.b, k.loc,
      DenseElementsAttr::get(VectorType::get({lanes}, element),
                             k.b.getIntegerAttr(element, number)));
}

/// `x` where the comparison with `bound` holds, else `bound`: a single
/// instruction, which says what becomes of one that is not a number.
Value clamped(KernelBuilder &k, Value x, arith::CmpFPredicate holds,
              double bound) {
  Value other = k.splat(bound, lanesOf(x));
  Value within = arith::CmpFOp::create(k.b, k.loc, holds, x, other);
  return arith::SelectOp::create(k.b, k.loc, within, x, other);
}

/// Within [-most, most]: infinity or NaN shows in the scale of a row; its
/// numbers must become some bytes.
Value clamped(KernelBuilder &k, Value x, double most) {
  x = clamped(k, x, arith::CmpFPredicate::OGT, -most);
  return clamped(k, x, arith::CmpFPredicate::OLT, most);
}

/// f32 of at most 448 to the nearest floats of 1 sign, 4 exponent and 3
/// mantissa bits, in i32.
Value roundToE4M3(KernelBuilder &k, Value x) {
  int64_t lanes = lanesOf(x);
  Type i32 = k.b.getI32Type();
  auto type = VectorType::get({lanes}, i32);
  auto number = [&](int64_t bits) { return splatInteger(k, i32, lanes, bits); };
  auto shifted = [&](Value bits, int64_t by) -> Value {
    return arith::ShRUIOp::create(k.b, k.loc, bits, number(by));
  };
  x = clamped(k, x, 448);
  Value bits = arith::BitcastOp::create(k.b, k.loc, type, x);
  Value magnitude = arith::AndIOp::create(k.b, k.loc, bits, number(INT32_MAX));
  Value sign =
      arith::AndIOp::create(k.b, k.loc, shifted(bits, 24), number(0x80));
  // From 2^-6 on: the exponent counts from 7 and not from 127, and the mantissa
  // loses 20 bits; a tie goes to the even number.
  Value even =
      arith::AndIOp::create(k.b, k.loc, shifted(magnitude, 20), number(1));
  Value rounded = arith::AddIOp::create(
      k.b, k.loc, arith::AddIOp::create(k.b, k.loc, magnitude, even),
      number(0x7ffff - (int64_t(120) << 23)));
  Value normal = shifted(rounded, 20);
  // Below it numbers are multiples of 2^-9. Eight of them are 2^-6, whose bits
  // are those of the integer 8.
  Value positive = arith::BitcastOp::create(k.b, k.loc, x.getType(), magnitude);
  Value multiples = math::RoundEvenOp::create(
      k.b, k.loc,
      arith::MulFOp::create(k.b, k.loc, positive, k.splat(512, lanes))
          .getResult());
  // Large numbers are not asked for, but must be in range.
  multiples = clamped(k, multiples, arith::CmpFPredicate::OLT, 8);
  Value few = arith::FPToSIOp::create(k.b, k.loc, type, multiples);
  Value small = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OLT,
                                      positive, k.splat(0x1p-6, lanes));
  Value made = arith::SelectOp::create(k.b, k.loc, small, few, normal);
  return arith::OrIOp::create(k.b, k.loc, made, sign);
}

/// Bytes as the element type of the rows, in which they are stored.
Value asElements(KernelBuilder &k, Value bytes, Type element) {
  if (element.isInteger(8))
    return bytes;
  return arith::BitcastOp::create(
      k.b, k.loc, VectorType::get({lanesOf(bytes)}, element), bytes);
}

/// Elements of rows as bytes; lanes beyond `valid` are 0.
Value loadBytes(KernelBuilder &k, Value heads, ValueRange at, int64_t lanes,
                Value valid) {
  Type element = getElementTypeOrSelf(heads.getType());
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(element));
  auto map = AffineMap::getMinorIdentityMap(at.size(), 1, k.b.getContext());
  Value mask;
  if (valid)
    mask = vector::CreateMaskOp::create(
        k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), valid);
  Value read = vector::TransferReadOp::create(
      k.b, k.loc, VectorType::get({lanes}, element), heads, at,
      AffineMapAttr::get(map), zero, mask, k.b.getBoolArrayAttr({true}));
  if (element.isInteger(8))
    return read;
  return arith::BitcastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI8Type()), read);
}

/// Floats of 8 bits are those of 16 with fewer bits of exponent and mantissa,
/// and an exponent that counts from 7 and not from 15.
constexpr double kE4M3InHalf = 0x1p8;

} // namespace

Value largestMagnitude(KernelBuilder &k, int64_t width, int64_t lanes,
                       LoadColumns load) {
  auto integers = VectorType::get({lanes}, k.b.getI32Type());
  auto number = [&](int64_t bits) {
    return splatInteger(k, k.b.getI32Type(), lanes, bits);
  };
  // Bits without the sign are in the order of magnitudes, and one that is no
  // number is the largest.
  Value largest = forColumns(
      k, width, lanes, number(0),
      [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
        Value bits = arith::BitcastOp::create(k.b, k.loc, integers,
                                              load(k, column, lanes, valid));
        Value magnitude =
            arith::AndIOp::create(k.b, k.loc, bits, number(INT32_MAX));
        return Values{
            arith::MaxSIOp::create(k.b, k.loc, carried[0], magnitude)};
      })[0];
  return arith::BitcastOp::create(
      k.b, k.loc, k.b.getF32Type(),
      vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::MAXSI,
                                  largest)
          .getResult());
}

RowScale::RowScale(KernelBuilder &k, Value largest, double most) {
  Value bound = k.f32(most);
  scale = arith::DivFOp::create(k.b, k.loc, largest, bound);
  inverse = arith::DivFOp::create(k.b, k.loc, bound, largest);
  Value none = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ,
                                     largest, k.f32(0));
  inverse = arith::SelectOp::create(k.b, k.loc, none, k.f32(0), inverse);
}

Value roundToBytes(KernelBuilder &k, Value x) {
  x = clamped(k, math::RoundEvenOp::create(k.b, k.loc, x), 127);
  auto integers = VectorType::get({lanesOf(x)}, k.b.getI32Type());
  return arith::FPToSIOp::create(k.b, k.loc, integers, x);
}

Value writeInBytes(KernelBuilder &k, int64_t width, int64_t lanes,
                   LoadColumns load, Value tile, ArrayRef<Value> to) {
  Type element = getElementTypeOrSelf(tile.getType());
  auto at = [&](Value column) {
    SmallVector<Value> indices(to);
    indices.push_back(column);
    return indices;
  };
  RowScale row(k, largestMagnitude(k, width, lanes, load),
               largestInBytes(element));
  Value by = k.splat(row.inverse, lanes);
  tile = forColumns(
      k, width, lanes, tile,
      [&](KernelBuilder &k, Value column, Value valid, ValueRange carried) {
        Value x = arith::MulFOp::create(k.b, k.loc,
                                        load(k, column, lanes, valid), by);
        Value made =
            element.isInteger(8) ? roundToBytes(k, x) : roundToE4M3(k, x);
        Value bytes = arith::TruncIOp::create(
            k.b, k.loc, VectorType::get({lanes}, k.b.getI8Type()), made);
        return Values{k.store(asElements(k, bytes, element), carried[0],
                              at(column), valid)};
      })[0];
  Value scale =
      vector::BroadcastOp::create(k.b, k.loc, k.vectorType(1), row.scale);
  Value bytes = vector::BitCastOp::create(
      k.b, k.loc, VectorType::get({kRowScaleBytes}, k.b.getI8Type()), scale);
  return k.store(asElements(k, bytes, element), tile, at(k.index(width)));
}

Value loadUnscaled(KernelBuilder &k, Value heads, ValueRange at, int64_t lanes,
                   Value valid) {
  Value bytes = loadBytes(k, heads, at, lanes, valid);
  if (getElementTypeOrSelf(heads.getType()).isInteger(8)) {
    Value wide = arith::ExtSIOp::create(
        k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), bytes);
    return arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes), wide);
  }
  Type i16 = k.b.getIntegerType(16);
  auto type = VectorType::get({lanes}, i16);
  auto number = [&](int64_t bits) { return splatInteger(k, i16, lanes, bits); };
  Value wide = arith::ExtSIOp::create(k.b, k.loc, type, bytes);
  Value sign = arith::AndIOp::create(k.b, k.loc, wide, number(-0x8000));
  Value rest = arith::AndIOp::create(
      k.b, k.loc, arith::ShLIOp::create(k.b, k.loc, wide, number(7)),
      number(0x3f80));
  Value half = arith::BitcastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getF16Type()),
      arith::OrIOp::create(k.b, k.loc, sign, rest).getResult());
  return arith::ExtFOp::create(k.b, k.loc, k.vectorType(lanes), half);
}

Value loadRowScale(KernelBuilder &k, Value heads, ValueRange row) {
  Values at(row);
  at.push_back(k.index(widthOfRows(cast<ShapedType>(heads.getType()))));
  Value number = vector::BitCastOp::create(
      k.b, k.loc, k.vectorType(1),
      loadBytes(k, heads, at, kRowScaleBytes, /*valid=*/{}));
  Value scale = vector::ExtractOp::create(k.b, k.loc, number, int64_t{0});
  if (getElementTypeOrSelf(heads.getType()).isInteger(8))
    return scale;
  return arith::MulFOp::create(k.b, k.loc, scale, k.f32(kE4M3InHalf));
}

Value loadHeads(KernelBuilder &k, Value heads, ValueRange at, int64_t lanes,
                Value valid) {
  if (!isInBytes(heads))
    return k.load(heads, at, lanes, valid);
  Value scale = k.splat(loadRowScale(k, heads, at.drop_back()), lanes);
  return arith::MulFOp::create(k.b, k.loc,
                               loadUnscaled(k, heads, at, lanes, valid), scale);
}

} // namespace attune
