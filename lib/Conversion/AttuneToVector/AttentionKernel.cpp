//===- AttentionKernel.cpp - A step of online softmax in vectors -*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// One step folds a block of keys into the states of a tile of queries. The
// queries of all heads that share the keys are stacked into rows. In order:
//
//   queries, times scale  -> [blocks of rows][rows][width]   once per tile
//   keys, transposed      -> [panels of keys][width][lanes]  keys are lanes
//   values                -> [panels of width][keys][lanes]  channels are lanes
//   for each block of rows:
//     scores of each panel by the matrix microkernel, soft-capped, biased and
//     masked in registers, stored; their maximum kept in registers
//     new maximum, factor to rescale by; probabilities over the scores, summed
//     accumulator *= factor, += probabilities * values by the microkernel
//
// A last block of rows that is not full repeats the last row: its copies are
// all read before any is written, so they write the same numbers.

#include "Attention.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;

// Keys are transposed in squares of this many.
constexpr int64_t kSquare = 8;

/// The largest value that an index can have, if a constant says so.
std::optional<int64_t> upperBound(Value value) {
  if (auto constant = getConstantIntValue(value))
    return constant;
  auto least = value.getDefiningOp<arith::MinSIOp>();
  if (!least)
    return std::nullopt;
  auto lhs = upperBound(least.getLhs()), rhs = upperBound(least.getRhs());
  return lhs && rhs ? std::min(*lhs, *rhs) : lhs ? lhs : rhs;
}
std::optional<int64_t> upperBound(Value tensor, int64_t dim) {
  auto type = tensorType(tensor);
  if (!type.isDynamicDim(dim))
    return type.getDimSize(dim);
  if (auto cast = tensor.getDefiningOp<tensor::CastOp>())
    return upperBound(cast.getSource(), dim);
  auto slice = tensor.getDefiningOp<tensor::ExtractSliceOp>();
  if (!slice || slice.getSourceType().getRank() != type.getRank())
    return std::nullopt;
  OpFoldResult size = slice.getMixedSizes()[dim];
  if (auto constant = getConstantIntValue(size))
    return constant;
  return upperBound(cast<Value>(size));
}

Value shuffle(KernelBuilder &k, Value a, Value b, ArrayRef<int64_t> lanes) {
  return vector::ShuffleOp::create(k.b, k.loc, a, b, lanes);
}

/// Eight vectors of eight lanes, transposed in three rounds of two-operand
/// shuffles, of which the first two stay within 128 bits.
Values transposeSquare(KernelBuilder &k, ArrayRef<Value> rows) {
  Values pairs, quads, columns;
  for (int64_t i = 0; i < kSquare; i += 2) {
    pairs.push_back(
        shuffle(k, rows[i], rows[i + 1], {0, 8, 1, 9, 4, 12, 5, 13}));
    pairs.push_back(
        shuffle(k, rows[i], rows[i + 1], {2, 10, 3, 11, 6, 14, 7, 15}));
  }
  for (int64_t half = 0; half < kSquare; half += 4)
    for (int64_t i = half; i < half + 2; ++i) {
      quads.push_back(
          shuffle(k, pairs[i], pairs[i + 2], {0, 1, 8, 9, 4, 5, 12, 13}));
      quads.push_back(
          shuffle(k, pairs[i], pairs[i + 2], {2, 3, 10, 11, 6, 7, 14, 15}));
    }
  for (int64_t i = 0; i < 4; ++i)
    columns.push_back(
        shuffle(k, quads[i], quads[i + 4], {0, 1, 2, 3, 8, 9, 10, 11}));
  for (int64_t i = 0; i < 4; ++i)
    columns.push_back(
        shuffle(k, quads[i], quads[i + 4], {4, 5, 6, 7, 12, 13, 14, 15}));
  return columns;
}

