//===- AttentionScores.cpp - Masks and edits of scores ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepKernel.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace attune {

using Values = KernelBuilder::Values;

Value maxIndex(KernelBuilder &k, Value lhs, Value rhs) {
  return k.b.createOrFold<arith::MaxSIOp>(k.loc, lhs, rhs);
}

namespace {

Value less(KernelBuilder &k, Value lhs, Value rhs) {
  return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, lhs, rhs);
}

/// 0, 1, 2, .. in the lanes.
Value laneNumbers(KernelBuilder &k, int64_t lanes) {
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  return arith::ConstantOp::create(k.b, k.loc, k.b.getI32VectorAttr(numbers));
}
Value splatI32(KernelBuilder &k, Value index, int64_t lanes) {
  Value narrow =
      arith::IndexCastOp::create(k.b, k.loc, k.b.getI32Type(), index);
  return vector::BroadcastOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI32Type()), narrow);
}
Value toFloat(KernelBuilder &k, Value index) {
  Value narrow =
      arith::IndexCastOp::create(k.b, k.loc, k.b.getI32Type(), index);
  return arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), narrow);
}

} // namespace

StepKernel::Range StepKernel::visible(KernelBuilder &k, ArrayRef<Row> at) {
  Range range;
  Value zero = k.index(0);
  if (!modifiers.hidesByDistance()) {
    range.begin.assign(at.size(), zero);
    range.end.assign(at.size(), keys);
    range.first = range.latestBegin = zero;
    range.last = range.earliestEnd = keys;
    return range;
  }
  KeysInReach reach = this->reach(k);
  auto seenBy = [&](const Row &row) -> std::pair<Value, Value> {
    Value own = reach.ownKey(queryOf(k, row));
    Value begin = reach.begin(own), end = reach.end(own, k.index(1));
    return {begin ? begin : zero, end ? k.min(end, keys) : keys};
  };
  for (const Row &row : at) {
    auto [begin, end] = seenBy(row);
    range.begin.push_back(begin);
    range.end.push_back(end);
  }
  // Later queries begin and end later: the first and the last one of the block
  // tell the bounds. A block that goes on with the next head has any query.
  Row first = at.front(), last = at.back();
  if (group > 1) {
    Value oneHead = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq,
                                          first.head, last.head);
    Value queries = k.dim(op.getQuery(), 2);
    first.query =
        arith::SelectOp::create(k.b, k.loc, oneHead, first.query, zero);
    last.query = arith::SelectOp::create(k.b, k.loc, oneHead, last.query,
                                         k.sub(queries, k.index(1)));
  }
  auto [earliestBegin, earliestEnd] = seenBy(first);
  auto [latestBegin, latestEnd] = seenBy(last);
  range.latestBegin = latestBegin;
  range.earliestEnd = earliestEnd;
  range.first = maxIndex(k, earliestBegin, zero);
  range.last = maxIndex(k, latestEnd, zero);
  return range;
}

/// Which lanes of a panel the mask operand lets a row see.
Value StepKernel::seenByMask(KernelBuilder &k, const Row &row, Value start) {
  if (sharesMask) {
    Value numbers = k.load(packedMask, {start}, lanes);
    return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::UNE, numbers,
                                 k.splat(0.0, lanes));
  }
  Values seen;
  Value last = k.sub(keys, k.index(1));
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value n = k.min(k.add(start, k.index(lane)), last);
    seen.push_back(k.loadScalar(op.getMask(), place(k, op.getMask(), row, n)));
  }
  return vector::FromElementsOp::create(
      k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()), seen);
}

/// The scores of a row and a panel of keys, in a vector.
class StepKernel::PanelScores : public ScoreArithmetic {
public:
  PanelScores(StepKernel &step, KernelBuilder &k, Value start)
      : ScoreArithmetic(k), step(step), start(start),
        valid(k.min(k.index(step.lanes), k.sub(step.keys, start))) {
    if (step.sharesMask)
      sharedMask = step.seenByMask(k, {}, start);
  }

  Value biasAt(Value bias) override {
    return k.load(bias, step.place(k, bias, row, start), step.lanes, valid);
  }
  Value diagonalAt(Value diagonals) override {
    // The diagonal of the first lane's key, counted from the last query's first
    // key.
    Value head = step.headOf(k, row);
    Value key = k.add(step.op.getKeyOffset(), start);
    Value last = k.sub(step.op.getNumQueries(), k.index(1));
    Value number = k.add(k.sub(key, step.queryOf(k, row)), last);
    return k.load(diagonals, {head, number}, step.lanes, valid);
  }
  Value slopeAt(Value slopes) override {
    return k.splat(k.loadScalar(slopes, {step.headOf(k, row)}), step.lanes);
  }
  Value distance() override {
    Value position = step.reach(k).positionOf(step.queryOf(k, row));
    Value first = toFloat(k, k.sub(start, position));
    Value numbers = arith::SIToFPOp::create(
        k.b, k.loc, k.vectorType(step.lanes), laneNumbers(k, step.lanes));
    return plus(numbers, k.splat(first, step.lanes));
  }
  Value maskAt(Value) override {
    return sharedMask ? sharedMask : step.seenByMask(k, row, start);
  }

  Row row;

private:
  StepKernel &step;
  Value start, valid, sharedMask;
};

/// Scale, where products lack it, soft cap, biases and mask of the panel that
/// starts at key `start`.
void StepKernel::adjust(KernelBuilder &k, ArrayRef<Row> at, Value start,
                        Values &scores) {
  PanelScores panel(*this, k, start);
  for (auto [row, score] : llvm::zip_equal(at, scores)) {
    panel.row = row;
    score = panel.modify(modifiers, score);
  }
}

/// Hides keys outside each row's range, if the panel has any.
Values StepKernel::hide(KernelBuilder &k, const Range &range, Value start,
                        ValueRange scores) {
  Value end = k.add(start, k.index(lanes));
  Value edge = less(k, range.earliestEnd, end);
  if (modifiers.window)
    edge = arith::OrIOp::create(k.b, k.loc, edge,
                                less(k, start, range.latestBegin));
  auto masked = [&](OpBuilder &builder, Location loc) {
    KernelBuilder k(builder, loc);
    Value numbers = laneNumbers(k, lanes);
    Values hidden;
    for (auto [i, score] : llvm::enumerate(scores)) {
      Value stop = splatI32(k, k.sub(range.end[i], start), lanes);
      Value seen = less(k, numbers, stop);
      if (modifiers.window) {
        Value from = splatI32(k, k.sub(range.begin[i], start), lanes);
        Value late = arith::CmpIOp::create(
            builder, loc, arith::CmpIPredicate::sge, numbers, from);
        seen = arith::AndIOp::create(builder, loc, seen, late);
      }
      hidden.push_back(arith::SelectOp::create(builder, loc, seen, score,
                                               k.splat(-INFINITY, lanes)));
    }
    scf::YieldOp::create(builder, loc, hidden);
  };
  auto whole = [&](OpBuilder &builder, Location loc) {
    scf::YieldOp::create(builder, loc, scores);
  };
  auto choice = scf::IfOp::create(k.b, k.loc, edge, masked, whole);
  return Values(choice.getResults());
}

} // namespace attune
