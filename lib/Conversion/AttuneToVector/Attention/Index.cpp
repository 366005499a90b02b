//===- Index.cpp - Keys that an index chooses -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Scores are a product of all heads' queries and a panel of keys, which is
// transposed once for all of them; the sum over heads stays in a register.
//
// One thread chooses for a query. Nothing is sorted: scores become integers of
// the same order, their ranks. The last chosen one is found bit by bit, in 32
// counts of how many are at least so large, and then the places of those that
// are not smaller are written down, one key after the other.

#include "Index.h"

#include "../Rows/CachedRows.h"
#include "StepKernel.h"

#include "Attune/AttuneIndexOps.h"
#include "attune/Conversion/Lanes.h"

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;
using arith::CmpIPredicate;

/// Panels of keys whose ranks one iteration computes.
constexpr int64_t kRankPanels = 64;

Value castTo(KernelBuilder &k, Type type, Value tensor) {
  if (tensor.getType() == type)
    return tensor;
  return tensor::CastOp::create(k.b, k.loc, type, tensor);
}

struct LowerIndexScores final : OpRewritePattern<IndexScoresOp> {
  LowerIndexScores(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes), rows(lowering.rows) {}

  LogicalResult matchAndRewrite(IndexScoresOp op,
                                PatternRewriter &rewriter) const override {
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    if (query.isDynamicDim(1) || query.isDynamicDim(3))
      return rewriter.notifyMatchFailure(op, "needs static heads and width");
    if (lanes % kSquare != 0)
      return rewriter.notifyMatchFailure(op, "needs whole squares of lanes");
    KernelBuilder k(rewriter, op.getLoc());
    Value batch = k.dim(op.getQuery(), 0), queries = k.dim(op.getQuery(), 2);
    Value keys = k.dim(op.getKey(), 2);
    Value dest = tensor::EmptyOp::create(
        rewriter, op.getLoc(), getAsOpFoldResult(Values{batch, queries, keys}),
        rewriter.getF32Type());
    OpFoldResult counts[] = {getAsOpFoldResult(batch),
                             getAsOpFoldResult(k.ceilDiv(keys, lanes))};
    Value scores = k.forallTiles(
        counts, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          Value first = k.mul(ivs[1], lanes);
          Value width = k.min(k.sub(keys, first), k.index(lanes));
          return KernelBuilder::Tile{{ivs[0], k.index(0), first},
                                     {k.b.getIndexAttr(1),
                                      getAsOpFoldResult(queries),
                                      getAsOpFoldResult(width)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value first = k.mul(ivs[1], lanes), zero = k.index(0);
          Value stored = k.dim(tile, 2), counts = stored;
          // A panel that no query sees is not computed.
          Value seen = k.index(1);
          if (Value reach = op.getReach()) {
            counts = k.min(stored, k.sub(reach, first));
            counts = arith::MaxSIOp::create(k.b, k.loc, counts, zero);
            seen = k.min(counts, k.index(1));
          }
          Value panel = k.scratch(
              {widthOfRows(cast<RankedTensorType>(op.getKey().getType())),
               lanes},
              k.b.getF32Type(), /*buffer=*/false);
          panel = k.forLoop(zero, seen, 1, panel,
                            [&](KernelBuilder &k, Value, ValueRange panel) {
                              return Values{packKeys(k, op.getKey(), ivs[0],
                                                     first, panel[0])};
                            })[0];
          return k.forLoop(
              zero, queries, 1, tile,
              [&](KernelBuilder &k, Value m, ValueRange tile) {
                Value sum = k.forLoop(zero, seen, 1, k.splat(0.0, lanes),
                                      [&](KernelBuilder &k, Value, ValueRange) {
                                        return Values{
                                            sumHeads(k, op, ivs[0], m, panel)};
                                      })[0];
                if (op.getReach()) {
                  Value some = vector::CreateMaskOp::create(
                      k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()),
                      counts);
                  sum = select(k, some, sum, k.splat(0.0, lanes));
                }
                return Values{k.store(sum, tile[0], {zero, m, zero}, stored)};
              })[0];
        });
    rewriter.replaceOp(op, castTo(k, op.getType(), scores));
    return success();
  }

private:
  /// Keys from `first` on as a panel [width, lanes]. Behind the last one it
  /// stands again: real memory, whose scores nobody stores.
  Value packKeys(KernelBuilder &k, Value key, Value batch, Value first,
                 Value panel) const {
    int64_t width = widthOfRows(cast<RankedTensorType>(key.getType()));
    Value last = k.sub(k.dim(key, 2), k.index(1));
    auto square = [&](KernelBuilder &k, int64_t lane, Value column,
                      int64_t columns, Value panel) {
      Values rows;
      Value valid = columns < kSquare ? k.index(columns) : Value();
      for (int64_t i = 0; i < kSquare; ++i) {
        Value n = k.min(k.add(first, k.index(lane + i)), last);
        rows.push_back(
            loadHeads(k, key, {batch, k.index(0), n, column}, kSquare, valid));
      }
      rows = transposeSquare(k, rows);
      for (int64_t i = 0; i < columns; ++i)
        panel =
            k.store(rows[i], panel, {k.add(column, k.index(i)), k.index(lane)});
      return panel;
    };
    int64_t whole = width / kSquare * kSquare;
    for (int64_t lane = 0; lane < lanes; lane += kSquare) {
      panel = k.forLoop(k.index(0), k.index(whole), kSquare, panel,
                        [&](KernelBuilder &k, Value column, ValueRange c) {
                          return Values{square(k, lane, column, kSquare, c[0])};
                        })[0];
      if (whole < width)
        panel = square(k, lane, k.index(whole), width - whole, panel);
    }
    return panel;
  }

