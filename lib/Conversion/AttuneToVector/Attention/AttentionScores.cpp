//===- AttentionScores.cpp - Masks and edits of scores ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StepKernel.h"

#include "mlir/Dialect/Math/IR/Math.h"

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

/// The key position that a query stands at, relative to the block of keys.
Value StepKernel::keyPosition(KernelBuilder &k, const Row &row, bool topLeft) {
  Value position = k.add(op.getQueryOffset(), row.query);
  if (!topLeft)
    position = k.add(position, k.sub(op.getNumKeys(), op.getNumQueries()));
  return k.sub(position, op.getKeyOffset());
}

StepKernel::Range StepKernel::visible(KernelBuilder &k, ArrayRef<Row> at) {
  Range range;
  Value zero = k.index(0);
  if (!masksRange) {
    range.begin.assign(at.size(), zero);
    range.end.assign(at.size(), keys);
    range.first = range.latestBegin = zero;
    range.last = range.earliestEnd = keys;
    return range;
  }
  bool causal = op.getCausal() != CausalAlign::None;
  auto seenBy = [&](const Row &row) -> std::pair<Value, Value> {
    Value past =
        k.add(keyPosition(k, row, op.getCausal() == CausalAlign::TopLeft),
              k.index(1));
    return {op.getWindow() ? k.sub(past, k.index(*op.getWindow())) : zero,
            causal ? k.min(past, keys) : keys};
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

/// Soft cap, bias, slopes and mask of the panel that starts at key `start`.
void StepKernel::adjust(KernelBuilder &k, ArrayRef<Row> at, Value start,
                        Values &scores) {
  Value valid = k.min(k.index(lanes), k.sub(keys, start));
  Value sharedMask;
  if (sharesMask)
    sharedMask = seenByMask(k, at[0], start);
  for (auto [row, score] : llvm::zip_equal(at, scores)) {
    if (auto cap = op.getSoftcap()) {
      double limit = cap->convertToDouble();
      score =
          arith::MulFOp::create(k.b, k.loc, score, k.splat(1.0 / limit, lanes));
      score = math::TanhOp::create(k.b, k.loc, score);
      score = arith::MulFOp::create(k.b, k.loc, score, k.splat(limit, lanes));
    }
    if (Value bias = op.getBias()) {
      Value x = k.load(bias, place(k, bias, row, start), lanes, valid);
      score = arith::AddFOp::create(k.b, k.loc, score, x);
    }
    if (Value diagonals = op.getDiagonals()) {
      Value head = k.add(k.mul(kvHead, group), row.head);
      // The diagonal of the first lane's key, counted from the last query's
      // first key.
      Value key = k.add(op.getKeyOffset(), start);
      Value query = k.add(op.getQueryOffset(), row.query);
      Value last = k.sub(op.getNumQueries(), k.index(1));
      Value number = k.add(k.sub(key, query), last);
      Value x = k.load(diagonals, {head, number}, lanes, valid);
      score = arith::AddFOp::create(k.b, k.loc, score, x);
    }
    if (Value slopes = op.getSlopes()) {
      Value head = k.add(k.mul(kvHead, group), row.head);
      Value slope = k.splat(k.loadScalar(slopes, {head}), lanes);
      Value first = toFloat(k, k.sub(start, keyPosition(k, row, false)));
      Value numbers = arith::SIToFPOp::create(k.b, k.loc, k.vectorType(lanes),
                                              laneNumbers(k, lanes));
      Value distance =
          arith::AddFOp::create(k.b, k.loc, numbers, k.splat(first, lanes));
      score = k.fma(slope, distance, score);
    }
    if (op.getMask()) {
      Value seen = sharedMask ? sharedMask : seenByMask(k, row, start);
      score = arith::SelectOp::create(k.b, k.loc, seen, score,
                                      k.splat(-INFINITY, lanes));
    }
  }
}

/// Hides keys outside each row's range, if the panel has any.
Values StepKernel::hide(KernelBuilder &k, const Range &range, Value start,
                        ValueRange scores) {
  Value end = k.add(start, k.index(lanes));
  Value edge = less(k, range.earliestEnd, end);
  if (op.getWindow())
    edge = arith::OrIOp::create(k.b, k.loc, edge,
                                less(k, start, range.latestBegin));
  auto masked = [&](OpBuilder &builder, Location loc) {
    KernelBuilder k(builder, loc);
    Value numbers = laneNumbers(k, lanes);
    Values hidden;
    for (auto [i, score] : llvm::enumerate(scores)) {
      Value stop = splatI32(k, k.sub(range.end[i], start), lanes);
      Value seen = less(k, numbers, stop);
      if (op.getWindow()) {
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
