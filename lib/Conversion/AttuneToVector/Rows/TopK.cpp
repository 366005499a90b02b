//===- TopK.cpp - The largest numbers of a row ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Numbers are compared as integers, their ranks, so that NaN and the two zeros
// have their place and equal ones go by column. In each round the largest that
// is left comes out.
//
// On a GPU a row is split: warps list the largest numbers of a part each, which
// their lanes have in registers, and then one warp for each row merges the
// lists, of which a lane knows the heads. A round is two reductions of the
// warp, of ranks and of columns, for which the hardware has an instruction.
// Neither kernel waits for other warps.

#include "../Patterns.h"

#include "attune/Conversion/Lanes.h"
#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"

#include <limits>

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;
using arith::CmpIPredicate;

constexpr int32_t kNowhere = std::numeric_limits<int32_t>::max();

Value rankAt(KernelBuilder &k, Value logits, Value row, Value column) {
  return rankOf(k, k.loadScalar(logits, {row, column}));
}

Value toIndex(KernelBuilder &k, Value number) {
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), number);
}

/// A row of each destination, of which one iteration writes the first numbers.
struct ListPlace {
  Value row, length;
};
/// A parallel loop whose iterations write lists, rows of `dests` [M, count].
Values forallLists(
    KernelBuilder &k, ArrayRef<OpFoldResult> counts, ValueRange dests,
    function_ref<ListPlace(KernelBuilder &, ValueRange ivs)> place,
    function_ref<Values(KernelBuilder &, ValueRange ivs, ValueRange tiles)>
        compute) {
  auto loop = scf::ForallOp::create(k.b, k.loc, counts, dests,
                                    /*mapping=*/std::nullopt);
  OpBuilder::InsertionGuard guard(k.b);
  k.b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> ivs(loop.getInductionVars());
  ListPlace list = place(k, ivs);
  OpFoldResult zero = k.b.getIndexAttr(0), one = k.b.getIndexAttr(1);
  SmallVector<OpFoldResult> at = {list.row, zero}, sizes = {one, list.length},
                            strides = {one, one};
  Values tiles;
  for (Value dest : loop.getRegionIterArgs())
    tiles.push_back(
        tensor::ExtractSliceOp::create(k.b, k.loc, dest, at, sizes, strides));
  tiles = compute(k, ivs, tiles);
  k.b.setInsertionPointToEnd(loop.getTerminator().getBody());
  for (auto [tile, dest] : llvm::zip_equal(tiles, loop.getRegionIterArgs()))
    tensor::ParallelInsertSliceOp::create(k.b, k.loc, tile, dest, at, sizes,
                                          strides);
  return Values(loop.getResults());
}

Value emptyLists(KernelBuilder &k, Value rows, Value count, Type element) {
  return tensor::EmptyOp::create(k.b, k.loc,
                                 ArrayRef<OpFoldResult>{rows, count}, element);
}

/// Number `rank` of a list; no list is longer than `length`, which may be zero.
Value put(KernelBuilder &k, Value value, Value list, Value rank, Value length) {
  Value times = k.min(length, k.index(1));
  return k.forLoop(
      k.index(0), times, 1, list,
      [&](KernelBuilder &k, Value, ValueRange list) {
        return Values{tensor::InsertOp::create(k.b, k.loc, value, list[0],
                                               ValueRange{k.index(0), rank})};
      })[0];
}

/// Writes the result of a rank: the column as an id, and the number itself.
Values putResult(KernelBuilder &k, Value logits, Value row, Value column,
                 ValueRange lists, Value rank, Value length) {
  Value id = arith::ExtSIOp::create(k.b, k.loc, k.b.getI64Type(), column);
  // A count larger than the row gives nonsense, but reads nothing outside.
  Value last = k.sub(k.dim(logits, 1), k.index(1));
  Value value = k.loadScalar(logits, {row, k.min(toIndex(k, column), last)});
  return {put(k, id, lists[0], rank, length),
          put(k, value, lists[1], rank, length)};
}