  /// The scores of a query for a panel of keys.
  Value sumHeads(KernelBuilder &k, IndexScoresOp op, Value batch, Value m,
                 Value panel) const {
    auto type = cast<RankedTensorType>(op.getQuery().getType());
    int64_t heads = type.getDimSize(1), width = type.getDimSize(3);
    Value scale = k.splat(op.getScale().convertToDouble(), lanes);
    Value zero = k.splat(0.0, lanes);
    auto some = [&](KernelBuilder &k, Value first, int64_t count, Value sum) {
      Values products = emitMicrokernel(
          k, count, k.index(width), Values(count, zero),
          [&](KernelBuilder &k, int64_t i, Value d) {
            Value head = k.add(first, k.index(i));
            return k.loadScalar(op.getQuery(), {batch, head, m, d});
          },
          [&](KernelBuilder &k, Value d) {
            return k.load(panel, {d, k.index(0)}, lanes);
          });
      for (auto [i, product] : llvm::enumerate(products)) {
        Value score = arith::MulFOp::create(k.b, k.loc, product, scale);
        score = arith::MaximumFOp::create(k.b, k.loc, score, zero);
        Value share =
            k.loadScalar(op.getShares(), {batch, m, k.add(first, k.index(i))});
        sum = k.fma(k.splat(share, lanes), score, sum);
      }
      return sum;
    };
    int64_t whole = heads / rows * rows;
    Value sum = zero;
    if (whole > 0)
      sum = k.forLoop(k.index(0), k.index(whole), rows, zero,
                      [&](KernelBuilder &k, Value first, ValueRange sum) {
                        return Values{some(k, first, rows, sum[0])};
                      })[0];
    if (whole < heads)
      sum = some(k, k.index(whole), heads - whole, sum);
    return sum;
  }

  int64_t lanes, rows;
};

struct LowerChooseKeys final : OpRewritePattern<ChooseKeysOp> {
  LowerChooseKeys(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(ChooseKeysOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value batch = k.dim(op.getScores(), 0), queries = k.dim(op.getScores(), 1);
    Value ranks = ranksOf(k, op, batch, queries);
    Type i64 = rewriter.getI64Type();
    OpFoldResult rows[] = {getAsOpFoldResult(batch), getAsOpFoldResult(queries),
                           rewriter.getIndexAttr(op.getTop())};
    Values dests = {tensor::EmptyOp::create(rewriter, op.getLoc(), rows, i64),
                    tensor::EmptyOp::create(rewriter, op.getLoc(),
                                            ArrayRef(rows).take_front(2), i64)};
    OpFoldResult one = rewriter.getIndexAttr(1);
    Values results = k.forallTiles(
        ArrayRef(rows).take_front(2), dests,
        [&](KernelBuilder &k, ValueRange ivs) {
          return SmallVector<KernelBuilder::Tile>{
              {{ivs[0], ivs[1], k.index(0)}, {one, one, rows[2]}},
              {{ivs[0], ivs[1]}, {one, one}}};
        },
        [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
          return choose(k, op, ranks, ivs, tiles);
        });
    rewriter.replaceOp(op,
                       Values{castTo(k, op.getPlaces().getType(), results[0]),
                              castTo(k, op.getCounts().getType(), results[1])});
    return success();
  }

private:
  /// The end of the keys that a query sees, but for a mask.
  static Value endOf(KernelBuilder &k, ChooseKeysOp op, Value batch, Value m) {
    Value keys = k.dim(op.getScores(), 2), end = keys;
    if (op.getPast())
      end = k.min(end, k.add(op.getPast(), k.add(m, k.index(1))));
    if (op.getLengths()) {
      Value length =
          arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(),
                                     k.loadScalar(op.getLengths(), {batch}));
      end = k.min(end, length);
    }
    return end;
  }