/// All lanes combined into one number, by halving.
Value reduce(KernelBuilder &k, Value vector,
             llvm::function_ref<Value(Value, Value)> combine) {
  int64_t lanes = cast<VectorType>(vector.getType()).getDimSize(0);
  while (lanes > 1) {
    int64_t odd = lanes % 2;
    lanes /= 2;
    assert(!odd && "the register tile is a multiple of eight");
    SmallVector<int64_t> low(lanes), high(lanes);
    std::iota(low.begin(), low.end(), 0);
    std::iota(high.begin(), high.end(), lanes);
    vector = combine(shuffle(k, vector, vector, low),
                     shuffle(k, vector, vector, high));
  }
  return vector::ExtractOp::create(k.b, k.loc, vector, int64_t{0});
}

Value maxIndex(KernelBuilder &k, Value lhs, Value rhs) {
  return k.b.createOrFold<arith::MaxSIOp>(k.loc, lhs, rhs);
}
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

/// Emits one step; the members are what its parts share.
class StepKernel {
public:
  StepKernel(OnlineAttentionOp op, const AttentionTile &tile,
             int64_t maxQueries, int64_t maxKeys)
      : op(op), lanes(tile.lanes), rows(tile.rows) {
    auto query = tensorType(op.getQuery()), key = tensorType(op.getKey());
    group = query.getDimSize(1) / key.getDimSize(1);
    width = query.getDimSize(3);
    valueWidth = tensorType(op.getValue()).getDimSize(3);
    rowBlocks = llvm::divideCeil(group * maxQueries, rows);
    keyPanels = llvm::divideCeil(maxKeys, lanes);
    valuePanels = llvm::divideCeil(valueWidth, lanes);
    masksRange = op.getWindow() || op.getCausal() != CausalAlign::None;
    alone = query.getDimSize(0) == 1 && key.getDimSize(1) == 1;
  }

  Values emit(OpBuilder &builder);

private:
  /// A stacked row: which head and query of the tile, counted from zero.
  struct Row {
    Value head, query;
  };
  /// What the rows of one block see of the block of keys: row i the keys
  /// [begin[i], end[i]), all rows together nothing outside [first, last).
  struct Range {
    Values begin, end;
    Value first, last;
    Value latestBegin, earliestEnd;
  };

  Value scratch(KernelBuilder &k, ArrayRef<int64_t> shape);
  Row rowAt(KernelBuilder &k, Value number);
  SmallVector<Row> rowsOf(KernelBuilder &k, Value block);
  Value countRowBlocks(KernelBuilder &k);
  Value packQueries(KernelBuilder &k, Value to);
  Value packKeys(KernelBuilder &k, Value to);
  Value packValues(KernelBuilder &k, Value to);
  Values foldBlock(KernelBuilder &k, Value block, ValueRange carried);
  Range visible(KernelBuilder &k, ArrayRef<Row> at);
  Value keyPosition(KernelBuilder &k, const Row &row, bool topLeft);
  void adjust(KernelBuilder &k, ArrayRef<Row> at, Value start, Values &scores);
  Values hide(KernelBuilder &k, const Range &range, Value start,
              ValueRange scores);
  Value seenByMask(KernelBuilder &k, const Row &row, Value start);

  /// Where a row is in a [batch, heads, queries, ..] tensor; a dimension of
  /// size one serves all.
  SmallVector<Value> place(KernelBuilder &k, Value tensor, const Row &row) {
    SmallVector<Value> at = {batch, k.add(k.mul(kvHead, group), row.head),
                             row.query};
    for (int64_t dim = 0; dim < 3; ++dim)
      if (tensorType(tensor).getDimSize(dim) == 1)
        at[dim] = k.index(0);
    return at;
  }
  SmallVector<Value> place(KernelBuilder &k, Value tensor, const Row &row,
                           Value last) {
    SmallVector<Value> at = place(k, tensor, row);
    at.push_back(last);
    return at;
  }

  OnlineAttentionOp op;
  int64_t lanes, rows;
  int64_t group, width, valueWidth;
  int64_t rowBlocks, keyPanels, valuePanels; // upper bounds
  bool masksRange, alone;
  Value batch, kvHead; // of the tile that is being folded
  Value keys;          // in the block
  Value packedQueries, packedKeys, packedValues;
};