/// Sequential: one number after the other goes into a list, in its place, if it
/// is larger than the last one there. Few are.
struct LowerTopK final : OpRewritePattern<TopKOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TopKOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value logits = op.getLogits(), count = op.getCount();
    Value rows = k.dim(logits, 0);
    Values dests = {emptyLists(k, rows, count, k.b.getI64Type()),
                    emptyLists(k, rows, count, k.b.getF32Type())};
    Values results = forallLists(
        k, {rows}, dests,
        [&](KernelBuilder &, ValueRange ivs) {
          return ListPlace{ivs[0], count};
        },
        [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
          Value width = k.dim(logits, 1);
          Value some = compare(k, CmpIPredicate::sgt, count, k.index(0));
          // The rank of the last number of a list that is full.
          Values start = {number(k, kNoRank), tiles[0], tiles[1]};
          Values end = k.forLoop(
              k.index(0), select(k, some, width, k.index(0)), 1, start,
              [&](KernelBuilder &k, Value column, ValueRange state) {
                Value x = k.loadScalar(logits, {ivs[0], column});
                Value rank = rankOf(k, x);
                Value enters = compare(k, CmpIPredicate::sgt, rank, state[0]);
                return k.forLoop(
                    k.index(0), select(k, enters, k.index(1), k.index(0)), 1,
                    state, [&](KernelBuilder &k, Value, ValueRange state) {
                      return enter(k, x, rank, column, count,
                                   state.drop_front());
                    });
              });
          return Values{end[1], end[2]};
        });
    replace(rewriter, op, results);
    return success();
  }

  /// Puts a number behind those that are not smaller and moves the others on.
  /// Returns the rank of the last one and the lists.
  static Values enter(KernelBuilder &k, Value x, Value rank, Value column,
                      Value count, ValueRange lists) {
    Value filled = k.min(column, count);
    Value length = k.min(k.add(column, k.index(1)), count);
    Value no = arith::ConstantIntOp::create(k.b, k.loc, 0, 1);
    Value id = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), column);
    // What is carried, and whether the new number is in.
    Values start = {id, x, no, lists[0], lists[1]};
    Values end = k.forLoop(
        k.index(0), length, 1, start,
        [&](KernelBuilder &k, Value place, ValueRange state) {
          // There may be nothing yet.
          Value before = arith::MaxSIOp::create(
              k.b, k.loc, k.sub(filled, k.index(1)), k.index(0));
          Value there = k.min(place, before);
          SmallVector<Value> from = {k.index(0), there};
          Value oldId = tensor::ExtractOp::create(k.b, k.loc, state[3], from);
          Value old = tensor::ExtractOp::create(k.b, k.loc, state[4], from);
          Value beyond = compare(k, CmpIPredicate::sge, place, filled);
          Value smaller = compare(k, CmpIPredicate::slt, rankOf(k, old), rank);
          Value in = either(k, state[2], either(k, beyond, smaller));
          SmallVector<Value> to = {k.index(0), place};
          Value ids = tensor::InsertOp::create(
              k.b, k.loc, select(k, in, state[0], oldId), state[3], to);
          Value values = tensor::InsertOp::create(
              k.b, k.loc, select(k, in, state[1], old), state[4], to);
          return Values{select(k, in, oldId, state[0]),
                        select(k, in, old, state[1]), in, ids, values};
        });
    Value full = compare(k, CmpIPredicate::eq, length, count);
    Value last = tensor::ExtractOp::create(
        k.b, k.loc, end[4], ValueRange{k.index(0), k.sub(length, k.index(1))});
    return {select(k, full, rankOf(k, last), number(k, kNoRank)), end[3],
            end[4]};
  }

  /// The lists may know fewer sizes than the op's results.
  static void replace(PatternRewriter &rewriter, TopKOp op, ValueRange lists) {
    Values results;
    for (auto [list, type] : llvm::zip_equal(lists, op.getResultTypes()))
      results.push_back(
          list.getType() == type
              ? list
              : tensor::CastOp::create(rewriter, op.getLoc(), type, list)
                    .getResult());
    rewriter.replaceOp(op, results);
  }
};

struct LowerTopKByWarps final : OpRewritePattern<TopKOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TopKOp op,
                                PatternRewriter &rewriter) const override {
    int64_t width =
        cast<RankedTensorType>(op.getLogits().getType()).getDimSize(1);
    if (ShapedType::isDynamic(width) || width == 0 || width > kWidestSplitRow)
      return rewriter.notifyMatchFailure(op, "needs a row that can be split");
    KernelBuilder k(rewriter, op.getLoc());
    RowParts split = chooseRowParts(width);
    Value count = op.getCount(), rows = k.dim(op.getLogits(), 0);
    // Nothing is started for nothing.
    Value some = k.mul(rows, k.min(count, k.index(1)));
    Values lists = listParts(k, op, split, rows, some);
    LowerTopK::replace(rewriter, op, merge(k, op, split, rows, some, lists));
    return success();
  }

