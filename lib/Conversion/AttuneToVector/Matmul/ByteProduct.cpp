//===- ByteProduct.cpp - Rows of bytes against panels of bytes --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A group of neighbours is summed in i32, exactly: the sum of `group` products
// of an unsigned by a signed byte, at most 2^15 each, has room for groups of up
// to 2^16. Its sum times two scales is added to what the row has so far: in
// registers where these suffice, or else in memory, and registers hold the sums
// of one group of a tile's rows and no more.

#include "PanelProduct.h"

#include "Attune/AttunePanels.h"
#include "attune/Conversion/PowerScales.h"
#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

bool PanelProduct::Bytes::areFloats() const {
  return areScalesOfFloats(cast<ShapedType>(weightScales.getType()));
}

bool PanelProduct::holdsByteFloats() const {
  return attune::holdsByteFloats(cast<ShapedType>(weight.getType()));
}

int64_t PanelProduct::Bytes::zero() const {
  return areFloats() ? kFloatZero : bits == 4 ? 8 : 128;
}

/// A weight w is stored as w + `offset`: sums start with what that adds too
/// much.
static Value startOf(KernelBuilder &k, Value inputSums, Value at,
                     int64_t offset, int64_t lanes) {
  Value sum = k.loadScalar(inputSums, at);
  Value factor = arith::ConstantOp::create(
      k.b, k.loc, k.b.getI32IntegerAttr(int32_t(-offset)));
  Value start = arith::MulIOp::create(k.b, k.loc, sum, factor);
  return vector::BroadcastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), start);
}

KernelBuilder::Values
PanelProduct::addBytes(KernelBuilder &k, int64_t rows, Value panel, Value first,
                       ArrayRef<Element> elements,
                       function_ref<void(KernelBuilder &, Value step)> fetch,
                       ValueRange sums) const {
  int64_t each = std::min(lanes(), bytes->lanes);
  return emitSplitMicrokernel(
      k, rows, each, k.index(bytes->group / 4), sums,
      [&](KernelBuilder &k, int64_t i, Value step) {
        return elements[i](k, k.add(first, step));
      },
      [&](KernelBuilder &k, Value step, int64_t lane) {
        Value place = k.add(first, step);
        if (lane == 0)
          fetch(k, place);
        return loadStep(k, panel, place, lane, each);
      },
      [&](KernelBuilder &k, Value sums, Value inputs, Value weights) {
        return addQuadProducts(k, bytes->how, sums, weights, inputs);
      });
}

Value PanelProduct::loadStep(KernelBuilder &k, Value panel, Value step,
                             int64_t lane, int64_t lanes) const {
  SmallVector<Value> at = {panel, step, k.index(4 * lane)};
  if (part)
    at.insert(at.begin(), part);
  return loadQuads(k, weight, at, lanes);
}

Value PanelProduct::loadScales(KernelBuilder &k, Value panel, Value row) const {
  return loadScales(k, panel, row, k.index(0), lanes());
}

Value PanelProduct::loadScales(KernelBuilder &k, Value panel, Value row,
                               Value lane, int64_t lanes) const {
  SmallVector<Value> at = {panel, row, lane};
  if (part)
    at.insert(at.begin(), part);
  if (holdsByteFloats())
    return arith::MulFOp::create(k.b, k.loc,
                                 k.load(bytes->weightScales, at, lanes),
                                 k.splat(kByteFloatInHalf, lanes));
  if (!bytes->areFloats())
    return k.load(bytes->weightScales, at, lanes);
  return halvesOfPowers(k, loadPowers(k, bytes->weightScales, at, lanes));
}