  /// Ranks of all scores in whole panels, [batch, queries, panels * lanes]: of
  /// keys that are hidden none.
  Value ranksOf(KernelBuilder &k, ChooseKeysOp op, Value batch,
                Value queries) const {
    Value keys = k.dim(op.getScores(), 2);
    Value width = k.mul(k.ceilDiv(keys, lanes), lanes);
    Value dest = tensor::EmptyOp::create(
        k.b, k.loc, getAsOpFoldResult(Values{batch, queries, width}),
        k.b.getI32Type());
    const int64_t each = kRankPanels * lanes;
    OpFoldResult one = k.b.getIndexAttr(1);
    OpFoldResult counts[] = {getAsOpFoldResult(batch),
                             getAsOpFoldResult(queries),
                             getAsOpFoldResult(k.ceilDiv(keys, each))};
    return k.forallTiles(
        counts, dest,
        [&](KernelBuilder &k, ValueRange ivs) {
          Value first = k.mul(ivs[2], each);
          Value size = k.min(k.sub(width, first), k.index(each));
          return KernelBuilder::Tile{{ivs[0], ivs[1], first},
                                     {one, one, getAsOpFoldResult(size)}};
        },
        [&](KernelBuilder &k, ValueRange ivs, Value tile) {
          Value first = k.mul(ivs[2], each);
          Value end = endOf(k, op, ivs[0], ivs[1]);
          Value zero = k.index(0);
          tile = k.forLoop(
              zero, k.dim(tile, 2), lanes, tile,
              [&](KernelBuilder &k, Value at, ValueRange tile) {
                Value key = k.add(first, at);
                Value left = k.min(k.sub(end, key), k.index(lanes));
                left = arith::MaxSIOp::create(k.b, k.loc, left, zero);
                Value x =
                    k.load(op.getScores(), {ivs[0], ivs[1], key}, lanes, left);
                Value rank = rankOf(k, x);
                Value seen = vector::CreateMaskOp::create(
                    k.b, k.loc, VectorType::get({lanes}, k.b.getI1Type()),
                    left);
                rank = select(k, seen, rank, number(k, kNoRank, x.getType()));
                return Values{storeRanks(k, rank, tile[0], at)};
              })[0];
          if (!op.getMask())
            return tile;
          // One element at a time: i1 vectors in memory are bits, tensors
          // bytes.
          auto mask = cast<RankedTensorType>(op.getMask().getType());
          Value size = k.min(k.sub(keys, first), k.index(each));
          return k.forLoop(
              zero, size, 1, tile,
              [&](KernelBuilder &k, Value at, ValueRange tile) {
                Value from[] = {mask.getDimSize(0) == 1 ? zero : ivs[0], zero,
                                mask.getDimSize(2) == 1 ? zero : ivs[1],
                                k.add(first, at)};
                Value seen = k.loadScalar(op.getMask(), from);
                Value own = k.loadScalar(tile[0], {zero, zero, at});
                own = select(k, seen, own, number(k, kNoRank));
                return Values{k.storeScalar(own, tile[0], {zero, zero, at})};
              })[0];
        });
  }

  static Value storeRanks(KernelBuilder &k, Value ranks, Value tile, Value at) {
    Value zero = k.index(0);
    return vector::TransferWriteOp::create(k.b, k.loc, ranks, tile,
                                           ValueRange{zero, zero, at},
                                           ArrayRef<bool>{true})
        .getResult();
  }

