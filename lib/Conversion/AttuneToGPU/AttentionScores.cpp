//===- AttentionScores.cpp - Between the two products of attention --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The instruction computes powers of two: a probability is 2^(c x - M), where M
// is c times the maximum, rounded. c is log2 e, times the scale if scores are
// only scaled, by a positive number. One multiply-add gives the difference,
// which is exact where large scores lie close together. Rounding M makes all
// probabilities of a row larger or smaller alike.

#include "Attention.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>

using namespace mlir;

namespace attune {

constexpr double kLog2E = 1.4426950408889634;

static Value intrinsic(BlockBuilder &b, StringRef name, ValueRange operands) {
  return LLVM::CallIntrinsicOp::create(b.b, b.loc, operands[0].getType(),
                                       b.b.getStringAttr(name), operands)
      .getResult(0);
}

Value maximum(BlockBuilder &b, Value lhs, Value rhs) {
  return intrinsic(b, "llvm.maxnum.f32", {lhs, rhs});
}
Value orZero(BlockBuilder &b, Value x) {
  Value none = arith::CmpFOp::create(b.b, b.loc, arith::CmpFPredicate::OEQ, x,
                                     b.f32(-INFINITY));
  return b.select(none, b.f32(0), x);
}
static Value times(BlockBuilder &b, Value lhs, Value rhs) {
  return arith::MulFOp::create(b.b, b.loc, lhs, rhs);
}
static Value plus(BlockBuilder &b, Value lhs, Value rhs) {
  return arith::AddFOp::create(b.b, b.loc, lhs, rhs);
}
static Value minus(BlockBuilder &b, Value lhs, Value rhs) {
  return arith::SubFOp::create(b.b, b.loc, lhs, rhs);
}

/// The unit in which scores and maxima are kept: the scale, if nothing is added
/// to scores.
static double unitOf(const ScoreModifiers &modifiers) {
  return modifiers.addsNothing() && modifiers.scale > 0 ? modifiers.scale : 1;
}

/// 2^x, and 0 where that is below the smallest normal number.
static Value power(BlockBuilder &b, Value x) {
  return intrinsic(b, "llvm.nvvm.ex2.approx.ftz.f32", {x});
}
static double exponentOf(AttentionIntoOp op) {
  return unitOf(ScoreModifiers::of(op)) * kLog2E;
}

Value weightOf(BlockBuilder &b, AttentionIntoOp op, Value score, Value most) {
  Value negative = arith::NegFOp::create(b.b, b.loc, most);
  return power(b, math::FmaOp::create(b.b, b.loc, score, b.f32(exponentOf(op)),
                                      negative));
}
Value weightOfMaximum(BlockBuilder &b, Value maximum, Value most) {
  return power(b, minus(b, maximum, most));
}

FinishedRow finishRow(BlockBuilder &b, AttentionIntoOp op, Value max, Value sum,
                      Value head) {
  Value factor;
  if (op.getSinks()) {
    Value sink = times(b, b.loadNumber(op.getSinks(), {head}), b.f32(kLog2E));
    Value most = maximum(b, max, sink), safe = orZero(b, most);
    factor = weightOfMaximum(b, max, safe);
    sum = plus(b, times(b, sum, factor), weightOfMaximum(b, sink, safe));
    max = most;
  }
  Value none = arith::CmpFOp::create(b.b, b.loc, arith::CmpFPredicate::OEQ, sum,
                                     b.f32(0));
  Value share = arith::DivFOp::create(b.b, b.loc, b.f32(1), sum);
  share = b.select(none, b.f32(0), share);
  FinishedRow row = {factor ? times(b, share, factor) : share, {}};
  if (op.getLse())
    row.logSumExp = plus(b, times(b, max, b.f32(1 / kLog2E)),
                         math::LogOp::create(b.b, b.loc, sum));
  return row;
}

Value AttentionScores::keyOf(BlockBuilder &b, Value first, int64_t tile,
                             int64_t i) {
  return b.add(b.add(first, b.index(8 * tile)), columns[i]);
}

/// The score of a row and a key, in a register.
class AttentionScores::LaneScore : public ScoreArithmetic {
public:
  LaneScore(AttentionScores &all, BlockBuilder &b, const AttentionRow &row)
      : ScoreArithmetic(b), all(all), b(b), row(row),
        reach(b, all.modifiers, all.sizes.queries,
              keysUpToLast(b, all.modifiers, all.sizes.keys, all.batch)) {
    if (Value slopes = all.modifiers.slopes)
      slope = b.loadNumber(slopes, {row.head});
  }

  Value biasAt(Value bias) override { return load(bias); }
  Value maskAt(Value mask) override { return load(mask); }
  Value diagonalAt(Value diagonals) override {
    // The last diagonal is that of the last key of the longest sequence.
    Value last = b.sub(all.sizes.queries, b.index(1));
    Value number = b.add(b.sub(keyThere(), row.query), last);
    number = b.add(number, b.sub(all.sizes.keys, reach.numKeys));
    return b.loadNumber(diagonals, {row.head, number});
  }
  Value slopeAt(Value) override { return slope; }
  Value distance() override {
    Value distance = b.sub(key, reach.positionOf(row.query));
    distance =
        arith::IndexCastOp::create(b.b, b.loc, b.b.getI32Type(), distance);
    return arith::SIToFPOp::create(b.b, b.loc, b.b.getF32Type(), distance);
  }

