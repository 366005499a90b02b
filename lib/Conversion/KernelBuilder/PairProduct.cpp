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

/// Element `which` of each pair as f32, which bf16 is the upper half of.
static Value widenHalf(KernelBuilder &k, Value pairs, int64_t which) {
  int64_t lanes = cast<VectorType>(pairs.getType()).getDimSize(0) / 2;
  auto words = VectorType::get({lanes}, k.b.getI32Type());
  auto splat = [&](uint32_t number) -> Value {
    return arith::ConstantOp::create(
        k.b, k.loc,
        DenseElementsAttr::get(words, k.b.getI32IntegerAttr(int32_t(number))));
  };
  Value both = vector::BitCastOp::create(k.b, k.loc, words, pairs);
  Value bits =
      which == 0
          ? arith::ShLIOp::create(k.b, k.loc, both, splat(16)).getResult()
          : arith::AndIOp::create(k.b, k.loc, both, splat(0xffff0000u))
                .getResult();
  return arith::BitcastOp::create(k.b, k.loc, k.vectorType(lanes), bits);
}

KernelBuilder::Values emitWidenedMicrokernel(
    KernelBuilder &k, int64_t rows, int64_t each, Value steps, ValueRange inits,
    llvm::function_ref<Value(KernelBuilder &, int64_t, Value, int64_t)> loadA,
    llvm::function_ref<Value(KernelBuilder &, Value, int64_t)> loadB) {
  int64_t parts = cast<VectorType>(inits[0].getType()).getDimSize(0) / each;
  auto turn = [&](KernelBuilder &k, Value step, ValueRange carried) {
    KernelBuilder::Values pairs, sums(carried);
    for (int64_t part = 0; part < parts; ++part)
      pairs.push_back(loadB(k, step, part * each));
    for (int64_t which : {0, 1})
      addOuterProduct(
          rows, parts,
          [&](int64_t row) {
            return k.splat(loadA(k, row, step, which), each);
          },
          [&](int64_t part) { return widenHalf(k, pairs[part], which); },
          [&](Value sum, Value a, Value b) { return k.fma(a, b, sum); }, sums);
    return sums;
  };
  return joinLanes(
      k, k.forLoop(k.index(0), steps, 1, splitLanes(k, inits, each), turn),
      parts);
}

} // namespace attune