private:
  static Value acrossLanes(KernelBuilder &k, gpu::AllReduceOperation kind,
                           Value x) {
    return gpu::SubgroupReduceOp::create(k.b, k.loc, x, kind, /*uniform=*/true);
  }

  /// A pairwise tree: no step waits for all values before it.
  template <typename Fold>
  static Value ofLane(KernelBuilder &k, Values values) {
    for (size_t left = values.size(); left > 1; left = (left + 1) / 2)
      for (size_t i = 0; i < left / 2; ++i)
        values[i] =
            Fold::create(k.b, k.loc, values[i], values[(left + 1) / 2 + i]);
    return values[0];
  }

  /// The largest of what the lanes have and its column; of equal ones the
  /// first.
  static Values bestOfWarp(KernelBuilder &k, ValueRange ranks,
                           ValueRange columns) {
    Value best = acrossLanes(k, gpu::AllReduceOperation::MAXSI,
                             ofLane<arith::MaxSIOp>(k, Values(ranks)));
    Values places;
    for (auto [rank, column] : llvm::zip_equal(ranks, columns))
      places.push_back(select(k, compare(k, CmpIPredicate::eq, rank, best),
                              column, number(k, kNowhere)));
    return {best, acrossLanes(k, gpu::AllReduceOperation::MINSI,
                              ofLane<arith::MinSIOp>(k, std::move(places)))};
  }

  /// A warp's first lane writes its list.
  static Value lengthOf(KernelBuilder &k, Value lane, Value count) {
    Value isFirst = compare(k, CmpIPredicate::eq, lane, k.index(0));
    return select(k, isFirst, count, k.index(0));
  }

  /// Ranks and columns of each part's largest numbers: [rows * parts, count].
  static Values listParts(KernelBuilder &k, TopKOp op, const RowParts &split,
                          Value rows, Value some) {
    Value logits = op.getLogits(), count = op.getCount();
    int64_t width = cast<RankedTensorType>(logits.getType()).getDimSize(1);
    Value numLists = k.mul(rows, split.parts);
    Type i32 = k.b.getI32Type();
    Values dests = {emptyLists(k, numLists, count, i32),
                    emptyLists(k, numLists, count, i32)};
    return forallLists(
        k, {some, k.b.getIndexAttr(split.parts), k.b.getIndexAttr(kWarp)},
        dests,
        [&](KernelBuilder &k, ValueRange ivs) {
          return ListPlace{k.add(k.mul(ivs[0], split.parts), ivs[1]),
                           lengthOf(k, ivs[2], count)};
        },
        [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
          Value first = k.add(k.mul(ivs[1], split.elements()), ivs[2]);
          Values columns, state;
          for (int64_t i = 0; i < split.each; ++i) {
            Value column = k.add(first, k.index(i * kWarp));
            columns.push_back(toI32(k, column));
            if (width % split.elements() == 0) {
              state.push_back(rankAt(k, logits, ivs[0], column));
              continue;
            }
            Value there =
                compare(k, CmpIPredicate::slt, column, k.index(width));
            Value rank =
                rankAt(k, logits, ivs[0], k.min(column, k.index(width - 1)));
            state.push_back(select(k, there, rank, number(k, kNoRank)));
          }
          llvm::append_range(state, tiles);
          Value length = lengthOf(k, ivs[2], count);
          Values end = k.forLoop(
              k.index(0), count, 1, state,
              [&](KernelBuilder &k, Value place, ValueRange state) {
                ValueRange ranks = state.take_front(split.each);
                Values best = bestOfWarp(k, ranks, columns), next;
                for (auto [rank, column] : llvm::zip_equal(ranks, columns))
                  next.push_back(
                      select(k, compare(k, CmpIPredicate::eq, column, best[1]),
                             number(k, kNoRank), rank));
                for (auto [value, tile] :
                     llvm::zip_equal(best, state.drop_front(split.each)))
                  next.push_back(put(k, value, tile, place, length));
                return next;
              });
          return Values{end[split.each], end[split.each + 1]};
        });
  }

  /// Where a lane is in the lists that it has.
  struct Heads {
    Values ranks, columns, places;

    Heads() = default;
    explicit Heads(ValueRange state) {
      size_t n = state.size() / 3;
      ranks.assign(state.begin(), state.begin() + n);
      columns.assign(state.begin() + n, state.begin() + 2 * n);
      places.assign(state.begin() + 2 * n, state.end());
    }
    Values state() const {
      Values all(ranks);
      llvm::append_range(all, columns);
      llvm::append_range(all, places);
      return all;
    }
  };

  /// Number `place` of list `list`, or none behind its end.
  static Values readList(KernelBuilder &k, ValueRange lists, Value list,
                         Value place, Value count, Value there = {}) {
    Value inside = compare(k, CmpIPredicate::slt, place, count);
    if (there)
      inside = both(k, inside, there);
    auto choice = scf::IfOp::create(
        k.b, k.loc, inside,
        [&](OpBuilder &b, Location loc) {
          Values read;
          for (Value from : lists)
            read.push_back(tensor::ExtractOp::create(b, loc, from,
                                                     ValueRange{list, place}));
          scf::YieldOp::create(b, loc, read);
        },
        [&](OpBuilder &b, Location loc) {
          KernelBuilder k(b, loc);
          scf::YieldOp::create(b, loc,
                               Values{number(k, kNoRank), number(k, kNowhere)});
        });
    return Values(choice.getResults());
  }

  static Values merge(KernelBuilder &k, TopKOp op, const RowParts &split,
                      Value rows, Value some, ValueRange lists) {
    Value logits = op.getLogits(), count = op.getCount();
    Values dests = {emptyLists(k, rows, count, k.b.getI64Type()),
                    emptyLists(k, rows, count, k.b.getF32Type())};
    return forallLists(
        k, {some, k.b.getIndexAttr(kWarp)}, dests,
        [&](KernelBuilder &k, ValueRange ivs) {
          return ListPlace{ivs[0], lengthOf(k, ivs[1], count)};
        },
        [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
          Value firstList = k.mul(ivs[0], split.parts), zero = k.index(0);
          Values numbers; // of the lane's lists
          Heads heads;
          for (int64_t i = 0; i < split.listsOfLane(); ++i) {
            Value part = k.add(ivs[1], k.index(i * kWarp)), there;
            if ((i + 1) * kWarp > split.parts)
              there =
                  compare(k, CmpIPredicate::slt, part, k.index(split.parts));
            numbers.push_back(k.add(firstList, part));
            Values head =
                readList(k, lists, numbers.back(), zero, count, there);
            heads.ranks.push_back(head[0]);
            heads.columns.push_back(head[1]);
            heads.places.push_back(zero);
          }
          Values state = heads.state();
          size_t numHeads = state.size();
          llvm::append_range(state, tiles);
          Value length = lengthOf(k, ivs[1], count);
          Values end = k.forLoop(
              zero, count, 1, state,
              [&](KernelBuilder &k, Value place, ValueRange state) {
                Heads heads(state.take_front(numHeads));
                Values best = bestOfWarp(k, heads.ranks, heads.columns);
                Values next =
                    advance(k, lists, numbers, heads, best, count).state();
                llvm::append_range(next, putResult(k, logits, ivs[0], best[1],
                                                   state.drop_front(numHeads),
                                                   place, length));
                return next;
              });
          return Values{end[numHeads], end[numHeads + 1]};
        });
  }

  /// The lane whose head was the best goes on in that list.
  static Heads advance(KernelBuilder &k, ValueRange lists, ValueRange numbers,
                       const Heads &heads, ValueRange best, Value count) {
    Values isBest;
    Value list = k.index(0), place = count;
    for (auto [number, at, column, old] :
         llvm::zip_equal(numbers, heads.ranks, heads.columns, heads.places)) {
      isBest.push_back(both(k, compare(k, CmpIPredicate::eq, at, best[0]),
                            compare(k, CmpIPredicate::eq, column, best[1])));
      list = select(k, isBest.back(), number, list);
      place = select(k, isBest.back(), k.add(old, k.index(1)), place);
    }
    // Other lanes read nothing.
    Values read = readList(k, lists, list, place, count);
    Heads next;
    for (auto [mine, rank, column, old] :
         llvm::zip_equal(isBest, heads.ranks, heads.columns, heads.places)) {
      next.ranks.push_back(select(k, mine, read[0], rank));
      next.columns.push_back(select(k, mine, read[1], column));
      next.places.push_back(select(k, mine, place, old));
    }
    return next;
  }
};

} // namespace

void populateTopKPatterns(RewritePatternSet &patterns,
                          const VectorLowering &lowering) {
  patterns.add<LowerTopK>(patterns.getContext());
  if (lowering.cooperative)
    patterns.add<LowerTopKByWarps>(patterns.getContext(), /*benefit=*/2);
}

} // namespace attune