  Values choose(KernelBuilder &k, ChooseKeysOp op, Value ranks, ValueRange ivs,
                ValueRange tiles) const {
    Value zero = k.index(0), top = k.index(op.getTop());
    Value end = endOf(k, op, ivs[0], ivs[1]);
    Value keys = k.dim(op.getScores(), 2);
    end = arith::MaxSIOp::create(k.b, k.loc, k.min(end, keys), zero);
    Value last = lastChosen(k, op, ranks, ivs, end);
    Value above =
        countFrom(k, ranks, ivs, end,
                  arith::AddIOp::create(k.b, k.loc, last, number(k, 1)));
    // As many of those that are as large as the last one as there is room for.
    Value room =
        arith::SubIOp::create(k.b, k.loc, number(k, op.getTop()), above);
    // The number of keys that are chosen, how many are as large as the last
    // one, the last key that was chosen, and the places. A key that is not
    // chosen is written to the next place, and overwritten there.
    Values state = k.forLoop(
        zero, end, 1, Values{zero, number(k, 0), zero, tiles[0]},
        [&](KernelBuilder &k, Value key, ValueRange so) {
          Value own = k.loadScalar(ranks, {ivs[0], ivs[1], key});
          Value larger = compare(k, CmpIPredicate::sgt, own, last);
          Value equal = compare(k, CmpIPredicate::eq, own, last);
          Value fits = compare(k, CmpIPredicate::slt, so[1], room);
          equal = both(k, equal, fits);
          Value chosen = either(k, larger, equal);
          Value at = k.min(so[0], k.sub(top, k.index(1)));
          Value places = put(k, key, so[3], at);
          Value more = arith::IndexCastUIOp::create(k.b, k.loc,
                                                    k.b.getIndexType(), chosen);
          Value alike =
              arith::ExtUIOp::create(k.b, k.loc, k.b.getI32Type(), equal);
          return Values{arith::AddIOp::create(k.b, k.loc, so[0], more),
                        arith::AddIOp::create(k.b, k.loc, so[1], alike),
                        select(k, chosen, key, so[2]), places};
        });
    Value count = state[0], places = state[3];
    // Behind the last place there was none to be overwritten.
    Value full = compare(k, CmpIPredicate::eq, count, top);
    places = k.forLoop(
        zero, select(k, full, k.index(1), zero), 1, places,
        [&](KernelBuilder &k, Value, ValueRange places) {
          return Values{put(k, state[2], places[0], k.sub(top, k.index(1)))};
        })[0];
    places = k.forLoop(count, top, 1, places,
                       [&](KernelBuilder &k, Value at, ValueRange places) {
                         return Values{put(k, zero, places[0], at)};
                       })[0];
    Value many =
        arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), count);
    return {places, k.storeScalar(many, tiles[1], {zero, zero})};
  }

  static Value put(KernelBuilder &k, Value key, Value places, Value at) {
    Value zero = k.index(0);
    key = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), key);
    return k.storeScalar(key, places, {zero, zero, at});
  }

  /// How many ranks before `end` are at least `least`, which is above none.
  Value countFrom(KernelBuilder &k, Value ranks, ValueRange ivs, Value end,
                  Value least) const {
    auto type = VectorType::get({lanes}, k.b.getI32Type());
    Value start = number(k, 0, type);
    least = vector::BroadcastOp::create(k.b, k.loc, type, least);
    Value sums =
        k.forLoop(k.index(0), end, lanes, start,
                  [&](KernelBuilder &k, Value at, ValueRange so) {
                    Value own = vector::TransferReadOp::create(
                        k.b, k.loc, type, ranks, ValueRange{ivs[0], ivs[1], at},
                        number(k, kNoRank), ArrayRef<bool>{true});
                    Value more = compare(k, CmpIPredicate::sge, own, least);
                    return Values{arith::AddIOp::create(
                        k.b, k.loc, so[0],
                        arith::ExtUIOp::create(k.b, k.loc, type, more))};
                  })[0];
    return vector::ReductionOp::create(k.b, k.loc, vector::CombiningKind::ADD,
                                       sums);
  }

  /// The largest rank that at least `top` are not below; if there are fewer,
  /// the smallest that a key has which is not hidden. Bit after bit, from the
  /// smallest of all on: one more is set if enough keys have it, too. Nothing
  /// is counted where all keys are chosen.
  Value lastChosen(KernelBuilder &k, ChooseKeysOp op, Value ranks,
                   ValueRange ivs, Value end) const {
    Value many = compare(k, CmpIPredicate::sgt, end, k.index(op.getTop()));
    Value rounds = select(k, many, k.index(32), k.index(0));
    Value found =
        k.forLoop(k.index(0), rounds, 1, number(k, kNoRank),
                  [&](KernelBuilder &k, Value round, ValueRange so) {
                    Value bit = arith::ShRUIOp::create(
                        k.b, k.loc, number(k, kNoRank), toI32(k, round));
                    Value least = arith::AddIOp::create(k.b, k.loc, so[0], bit);
                    Value enough = compare(k, CmpIPredicate::sge,
                                           countFrom(k, ranks, ivs, end, least),
                                           number(k, op.getTop()));
                    return Values{select(k, enough, least, so[0])};
                  })[0];
    return arith::MaxSIOp::create(k.b, k.loc, found, number(k, kNoRank + 1));
  }

  int64_t lanes;
};
} // namespace

void populateIndexPatterns(RewritePatternSet &patterns,
                           const VectorLowering &lowering) {
  patterns.add<LowerIndexScores, LowerChooseKeys>(patterns.getContext(),
                                                  lowering);
}

} // namespace attune
