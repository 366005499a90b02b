//===- NibbleProduct.cpp - Rows of bytes against panels of 4 bits ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A byte of a panel holds two columns that are four apart, so a mask and a
// shift make two registers of quads of what one load brings. From there on a
// product is one of bytes, of weights from 0 to 15.

#include "PanelProduct.h"

#include "attune/Conversion/QuadProduct.h"

using namespace mlir;

namespace attune {

/// Each quad of bytes is one number of 32 bits.
PanelProduct::TwoQuads PanelProduct::loadTwoQuads(KernelBuilder &k, Value panel,
                                                  Value step, int64_t lane,
                                                  int64_t lanes) const {
  Value stored = loadStep(k, panel, step, lane, lanes);
  auto type = cast<VectorType>(stored.getType());
  auto words = VectorType::get({type.getNumElements() / 4}, k.b.getI32Type());
  auto splat = [&](int32_t number) -> Value {
    return arith::ConstantOp::create(
        k.b, k.loc,
        DenseElementsAttr::get(words, k.b.getI32IntegerAttr(number)));
  };
  Value both = vector::BitCastOp::create(k.b, k.loc, words, stored);
  Value mask = splat(0x0f0f0f0f);
  Value upper = arith::ShRUIOp::create(k.b, k.loc, both, splat(4));
  auto asBytes = [&](Value quads) -> Value {
    Value own = arith::AndIOp::create(k.b, k.loc, quads, mask);
    own = vector::BitCastOp::create(k.b, k.loc, type, own);
    return bytes->areFloats() ? doublesOfFloats(k, own, bytes->how, lanes)
                              : own;
  };
  return {asBytes(both), asBytes(upper)};
}

KernelBuilder::Values
PanelProduct::addNibbles(KernelBuilder &k, int64_t rows, Value panel,
                         Value first, ArrayRef<Element> elements,
                         function_ref<void(KernelBuilder &, Value step)> fetch,
                         ValueRange sums) const {
  using Values = KernelBuilder::Values;
  // Steps of 8 columns that are added up in 16 bits if a CPU does that: 8
  // products of pairs, 2 * 15 * 127 each at most, fit, or 4 of 2 * 24 * 127.
  const int64_t kStepsInWords = bytes->areFloats() ? 2 : 4;
  int64_t lanes = std::min(this->lanes(), bytes->lanes);
  int64_t parts = this->lanes() / lanes, steps = bytes->group / 8;
  bool inWords = sumsNibblesInWords(bytes->how, lanes);
  int64_t count = rows * parts;
  // The sums of each row and register, plus what a step gives them.
  auto step =
      [&](KernelBuilder &k, Value number, ValueRange carried,
          function_ref<Value(Value sum, Value weights, Value inputs)> add) {
        Value place = k.add(first, number);
        fetch(k, place);
        SmallVector<TwoQuads> weights;
        for (int64_t part = 0; part < parts; ++part)
          weights.push_back(loadTwoQuads(k, panel, place, part * lanes, lanes));
        Value quad = k.mul(place, 2), after = k.add(quad, k.index(1));
        Values next;
        for (int64_t row = 0; row < rows; ++row) {
          Value low = elements[row](k, quad), high = elements[row](k, after);
          for (int64_t part = 0; part < parts; ++part) {
            Value sum =
                add(carried[row * parts + part], weights[part].low, low);
            next.push_back(add(sum, weights[part].high, high));
          }
        }
        return next;
      };
  Values registers = splitLanes(k, sums, lanes);
  if (!inWords)
    return joinLanes(
        k,
        k.forLoop(k.index(0), k.index(steps), 1, registers,
                  [&](KernelBuilder &k, Value number, ValueRange carried) {
                    return step(
                        k, number, carried, [&](Value sum, Value w, Value x) {
                          return addQuadProducts(k, bytes->how, sum, w, x);
                        });
                  }),
        parts);
  auto words = VectorType::get({2 * lanes}, k.b.getI16Type());
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(words));
  registers = k.forLoop(
      k.index(0), k.index(steps), kStepsInWords, registers,
      [&](KernelBuilder &k, Value begin, ValueRange carried) {
        Values inits(count, zero);
        Values all = k.forLoop(
            begin, k.add(begin, k.index(kStepsInWords)), 1, inits,
            [&](KernelBuilder &k, Value number, ValueRange carried) {
              return step(k, number, carried, [&](Value sum, Value w, Value x) {
                return addNibblePairs(k, sum, w, x);
              });
            });
        Values next;
        for (auto [sum, pairs] : llvm::zip(carried, all))
          next.push_back(addPairsOfWords(k, sum, pairs));
        return next;
      });
  return joinLanes(k, registers, parts);
}

} // namespace attune