  Value key;

private:
  /// Keys past the end are hidden anyway.
  Value keyThere() { return b.min(key, b.sub(all.sizes.keys, b.index(1))); }
  Value load(Value buffer) {
    auto type = cast<MemRefType>(buffer.getType());
    SmallVector<Value> at = {all.batch, row.head, row.query, keyThere()};
    for (int64_t dim = 0; dim < 4; ++dim)
      if (type.getDimSize(dim) == 1)
        at[dim] = b.index(0);
    return b.loadNumber(buffer, at);
  }

  AttentionScores &all;
  BlockBuilder &b;
  const AttentionRow &row;
  KeysInReach reach;
  Value slope;
};

void AttentionScores::adjust(BlockBuilder &b, Value first, Scores &scores) {
  ScoreModifiers left = modifiers;
  left.scale /= unitOf(modifiers);
  for (int64_t half = 0; half < 2; ++half) {
    LaneScore lane(*this, b, rows[half]);
    for (auto [tile, four] : llvm::enumerate(scores))
      for (int64_t i = 0; i < 2; ++i) {
        lane.key = keyOf(b, first, int64_t(tile), i);
        four[half][i] = lane.modify(left, four[half][i]);
      }
  }
}

void AttentionScores::hide(BlockBuilder &b, Value edge, Value first,
                           Scores &scores) {
  Type i32 = b.b.getI32Type();
  SmallVector<Value> before;
  for (auto &four : scores)
    for (auto &pair : four)
      before.append(pair.begin(), pair.end());
  auto choice = scf::IfOp::create(
      b.b, b.loc, edge,
      [&](OpBuilder &builder, Location loc) {
        BlockBuilder b(builder, loc);
        SmallVector<Value> hidden;
        // Key 8 t + column against the ends: one constant for each t.
        Value limits[2][2], starts[2][2];
        for (int64_t half = 0; half < 2; ++half)
          for (int64_t i = 0; i < 2; ++i) {
            Value here = b.add(first, columns[i]);
            limits[half][i] = arith::IndexCastOp::create(
                builder, loc, i32, b.sub(rows[half].end, here));
            starts[half][i] = arith::IndexCastOp::create(
                builder, loc, i32, b.sub(rows[half].begin, here));
          }
        for (int64_t tile = 0; tile < int64_t(scores.size()); ++tile)
          for (int64_t half = 0; half < 2; ++half)
            for (int64_t i = 0; i < 2; ++i) {
              Value at = arith::ConstantOp::create(
                  builder, loc, builder.getI32IntegerAttr(8 * tile));
              Value seen = b.less(at, limits[half][i]);
              if (modifiers.window)
                seen = b.both(seen, arith::CmpIOp::create(
                                        builder, loc, arith::CmpIPredicate::sge,
                                        at, starts[half][i]));
              hidden.push_back(
                  b.select(seen, scores[tile][half][i], b.f32(-INFINITY)));
            }
        scf::YieldOp::create(builder, loc, hidden);
      },
      [&](OpBuilder &builder, Location loc) {
        scf::YieldOp::create(builder, loc, before);
      });
  auto next = choice.getResults().begin();
  for (auto &four : scores)
    for (auto &pair : four)
      for (Value &score : pair)
        score = *next++;
}

void multiplyByScales(
    BlockBuilder &b, Scores &scores,
    llvm::function_ref<std::array<Value, 2>(BlockBuilder &, int64_t)>
        scalesOf) {
  for (auto [tile, four] : llvm::enumerate(scores)) {
    std::array<Value, 2> scales = scalesOf(b, int64_t(tile));
    for (auto &half : four)
      for (int64_t i = 0; i < 2; ++i)
        half[i] = times(b, half[i], scales[i]);
  }
}

/// Combines numbers in four chains, so that none has to wait for the last.
static Value
combineAll(BlockBuilder &b, ArrayRef<Value> numbers,
           llvm::function_ref<Value(BlockBuilder &, Value, Value)> combine) {
  SmallVector<Value> chains;
  for (auto [i, number] : llvm::enumerate(numbers))
    if (i < 4)
      chains.push_back(number);
    else
      chains[i % 4] = combine(b, chains[i % 4], number);
  while (chains.size() > 1) {
    Value last = chains.pop_back_val();
    Value &other = chains[(chains.size() - 1) / 2];
    other = combine(b, other, last);
  }
  return chains[0];
}

Value amongLanes(
    BlockBuilder &b, Value x,
    llvm::function_ref<Value(BlockBuilder &, Value, Value)> combine) {
  for (int32_t distance : {1, 2}) {
    Value other = gpu::ShuffleOp::create(b.b, b.loc, x, distance, 32,
                                         gpu::ShuffleMode::XOR)
                      .getShuffleResult();
    x = combine(b, x, other);
  }
  return x;
}

std::array<Value, 2> AttentionScores::weigh(BlockBuilder &b, Scores &scores,
                                            AttentionSums &state) {
  std::array<Value, 2> ratios;
  for (int64_t half = 0; half < 2; ++half) {
    Value &most = state.most[half], &sum = state.sum[half];
    SmallVector<Value> numbers;
    for (auto &four : scores)
      llvm::append_range(numbers, four[half]);
    Value here = amongLanes(b, combineAll(b, numbers, maximum), maximum);
    here = times(b, here, b.f32(exponentOf(op)));
    Value next = maximum(b, most, here), safe = orZero(b, next);
    ratios[half] = weightOfMaximum(b, most, safe);
    most = next;
    numbers.clear();
    for (auto &four : scores)
      for (Value &score : four[half])
        numbers.push_back(score = weightOf(b, op, score, safe));
    sum = plus(b, times(b, sum, ratios[half]), combineAll(b, numbers, plus));
  }
  return ratios;
}

} // namespace attune