Value StepKernel::scratch(KernelBuilder &k, ArrayRef<int64_t> shape) {
  return bufferization::AllocTensorOp::create(
      k.b, k.loc, RankedTensorType::get(shape, k.b.getF32Type()), ValueRange{});
}

Value StepKernel::countRowBlocks(KernelBuilder &k) {
  return k.ceilDiv(k.mul(k.dim(op.getQuery(), 2), group), rows);
}

StepKernel::Row StepKernel::rowAt(KernelBuilder &k, Value number) {
  Value queries = k.dim(op.getQuery(), 2);
  Value total = k.mul(queries, group);
  number = k.min(number, k.sub(total, k.index(1)));
  if (group == 1)
    return {k.index(0), number};
  if (getConstantIntValue(queries) == 1)
    return {number, k.index(0)};
  return {arith::DivUIOp::create(k.b, k.loc, number, queries),
          arith::RemUIOp::create(k.b, k.loc, number, queries)};
}

SmallVector<StepKernel::Row> StepKernel::rowsOf(KernelBuilder &k, Value block) {
  SmallVector<Row> all;
  Value first = k.mul(block, rows);
  for (int64_t i = 0; i < rows; ++i)
    all.push_back(rowAt(k, k.add(first, k.index(i))));
  return all;
}

Value StepKernel::packQueries(KernelBuilder &k, Value to) {
  auto packRow = [&](KernelBuilder &k, Value block, Value i, ValueRange c) {
    Row row = rowAt(k, k.add(k.mul(block, rows), i));
    Value scale = k.splat(op.getScale().convertToDouble(), lanes);
    return forVectors(
        k, k.index(width), lanes, c,
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = k.load(op.getQuery(), place(k, op.getQuery(), row, column),
                           lanes, valid);
          x = arith::MulFOp::create(k.b, k.loc, x, scale);
          return Values{k.store(x, c[0], {block, i, column})};
        });
  };
  return k.forLoop(k.index(0), countRowBlocks(k), 1, to,
                   [&](KernelBuilder &k, Value block, ValueRange c) {
                     return k.forLoop(
                         k.index(0), k.index(rows), 1, c,
                         [&](KernelBuilder &k, Value i, ValueRange c) {
                           return packRow(k, block, i, c);
                         });
                   })[0];
}

Value StepKernel::packKeys(KernelBuilder &k, Value to) {
  Value last = k.sub(keys, k.index(1));
  // Keys beyond the end repeat the last: masked later, but real memory.
  auto packSquare = [&](KernelBuilder &k, Value panel, int64_t lane,
                        Value column, int64_t columns, Value panels) {
    Values square;
    for (int64_t i = 0; i < kSquare; ++i) {
      Value n = k.add(k.mul(panel, lanes), k.index(lane + i));
      Value valid = columns < kSquare ? k.index(columns) : Value();
      square.push_back(k.load(op.getKey(),
                              {batch, kvHead, k.min(n, last), column}, kSquare,
                              valid));
    }
    square = transposeSquare(k, square);
    for (int64_t i = 0; i < columns; ++i)
      panels = k.store(square[i], panels,
                       {panel, k.add(column, k.index(i)), k.index(lane)});
    return panels;
  };
  int64_t whole = width / kSquare * kSquare;
  return k.forLoop(k.index(0), k.ceilDiv(keys, lanes), 1, to,
                   [&](KernelBuilder &k, Value panel, ValueRange c) {
                     Value panels = c[0];
                     for (int64_t lane = 0; lane < lanes; lane += kSquare) {
                       panels = k.forLoop(
                           k.index(0), k.index(whole), kSquare, panels,
                           [&](KernelBuilder &k, Value column, ValueRange c) {
                             return Values{packSquare(k, panel, lane, column,
                                                      kSquare, c[0])};
                           })[0];
                       if (whole < width)
                         panels = packSquare(k, panel, lane, k.index(whole),
                                             width - whole, panels);
                     }
                     return Values{panels};
                   })[0];
}

