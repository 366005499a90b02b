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
#include "attune/Conversion/LevelScales.h"
#include "attune/Conversion/PowerScales.h"
#include "attune/Conversion/QuadProduct.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

bool PanelProduct::Bytes::areFloats() const {
  return areScalesOfFloats(cast<ShapedType>(weightScales.getType()));
}

bool PanelProduct::Bytes::hasLevels() const {
  return areScalesInLevels(cast<ShapedType>(weightScales.getType()));
}

bool PanelProduct::holdsByteFloats() const {
  return attune::holdsByteFloats(cast<ShapedType>(weight.getType()));
}

int64_t PanelProduct::Bytes::zero() const {
  return areFloats()   ? kFloatZero
         : bits == 4   ? 8
         : hasLevels() ? kMiddleInLevels
                       : 128;
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
  if (bytes->hasLevels() && bytes->group % 8 == 0 &&
      sumsNibblesInWords(bytes->how, each))
    return addSixBits(k, rows, panel, first, elements, fetch, sums);
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

KernelBuilder::Values
PanelProduct::addSixBits(KernelBuilder &k, int64_t rows, Value panel,
                         Value first, ArrayRef<Element> elements,
                         function_ref<void(KernelBuilder &, Value step)> fetch,
                         ValueRange sums) const {
  using Values = KernelBuilder::Values;
  int64_t lanes = std::min(this->lanes(), bytes->lanes);
  int64_t parts = this->lanes() / lanes;
  auto words = VectorType::get({2 * lanes}, k.b.getI16Type());
  Value zero = arith::ConstantOp::create(k.b, k.loc, k.b.getZeroAttr(words));
  Values all = k.forLoop(
      k.index(0), k.index(bytes->group / 4), 2, splitLanes(k, sums, lanes),
      [&](KernelBuilder &k, Value number, ValueRange carried) {
        // Two products of pairs, 2 * 63 * 127 each at most, fit in 16 bits.
        Values pairs(carried.size(), zero);
        for (int64_t step = 0; step < 2; ++step) {
          Value place = k.add(first, k.add(number, k.index(step)));
          fetch(k, place);
          Values weights;
          for (int64_t part = 0; part < parts; ++part)
            weights.push_back(loadStep(k, panel, place, part * lanes, lanes));
          for (int64_t row = 0; row < rows; ++row) {
            Value quad = elements[row](k, place);
            for (int64_t part = 0; part < parts; ++part) {
              Value &sum = pairs[row * parts + part];
              sum = addNibblePairs(k, sum, weights[part], quad);
            }
          }
        }
        Values next;
        for (auto [sum, pair] : llvm::zip(carried, pairs))
          next.push_back(addPairsOfWords(k, sum, pair));
        return next;
      });
  return joinLanes(k, all, parts);
}

Value PanelProduct::loadStep(KernelBuilder &k, Value panel, Value step,
                             int64_t lane, int64_t lanes) const {
  SmallVector<Value> at = {panel, step, k.index(4 * lane)};
  if (part)
    at.insert(at.begin(), part);
  return loadQuads(k, weight, at, lanes);
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

PanelProduct::Block PanelProduct::loadBlock(KernelBuilder &k, Value panel,
                                            Value block, Value lane,
                                            int64_t lanes) const {
  bool zeros = bytes->zeros;
  int64_t groups = kScaleColumns / bytes->group * (zeros ? 2 : 1);
  Block result;
  result.row = k.mul(block, bytesOfScales(bytes->group, zeros));
  auto load = [&](int64_t place) {
    SmallVector<Value> at = {panel, k.add(result.row, k.index(groups + place)),
                             lane};
    if (part)
      at.insert(at.begin(), part);
    return at;
  };
  auto factor = [&](int64_t place) {
    return halvesOfBytes(
        k, loadBytes(k, bytes->weightScales, load(place), lanes),
        loadBytes(k, bytes->weightScales, load(place + 1), lanes));
  };
  result.scale = factor(0);
  if (zeros)
    result.least = factor(2);
  return result;
}

PanelProduct::Factors PanelProduct::factorsOf(KernelBuilder &k, Value panel,
                                              const Block &block, Value number,
                                              Value lane, int64_t lanes) const {
  Value row = k.add(block.row, bytes->zeros ? k.mul(number, 2) : number);
  auto load = [&](Value row, Value by) -> Value {
    SmallVector<Value> at = {panel, row, lane};
    if (part)
      at.insert(at.begin(), part);
    Value steps =
        arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes),
                                loadBytes(k, bytes->weightScales, at, lanes));
    return arith::MulFOp::create(k.b, k.loc, steps, by);
  };
  Factors result;
  result.scale = load(row, block.scale);
  if (bytes->zeros)
    result.least = load(k.add(row, k.index(1)), block.least);
  return result;
}

