//===- ProductGrid.cpp - The parallel loop around a matrix product --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "ProductGrid.h"

#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/Support/MathExtras.h"

#include <numeric>

using namespace mlir;

namespace attune {

ProductGrid::ProductGrid(KernelBuilder &k, const PanelProduct &product,
                         int64_t group, int64_t most, int64_t unit, Value batch,
                         Value tokens, int64_t tileRows)
    : product(product), unitOfFew(unit),
      unitOfMany(std::lcm(unit, product.unit())), sequences(batch),
      tokens(tokens) {
  Value rows = k.mul(batch, tokens);
  if (auto known = getConstantIntValue(rows))
    isFew = *known <= tileRows;
  few = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ule, rows,
                              k.index(tileRows));
  streams = NumThreadsOp::create(k.b, k.loc, k.b.getIndexType());
  if (isFew != true)
    cutRows(k, tileRows);
  panelsOfUnit = choose(k, unitOfFew, unitOfMany);
  Value units = choose(k, countUnits(unitOfFew), countUnits(unitOfMany));
  unitsOfStream = arith::DivUIOp::create(k.b, k.loc, units, streams);
  unitsLeft = k.sub(units, k.mul(unitsOfStream, streams));
  if (isFew != true)
    cutStreams(k, group);
  if (isFew != false)
    cutStreamsOfFew(k, most);
  counts.push_back(getAsOpFoldResult(choose(k, stepsOfFew, steps)));
  if (apart)
    counts.push_back(getAsOpFoldResult(apart));
  counts.push_back(getAsOpFoldResult(streams));
  if (parts)
    counts.push_back(getAsOpFoldResult(parts));
}

ProductGrid::Iteration ProductGrid::at(KernelBuilder &k, ValueRange ivs) const {
  Value zero = k.index(0);
  Iteration at = {panelsAt(k, ivs[0], ivs[apart ? 2 : 1]),
                  zero,
                  sequences,
                  zero,
                  tokens,
                  zero,
                  k.mul(sequences, tokens)};
  if (!parts)
    return at;
  if (apart)
    at.firstSequence = ivs[1];
  at.firstToken = k.mul(ivs.back(), tokensOfPart);
  at.tokens = k.min(tokensOfPart, k.sub(tokens, at.firstToken));
  at.firstRow = k.add(k.mul(at.firstSequence, tokens), at.firstToken);
  at.rows = k.mul(sequences, at.tokens);
  return at;
}

PanelProduct ProductGrid::productAt(KernelBuilder &k, PanelProduct own,
                                    const Iteration &at,
                                    const VectorLowering &lowering) const {
  if (parts)
    own.firstRow = at.firstRow;
  if (own.lastRows) {
    // Only the last rows of each sequence exist; those before are skipped.
    Value skipped = k.sub(tokens, k.min(tokens, k.index(own.lastRows->most)));
    Value soFar = k.add(at.firstSequence, at.sequences);
    own.lastRows->first = k.sub(at.firstRow, k.mul(soFar, skipped));
  }
  // Few rows pass a panel so fast that the one behind it comes next.
  if (own.panelBytes() / own.passes <= lowering.panelBytes)
    own.ahead = {Value(), k.add(at.panels.firstPanel,
                                choose(k, k.index(1), at.panels.count))};
  return own;
}

Value ProductGrid::choose(KernelBuilder &k, Value ofFew, Value ofMany) const {
  if (isFew)
    return *isFew ? ofFew : ofMany;
  return arith::SelectOp::create(k.b, k.loc, few, ofFew, ofMany);
}

Value ProductGrid::choose(KernelBuilder &k, int64_t ofFew,
                          int64_t ofMany) const {
  if (ofFew == ofMany)
    return k.index(ofMany);
  return choose(k, k.index(ofFew), k.index(ofMany));
}

int64_t ProductGrid::countUnits(int64_t unit) const {
  return llvm::divideCeil(product.panels(), unit);
}