Value StepKernel::packValues(KernelBuilder &k, Value to) {
  return k.forLoop(
      k.index(0), keys, 1, to, [&](KernelBuilder &k, Value n, ValueRange c) {
        Value packed = c[0];
        for (int64_t panel = 0; panel < valuePanels; ++panel) {
          int64_t column = panel * lanes;
          Value valid = valueWidth - column < lanes
                            ? k.index(valueWidth - column)
                            : Value();
          Value x = k.load(op.getValue(), {batch, kvHead, n, k.index(column)},
                           lanes, valid);
          packed = k.store(x, packed, {k.index(panel), n, k.index(0)});
        }
        return Values{packed};
      })[0];
}

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
  Value earliestBegin, latestEnd;
  for (const Row &row : at) {
    Value past =
        k.add(keyPosition(k, row, op.getCausal() == CausalAlign::TopLeft),
              k.index(1));
    Value begin = op.getWindow() ? k.sub(past, k.index(*op.getWindow())) : zero;
    bool causal = op.getCausal() != CausalAlign::None;
    Value end = causal ? k.min(past, keys) : keys;
    range.begin.push_back(begin);
    range.end.push_back(end);
    bool first = range.end.size() == 1;
    earliestBegin = first ? begin : k.min(earliestBegin, begin);
    latestEnd = first ? end : maxIndex(k, latestEnd, end);
    range.latestBegin = first ? begin : maxIndex(k, range.latestBegin, begin);
    range.earliestEnd = first ? end : k.min(range.earliestEnd, end);
  }
  range.first = maxIndex(k, earliestBegin, zero);
  range.last = maxIndex(k, latestEnd, zero);
  return range;
}

