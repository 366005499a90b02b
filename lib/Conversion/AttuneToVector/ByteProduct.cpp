//===- ByteProduct.cpp - Rows of bytes against panels of bytes --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A group of neighbours is summed in i32, exactly: the sum of `group` products
// of an unsigned by a signed byte, at most 2^15 each, has room for groups of up
// to 2^16. Its sum times two scales is added to what the row has in memory;
// registers hold the sums of one group of a tile's rows and no more.

#include "PanelProduct.h"

#include "attune/Conversion/QuadProduct.h"

using namespace mlir;

namespace attune {

/// A weight w is stored as w + 128: sums start with what that adds too much.
static Value startOf(KernelBuilder &k, Value inputSums, ValueRange at,
                     int64_t lanes) {
  Value sum = tensor::ExtractOp::create(k.b, k.loc, inputSums, at);
  Value offset =
      arith::ConstantOp::create(k.b, k.loc, k.b.getI32IntegerAttr(-128));
  Value start = arith::MulIOp::create(k.b, k.loc, sum, offset);
  return vector::BroadcastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), start);
}

Value PanelProduct::sumGroups(
    KernelBuilder &k, const Place &at, Value panel, ArrayRef<Element> elements,
    function_ref<void(KernelBuilder &, Value step)> fetch, Value column,
    Value scratch) const {
  int64_t lanes = this->lanes(), steps = bytes->group / 4;
  int64_t groups = depth() / steps;
  // As one row, in which the places for a tile's rows are constants apart: one
  // address serves them all.
  auto flat = [&](Value rows) -> Value {
    SmallVector<ReassociationIndices> all = {{0, 1}};
    return tensor::CollapseShapeOp::create(k.b, k.loc, rows, all);
  };
  Value inputSums = flat(bytes->inputSums);
  Value inputScales = flat(bytes->inputScales);
  for (int64_t i = 0; i < at.rows; ++i)
    scratch = k.store(k.splat(0.0, lanes), scratch, {k.index(i), column});
  return k.forLoop(
      k.index(0), k.index(groups), 1, scratch,
      [&](KernelBuilder &k, Value group, ValueRange carried) {
        Value first = k.mul(group, steps);
        Value base = k.add(k.mul(inputRow(k, at.row), groups), group);
        auto rowAt = [&](KernelBuilder &k, int64_t i) {
          return k.add(base, k.index(i * groups));
        };
        KernelBuilder::Values inits;
        for (int64_t i = 0; i < at.rows; ++i)
          inits.push_back(startOf(k, inputSums, {rowAt(k, i)}, lanes));
        KernelBuilder::Values sums = emitSplitMicrokernel(
            k, at.rows, std::min(lanes, bytes->lanes), k.index(steps), inits,
            [&](KernelBuilder &k, int64_t i, Value step) {
              return elements[i](k, k.add(first, step));
            },
            [&](KernelBuilder &k, Value step, int64_t lane) {
              Value place = k.add(first, step);
              if (lane == 0)
                fetch(k, place);
              return loadQuads(k, weight, {panel, place, k.index(4 * lane)},
                               std::min(lanes, bytes->lanes));
            },
            [&](KernelBuilder &k, Value sums, Value inputs, Value weights) {
              return addQuadProducts(k, bytes->how, sums, weights, inputs);
            });
        Value scales =
            k.load(bytes->weightScales, {panel, group, k.index(0)}, lanes);
        Value scratch = carried[0];
        for (int64_t i = 0; i < at.rows; ++i) {
          Value sum =
              arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes), sums[i]);
          Value scale = k.loadScalar(inputScales, {rowAt(k, i)});
          Value by =
              arith::MulFOp::create(k.b, k.loc, scales, k.splat(scale, lanes));
          SmallVector<Value, 2> place = {k.index(i), column};
          Value before = k.load(scratch, place, lanes);
          scratch = k.store(k.fma(sum, by, before), scratch, place);
        }
        return KernelBuilder::Values{scratch};
      })[0];
}

} // namespace attune
