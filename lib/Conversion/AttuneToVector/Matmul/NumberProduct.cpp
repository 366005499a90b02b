//===- NumberProduct.cpp - Rows of numbers against panels of few bits -----===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Nothing is rounded to bytes: the numbers of a group become f32 in registers,
// exactly, and multiply the rows as they are; the group's scale multiplies what
// comes of it. That is more work than products of bytes, for a panel's numbers
// are unpacked for each tile of rows. Columns are summed in their order,
// whatever the number of rows.

#include "PanelProduct.h"

#include "attune/Conversion/QuadProduct.h"

using namespace mlir;

namespace attune {

namespace {
/// One register of a step of a panel, as the columns that it holds.
struct Unpacking {
  Unpacking(KernelBuilder &k, const PanelProduct &product, Value quads)
      : k(k), bytes(*product.bytes), byteFloats(product.holdsByteFloats()) {
    int64_t lanes = cast<VectorType>(quads.getType()).getNumElements() / 4;
    type = VectorType::get({lanes}, k.b.getI32Type());
    if (byteFloats)
      quads = arith::BitcastOp::create(
          k.b, k.loc, VectorType::get({4 * lanes}, k.b.getI8Type()), quads);
    words = vector::BitCastOp::create(k.b, k.loc, type, quads);
    // Numbers around the same zero point become signed ones.
    isSigned = !bytes.zeros && !(bytes.hasLevels() && bytes.bits == 8) &&
               !bytes.areFloats() && !byteFloats;
    if (isSigned)
      words = arith::XOrIOp::create(
          k.b, k.loc, words,
          splat(bytes.bits == 4 ? int32_t(0x88888888) : int32_t(0x80808080)));
  }

  Value splat(int32_t number) const {
    return arith::ConstantOp::create(
        k.b, k.loc,
        DenseElementsAttr::get(type, k.b.getI32IntegerAttr(number)));
  }

  /// Column `column` of the step. In 4 bits a byte has the last four of eight
  /// columns in its upper half.
  Value column(int64_t column) const {
    auto bits = int32_t(bytes.bits);
    int32_t first = int32_t(column % 4) * 8 + int32_t(column / 4) * 4;
    Value high = words;
    if (int32_t up = 32 - bits - first)
      high = arith::ShLIOp::create(k.b, k.loc, high, splat(up));
    if (byteFloats)
      return halvesOfByteFloats(k, high);
    auto floats = VectorType::get(type.getShape(), k.b.getF32Type());
    if (isSigned)
      return arith::SIToFPOp::create(
          k.b, k.loc, floats,
          arith::ShRSIOp::create(k.b, k.loc, high, splat(32 - bits))
              .getResult());
    Value number = arith::ShRUIOp::create(k.b, k.loc, high, splat(32 - bits));
    if (bytes.areFloats())
      number = arith::SubIOp::create(k.b, k.loc, doublesOfFloats(k, number),
                                     splat(kFloatZero));
    return arith::SIToFPOp::create(k.b, k.loc, floats, number);
  }

  KernelBuilder &k;
  const PanelProduct::Bytes &bytes;
  bool byteFloats;
  VectorType type;
  Value words;
  bool isSigned;
};
} // namespace

KernelBuilder::Values
PanelProduct::addNumbers(KernelBuilder &k, int64_t rows, Value panel,
                         Value first, ArrayRef<Element> elements,
                         function_ref<void(KernelBuilder &, Value step)> fetch,
                         const Factors &factors, ValueRange sums) const {
  using Values = KernelBuilder::Values;
  int64_t each = std::min(lanes(), bytes->lanes), parts = lanes() / each;
  int64_t columns = bytes->columnsOfQuad();
  auto partsOf = [&](Value all) {
    return all ? splitLanes(k, all, each) : Values(parts);
  };
  // The middle of bytes in two levels is no sign.
  Value zero = factors.zero;
  if (bytes->hasLevels() && bytes->bits == 8 && !bytes->zeros)
    zero = k.splat(double(bytes->zero()), lanes());
  Values zeros = partsOf(zero), leasts, scales;
  if (factors.least) {
    leasts = partsOf(arith::NegFOp::create(k.b, k.loc, factors.least));
    scales = partsOf(factors.scale);
  }
  Values all = k.forLoop(
      k.index(0), k.index(bytes->group / columns), 1, splitLanes(k, sums, each),
      [&](KernelBuilder &k, Value step, ValueRange carried) {
        Value place = k.add(first, step);
        fetch(k, place);
        SmallVector<Unpacking> unpacked;
        for (int64_t part = 0; part < parts; ++part)
          unpacked.emplace_back(k, *this,
                                loadStep(k, panel, place, part * each, each));
        Values next(carried);
        for (int64_t column = 0; column < columns; ++column) {
          Values weights;
          for (int64_t part = 0; part < parts; ++part) {
            Value number = unpacked[part].column(column);
            if (Value zero = zeros[part])
              number = arith::SubFOp::create(k.b, k.loc, number, zero);
            if (!leasts.empty())
              number = k.fma(number, scales[part], leasts[part]);
            weights.push_back(number);
          }
          Value at = k.add(k.mul(place, columns), k.index(column));
          for (int64_t row = 0; row < rows; ++row) {
            Value x = k.splat(elements[row](k, at), each);
            for (int64_t part = 0; part < parts; ++part) {
              Value &sum = next[row * parts + part];
              sum = k.fma(x, weights[part], sum);
            }
          }
        }
        return next;
      });
  return joinLanes(k, all, parts);
}

} // namespace attune