/// Which lanes of a panel the mask operand lets a row see.
Value StepKernel::seenByMask(KernelBuilder &k, const Row &row, Value start) {
  // One element at a time: i1 vectors in memory are bits, i1 tensors bytes.
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
  if (op.getMask() && tensorType(op.getMask()).getDimSize(1) == 1 &&
      tensorType(op.getMask()).getDimSize(2) == 1)
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

/// Folds the keys into one block of rows. Carried: scores, acc, max, sum.
Values StepKernel::foldBlock(KernelBuilder &k, Value block,
                             ValueRange carried) {
  SmallVector<Row> at = rowsOf(k, block);
  Range range = visible(k, at);
  Value zero = k.index(0);
  Value firstPanel = zero;
  if (op.getWindow())
    firstPanel =
        arith::DivUIOp::create(k.b, k.loc, range.first, k.index(lanes));
  Value endPanel = k.ceilDiv(range.last, lanes);
  Value firstKey = k.mul(firstPanel, lanes);
  Value depth = k.sub(range.last, firstKey);

  // Scores, and in each lane the largest seen so far.
  Values state = {carried[0]};
  state.append(rows, k.splat(-INFINITY, lanes));
  state = k.forLoop(
      firstPanel, endPanel, 1, state,
      [&](KernelBuilder &k, Value panel, ValueRange c) {
        Values scores = emitMicrokernel(
            k, rows, k.index(width), Values(rows, k.splat(0.0, lanes)),
            [&](KernelBuilder &k, int64_t row, Value d) {
              return k.loadScalar(packedQueries, {block, k.index(row), d});
            },
            [&](KernelBuilder &k, Value d) {
              return k.load(packedKeys, {panel, d, k.index(0)}, lanes);
            });
        Value start = k.mul(panel, lanes);
        adjust(k, at, start, scores);
        scores = hide(k, range, start, scores);
        Values next = {c[0]};
        for (int64_t i = 0; i < rows; ++i) {
          next[0] = k.store(scores[i], next[0], {k.index(i), start});
          next.push_back(emitMax(k, scores[i], c[1 + i]));
        }
        return next;
      });

  // The new maxima, and by what the old states shrink.
  Values maxima, safe, shrink, factors;
  for (int64_t i = 0; i < rows; ++i) {
    Value old = k.loadScalar(carried[2], place(k, carried[2], at[i]));
    Value block = reduce(k, state[1 + i],
                         [&](Value a, Value b) { return emitMax(k, a, b); });
    maxima.push_back(emitMax(k, block, old));
    safe.push_back(emitSafeMax(k, maxima.back()));
    shrink.push_back(arith::SubFOp::create(k.b, k.loc, old, safe.back()));
  }
  // One vector holds the exponents of all rows.
  int64_t held = llvm::alignTo(rows, kSquare);
  shrink.append(held - rows, k.f32(0.0));
  Value powers = emitExp(k, vector::FromElementsOp::create(
                                k.b, k.loc, k.vectorType(held), shrink));
  for (int64_t i = 0; i < rows; ++i)
    factors.push_back(vector::ExtractOp::create(k.b, k.loc, powers, i));

  // Probabilities over the scores, and their sums.
  Values sums = {state[0]};
  sums.append(rows, k.splat(0.0, lanes));
  sums = k.forLoop(
      firstPanel, endPanel, 1, sums,
      [&](KernelBuilder &k, Value panel, ValueRange c) {
        Value start = k.mul(panel, lanes);
        Values next = {c[0]};
        for (int64_t i = 0; i < rows; ++i) {
          Value x = k.load(next[0], {k.index(i), start}, lanes);
          x = arith::SubFOp::create(k.b, k.loc, x, k.splat(safe[i], lanes));
          Value p = emitExp(k, x);
          next[0] = k.store(p, next[0], {k.index(i), start});
          next.push_back(arith::AddFOp::create(k.b, k.loc, c[1 + i], p));
        }
        return next;
      });
  Value probabilities = sums[0];

  Values newSums;
  for (int64_t i = 0; i < rows; ++i) {
    Value old = k.loadScalar(carried[3], place(k, carried[3], at[i]));
    Value added = reduce(k, sums[1 + i], [&](Value a, Value b) -> Value {
      return arith::AddFOp::create(k.b, k.loc, a, b);
    });
    newSums.push_back(k.b.create<arith::AddFOp>(
        k.loc, arith::MulFOp::create(k.b, k.loc, old, factors[i]), added));
  }
  Value max = carried[2], sum = carried[3];
  for (int64_t i = 0; i < rows; ++i) {
    max = tensor::InsertOp::create(k.b, k.loc, maxima[i], max,
                                   place(k, max, at[i]));
    sum = tensor::InsertOp::create(k.b, k.loc, newSums[i], sum,
                                   place(k, sum, at[i]));
  }

  // The weighted sum.
  auto foldPanel = [&](KernelBuilder &k, Value panel, Value valid, Value acc) {
    Value column = k.mul(panel, lanes);
    Values inits;
    for (int64_t i = 0; i < rows; ++i) {
      Value x = k.load(acc, place(k, acc, at[i], column), lanes, valid);
      inits.push_back(
          arith::MulFOp::create(k.b, k.loc, x, k.splat(factors[i], lanes)));
    }
    Values folded = emitMicrokernel(
        k, rows, depth, inits,
        [&](KernelBuilder &k, int64_t row, Value n) {
          return k.loadScalar(probabilities,
                              {k.index(row), k.add(firstKey, n)});
        },
        [&](KernelBuilder &k, Value n) {
          return k.load(packedValues, {panel, k.add(firstKey, n), k.index(0)},
                        lanes);
        });
    for (int64_t i = 0; i < rows; ++i)
      acc = k.store(folded[i], acc, place(k, acc, at[i], column), valid);
    return acc;
  };
  int64_t whole = valueWidth / lanes;
  Value acc = k.forLoop(zero, k.index(whole), 1, carried[1],
                        [&](KernelBuilder &k, Value panel, ValueRange c) {
                          return Values{foldPanel(k, panel, {}, c[0])};
                        })[0];
  if (whole * lanes < valueWidth)
    acc =
        foldPanel(k, k.index(whole), k.index(valueWidth - whole * lanes), acc);
  return {probabilities, acc, max, sum};
}

Values StepKernel::emit(OpBuilder &builder) {
  OpBuilder::InsertionGuard guard(builder);
  KernelBuilder k(builder, op.getLoc());
  // Scratch lives as long as the parallel iteration that the step is part of.
  Block *home = op->getParentOfType<FunctionOpInterface>()
                    .getFunctionBody()
                    .getBlocks()
                    .front()
                    .front()
                    .getBlock();
  if (auto forall = op->getParentOfType<scf::ForallOp>())
    home = forall.getBody();
  builder.setInsertionPointToStart(home);
  Value queryScratch =
      scratch(k, {rowBlocks, rows, int64_t(llvm::alignTo(width, lanes))});
  Value keyScratch = scratch(k, {keyPanels, width, lanes});
  Value valueScratch = scratch(k, {valuePanels, keyPanels * lanes, lanes});
  Value scoreScratch = scratch(k, {rows, keyPanels * lanes});

  // Queries that do not change from step to step are packed once.
  builder.setInsertionPoint(op);
  if (alone) {
    Operation *point = op;
    while (auto loop = dyn_cast<scf::ForOp>(point->getParentOp())) {
      if (!loop.isDefinedOutsideOfLoop(op.getQuery()))
        break;
      point = loop;
    }
    builder.setInsertionPoint(point);
    batch = kvHead = k.index(0);
    packedQueries = packQueries(k, queryScratch);
    builder.setInsertionPoint(op);
  }

  keys = k.dim(op.getKey(), 2);
  auto tile = [&](KernelBuilder &k, ValueRange states) {
    if (!alone)
      packedQueries = packQueries(k, queryScratch);
    packedKeys = packKeys(k, keyScratch);
    packedValues = packValues(k, valueScratch);
    Values carried = {scoreScratch};
    llvm::append_range(carried, states);
    carried = k.forLoop(k.index(0), countRowBlocks(k), 1, carried,
                        [&](KernelBuilder &k, Value block, ValueRange c) {
                          return foldBlock(k, block, c);
                        });
    return Values(ArrayRef(carried).drop_front());
  };
  Values states = {op.getAcc(), op.getMax(), op.getSum()};
  if (alone)
    return tile(k, states);
  return k.forLoop(k.index(0), k.dim(op.getQuery(), 0), 1, states,
                   [&](KernelBuilder &k, Value b, ValueRange c) {
                     return k.forLoop(
                         k.index(0), k.dim(op.getKey(), 1), 1, c,
                         [&](KernelBuilder &k, Value g, ValueRange c) {
                           batch = b;
                           kvHead = g;
                           return tile(k, c);
                         });
                   });
}

struct LowerStep final : OpRewritePattern<OnlineAttentionOp> {
  LowerStep(MLIRContext *context, const AttentionTile &tile)
      : OpRewritePattern(context), tile(tile) {}

  LogicalResult matchAndRewrite(OnlineAttentionOp op,
                                PatternRewriter &rewriter) const override {
    for (Value heads : {op.getQuery(), op.getKey(), op.getValue()})
      if (tensorType(heads).isDynamicDim(1) ||
          tensorType(heads).isDynamicDim(3))
        return rewriter.notifyMatchFailure(op, "heads and widths are dynamic");
    auto queries = upperBound(op.getQuery(), 2);
    auto keys = upperBound(op.getKey(), 2);
    if (!queries || !keys)
      return rewriter.notifyMatchFailure(op, "the tile has no upper bound");
    rewriter.replaceOp(op,
                       StepKernel(op, tile, *queries, *keys).emit(rewriter));
    return success();
  }
  AttentionTile tile;
};

} // namespace

void populateOnlineAttentionPatterns(RewritePatternSet &patterns,
                                     const AttentionTile &tile) {
  patterns.add<LowerStep>(patterns.getContext(), tile);
}

} // namespace attune