Value PanelProduct::sumGroups(
    KernelBuilder &k, const Place &at, Value panel, ArrayRef<Element> elements,
    function_ref<void(KernelBuilder &, Value step)> fetch,
    Value scratch) const {
  bool nibbles = bytes->bits == 4, byteRows = bytes->hasByteRows();
  int64_t lanes = this->lanes(), steps = bytes->group / bytes->columnsOfQuad();
  int64_t groups = depth() / steps;
  // As one row, in which the places for a tile's rows are constants apart: one
  // address serves them all.
  auto flat = [&](Value rows) -> Value {
    SmallVector<ReassociationIndices> all = {{0, 1}};
    if (isa<MemRefType>(rows.getType()))
      return memref::CollapseShapeOp::create(k.b, k.loc, rows, all);
    return tensor::CollapseShapeOp::create(k.b, k.loc, rows, all);
  };
  Value inputSums, inputScales;
  if (byteRows) {
    inputSums = flat(bytes->inputSums);
    inputScales = flat(bytes->inputScales);
  }
  // The sums of the rows so far, from group to group.
  bool inRegisters = 2 * at.rows <= at.tileRows;
  KernelBuilder::Values before(inRegisters ? at.rows : 1, scratch);
  auto placeOf = [&](int64_t i) -> SmallVector<Value, 2> {
    return {k.index(i), k.index(0)};
  };
  // Rows that are sorted otherwise have their scales anywhere.
  KernelBuilder::Values firstGroups;
  for (int64_t i = 0; order && byteRows && i < at.rows; ++i) {
    Value place = k.add(inputRow(k, at.row), k.index(i));
    firstGroups.push_back(k.mul(rowAt(k, place), groups));
  }
  for (int64_t i = 0; i < at.rows; ++i) {
    if (inRegisters)
      before[i] = k.splat(0.0, lanes);
    else
      before[0] = k.store(k.splat(0.0, lanes), before[0], placeOf(i));
  }
  KernelBuilder::Values after = k.forLoop(
      k.index(0), k.index(groups), 1, before,
      [&](KernelBuilder &k, Value group, ValueRange carried) {
        Value first = k.mul(group, steps);
        Value base = k.add(k.mul(inputRow(k, at.row), groups), group);
        auto groupOf = [&](int64_t i) {
          return firstGroups.empty() ? k.add(base, k.index(i * groups))
                                     : k.add(firstGroups[i], group);
        };
        auto scalesAt = [&](KernelBuilder &k, int64_t next) {
          Value row =
              bytes->zeros ? k.add(k.mul(group, 2), k.index(next)) : group;
          return loadScales(k, panel, row);
        };
        KernelBuilder::Values sums;
        if (byteRows) {
          // Zero points of their own are subtracted behind the sum.
          for (int64_t i = 0; i < at.rows; ++i)
            sums.push_back(startOf(k, inputSums, groupOf(i),
                                   bytes->zeros ? 0 : bytes->zero(), lanes));
          sums =
              nibbles
                  ? addNibbles(k, at.rows, panel, first, elements, fetch, sums)
                  : addBytes(k, at.rows, panel, first, elements, fetch, sums);
        } else {
          sums.assign(at.rows, k.splat(0.0, lanes));
          sums = addNumbers(k, at.rows, panel, first, elements, fetch,
                            bytes->zeros ? scalesAt(k, 1) : Value(), sums);
        }
        Value scales = scalesAt(k, 0), zeros;
        if (bytes->zeros && byteRows)
          zeros = scalesAt(k, 1);
        KernelBuilder::Values next(carried);
        for (int64_t i = 0; i < at.rows; ++i) {
          Value sum = sums[i], by = scales;
          if (byteRows) {
            sum = arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes), sum);
            Value scale = k.loadScalar(inputScales, {groupOf(i)});
            by = arith::MulFOp::create(k.b, k.loc, scales,
                                       k.splat(scale, lanes));
          }
          if (zeros) {
            Value all = k.loadScalar(inputSums, {groupOf(i)});
            all = arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), all);
            all = arith::NegFOp::create(k.b, k.loc, all);
            sum = k.fma(k.splat(all, lanes), zeros, sum);
          }
          if (inRegisters) {
            next[i] = k.fma(sum, by, carried[i]);
            continue;
          }
          SmallVector<Value, 2> place = {k.index(i), k.index(0)};
          Value before = k.load(next[0], place, lanes);
          next[0] = k.store(k.fma(sum, by, before), next[0], place);
        }
        return next;
      });
  if (!inRegisters)
    return after[0];
  for (int64_t i = 0; i < at.rows; ++i)
    scratch = k.store(after[i], scratch, placeOf(i));
  return scratch;
}

} // namespace attune