void ProductGrid::cutRows(KernelBuilder &k, int64_t tileRows) {
  // With some for each thread, who starts later or is slower takes fewer. A
  // part has more tiles than one, or would do little but read weights. If
  // tiles are wide it has more rows than are few: with its whole tiles it is
  // done, and rows are left at the end of a sequence only, where lastRows
  // are.
  constexpr int64_t kEnough = 6;
  int64_t tilesOfPart = product.wide ? PanelProduct::kFewTiles + 1 : 2;
  bool together = getConstantIntValue(sequences) == 1;
  auto known = getConstantIntValue(tokens);
  if (known && *known / (tilesOfPart * tileRows) < (together ? 2 : 1))
    return;
  auto atLeastOne = [&](Value x) -> Value {
    return arith::MaxUIOp::create(k.b, k.loc, x, k.index(1));
  };
  Value wanted = k.ceilDiv(k.mul(streams, kEnough), countUnits(unitOfMany));
  Value most = arith::DivUIOp::create(k.b, k.loc, tokens,
                                      k.index(tilesOfPart * tileRows));
  if (!together) {
    auto exceeds = [&](Value x, int64_t bound) -> Value {
      return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ugt, x,
                                   k.index(bound));
    };
    Value batch = sequences;
    Value cut =
        arith::AndIOp::create(k.b, k.loc, exceeds(wanted, 1), exceeds(most, 0));
    apart = arith::SelectOp::create(k.b, k.loc, cut, batch, k.index(1));
    wanted = arith::CeilDivUIOp::create(k.b, k.loc, wanted, atLeastOne(apart));
    sequences = arith::DivUIOp::create(k.b, k.loc, batch, atLeastOne(apart));
  }
  Value each = arith::CeilDivUIOp::create(k.b, k.loc, tokens,
                                          atLeastOne(k.min(wanted, most)));
  tokensOfPart = k.mul(atLeastOne(k.ceilDiv(each, tileRows)), tileRows);
  parts =
      atLeastOne(arith::CeilDivUIOp::create(k.b, k.loc, tokens, tokensOfPart));
  Value sharing = apart ? k.mul(parts, atLeastOne(apart)) : parts;
  streams = atLeastOne(arith::DivUIOp::create(k.b, k.loc, streams, sharing));
}

void ProductGrid::cutStreams(KernelBuilder &k, int64_t group) {
  mostOfMany = group / unitOfMany;
  auto quotient = [&](Value x, Value by) -> Value {
    return arith::DivUIOp::create(k.b, k.loc, x, by);
  };
  Value zero = k.index(0), one = k.index(1), two = k.index(2);
  auto halfOf = [&](Value x) -> Value {
    return arith::MaxUIOp::create(k.b, k.loc, quotient(x, two), one);
  };
  // Some streams have one unit less, which their last step misses.
  Value left = k.add(unitsOfStream, k.min(unitsLeft, one)), done = zero;
  steps = zero;
  auto steadily = [&](Value size, Value keep) {
    lines.push_back({k.sub(done, k.mul(steps, size)), size});
    Value number = quotient(k.sub(left, keep), size);
    steps = k.add(steps, number);
    done = k.add(done, k.mul(number, size));
    left = k.sub(left, k.mul(number, size));
  };
  Value most = k.min(halfOf(left), k.index(mostOfMany));
  steadily(most, k.min(most, quotient(left, two)));
  steadily(halfOf(most), k.sub(left, quotient(left, two)));
  steadily(one, zero);
}

void ProductGrid::cutStreamsOfFew(KernelBuilder &k, int64_t most) {
  // The last step is a 256th of a thread's panels: what others wait for.
  constexpr int64_t kFewSteps = 16;
  int64_t units = countUnits(unitOfFew);
  int64_t fewSteps = std::max<int64_t>(
      kFewSteps,
      llvm::divideCeil(2 * units, std::max<int64_t>(1, most / unitOfFew)));
  mostOfFew = std::max<int64_t>(
      2, llvm::divideCeil(units * (2 * fewSteps - 1), fewSteps * fewSteps));
  // With this number of steps each is of two units, one or none.
  stepsOfFew = k.min(k.index(fewSteps), k.add(unitsOfStream, k.index(1)));
}

PanelProduct::Step ProductGrid::panelsAt(KernelBuilder &k, Value step,
                                         Value stream) const {
  Value takesOneMore = arith::CmpIOp::create(
      k.b, k.loc, arith::CmpIPredicate::ult, stream, unitsLeft);
  Value all =
      arith::SelectOp::create(k.b, k.loc, takesOneMore,
                              k.add(unitsOfStream, k.index(1)), unitsOfStream);
  Value begin = k.add(k.mul(stream, unitsOfStream), k.min(stream, unitsLeft));
  auto doneBefore = [&](Value step) -> Value {
    Value ofFew, ofMany;
    if (isFew != false) {
      // The rest falls with the square of the number of steps to come.
      Value toCome = k.sub(stepsOfFew, step);
      ofFew = k.sub(all, arith::DivUIOp::create(
                             k.b, k.loc, k.mul(all, k.mul(toCome, toCome)),
                             k.mul(stepsOfFew, stepsOfFew)));
    }
    if (isFew != true) {
      ofMany = all;
      for (Line line : lines)
        ofMany = k.min(ofMany, k.add(line.begin, k.mul(step, line.size)));
    }
    return choose(k, ofFew, ofMany);
  };
  Value done = doneBefore(step), after = doneBefore(k.add(step, k.index(1)));
  return product.stepAt(k, k.mul(k.add(begin, done), panelsOfUnit),
                        k.mul(k.sub(after, done), panelsOfUnit), unitOfMany);
}

} // namespace attune