PanelProduct::Factors PanelProduct::loadFactors(KernelBuilder &k, Value panel,
                                                Value group, Value lane,
                                                int64_t lanes) const {
  if (bytes->hasLevels()) {
    Value groups = k.index(kScaleColumns / bytes->group);
    Value block = arith::DivUIOp::create(k.b, k.loc, group, groups);
    Value number = arith::RemUIOp::create(k.b, k.loc, group, groups);
    return factorsOf(k, panel, loadBlock(k, panel, block, lane, lanes), number,
                     lane, lanes);
  }
  if (!bytes->zeros)
    return {loadScales(k, panel, group, lane, lanes), Value(), Value()};
  Value both = k.mul(group, 2);
  return {loadScales(k, panel, both, lane, lanes),
          loadScales(k, panel, k.add(both, k.index(1)), lane, lanes), Value()};
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
  auto minusSum = [&](KernelBuilder &k, Value place) -> Value {
    Value all = k.loadScalar(inputSums, {place});
    all = arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), all);
    return arith::NegFOp::create(k.b, k.loc, all);
  };
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
  using LoadFactors = function_ref<Factors(KernelBuilder &)>;
  auto addGroup = [&](KernelBuilder &k, Value group, LoadFactors load,
                      ValueRange carried) {
    Value first = k.mul(group, steps);
    Value base = k.add(k.mul(inputRow(k, at.row), groups), group);
    auto groupOf = [&](int64_t i) {
      return firstGroups.empty() ? k.add(base, k.index(i * groups))
                                 : k.add(firstGroups[i], group);
    };
    KernelBuilder::Values sums;
    Factors factors;
    if (byteRows) {
      // Zero points of their own are subtracted behind the sum.
      for (int64_t i = 0; i < at.rows; ++i)
        sums.push_back(startOf(k, inputSums, groupOf(i),
                               bytes->zeros ? 0 : bytes->zero(), lanes));
      sums = nibbles
                 ? addNibbles(k, at.rows, panel, first, elements, fetch, sums)
                 : addBytes(k, at.rows, panel, first, elements, fetch, sums);
    } else {
      factors = load(k);
      sums.assign(at.rows, k.splat(0.0, lanes));
      sums =
          addNumbers(k, at.rows, panel, first, elements, fetch, factors, sums);
    }
    // Behind the sums: fewer registers are taken in their loop.
    if (byteRows)
      factors = load(k);
    KernelBuilder::Values next(carried);
    for (int64_t i = 0; i < at.rows; ++i) {
      Value sum = sums[i], by = factors.scale;
      if (byteRows && factors.least) {
        sum = arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes), sum);
        Value less = arith::MulFOp::create(
            k.b, k.loc, k.splat(minusSum(k, groupOf(i)), lanes), factors.least);
        sum = k.fma(sum, factors.scale, less);
        by = k.splat(k.loadScalar(inputScales, {groupOf(i)}), lanes);
      } else if (byteRows) {
        sum = arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes), sum);
        Value scale = k.loadScalar(inputScales, {groupOf(i)});
        by = arith::MulFOp::create(k.b, k.loc, factors.scale,
                                   k.splat(scale, lanes));
        if (factors.zero)
          sum =
              k.fma(k.splat(minusSum(k, groupOf(i)), lanes), factors.zero, sum);
      }
      auto addTo = [&](Value before) -> Value {
        if (!byteRows && factors.least)
          return arith::AddFOp::create(k.b, k.loc, before, sum);
        return k.fma(sum, by, before);
      };
      if (inRegisters) {
        next[i] = addTo(carried[i]);
        continue;
      }
      SmallVector<Value, 2> place = {k.index(i), k.index(0)};
      Value before = k.load(next[0], place, lanes);
      next[0] = k.store(addTo(before), next[0], place);
    }
    return next;
  };
  KernelBuilder::Values after;
  if (bytes->hasLevels()) {
    int64_t each = kScaleColumns / bytes->group;
    after = k.forLoop(
        k.index(0), k.index(groups / each), 1, before,
        [&](KernelBuilder &k, Value number, ValueRange carried) {
          Block block = loadBlock(k, panel, number, k.index(0), lanes);
          Value first = k.mul(number, each);
          return k.forLoop(
              k.index(0), k.index(each), 1, carried,
              [&](KernelBuilder &k, Value own, ValueRange carried) {
                return addGroup(
                    k, k.add(first, own),
                    [&](KernelBuilder &k) {
                      return factorsOf(k, panel, block, own, k.index(0), lanes);
                    },
                    carried);
              });
        });
  } else {
    after = k.forLoop(k.index(0), k.index(groups), 1, before,
                      [&](KernelBuilder &k, Value group, ValueRange carried) {
                        return addGroup(
                            k, group,
                            [&](KernelBuilder &k) {
                              return loadFactors(k, panel, group, k.index(0),
                                                 lanes);
                            },
                            carried);
                      });
  }
  if (!inRegisters)
    return after[0];
  for (int64_t i = 0; i < at.rows; ++i)
    scratch = k.store(after[i], scratch, placeOf(i));
  return scratch;
}

} // namespace attune
