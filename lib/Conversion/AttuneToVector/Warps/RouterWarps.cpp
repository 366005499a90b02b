//===- RouterWarps.cpp - Choosing experts by the lanes of a warp ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// On a GPU a warp chooses for a token: lane l has the scores of experts l,
// l + 32 and so on in registers, and every maximum and sum goes across the
// warp. The lane of a rank keeps who came out there, so both the choice and its
// weights are stored at the end, by as many lanes as experts are active.

#include "../Patterns.h"

#include "attune/Conversion/Lanes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

Value element(KernelBuilder &k, Value vector, int64_t i) {
  return vector::ExtractOp::create(k.b, k.loc, vector, i);
}
Value toVector(KernelBuilder &k, ArrayRef<Value> elements) {
  return vector::FromElementsOp::create(
      k.b, k.loc, k.vectorType(int64_t(elements.size())), elements);
}
Value maximum(KernelBuilder &k, Value a, Value b) {
  return arith::MaximumFOp::create(k.b, k.loc, a, b);
}
Value minimum(KernelBuilder &k, Value a, Value b) {
  return arith::MinimumFOp::create(k.b, k.loc, a, b);
}
Value fold(KernelBuilder &k, vector::CombiningKind kind, Value vector) {
  return vector::ReductionOp::create(k.b, k.loc, kind, vector);
}

/// The largest score of a warp and whose it is; of equal ones the first.
Values bestOfWarp(KernelBuilder &k, Value score, Value whose) {
  return acrossWarp(
      k, {score, whose},
      [](KernelBuilder &k, ValueRange mine, ValueRange others) {
        Value same = compare(k, arith::CmpFPredicate::OEQ, others[0], mine[0]);
        Value before =
            compare(k, arith::CmpIPredicate::ult, others[1], mine[1]);
        Value better =
            either(k, compare(k, arith::CmpFPredicate::OGT, others[0], mine[0]),
                   both(k, same, before));
        return Values{select(k, better, others[0], mine[0]),
                      select(k, better, others[1], mine[1])};
      });
}

struct LowerRouterByWarps final : OpRewritePattern<RouterOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(RouterOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getExperts().getType());
    int64_t active = type.getShape().back();
    if (type.getRank() < 2 || type.getRank() > 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    if (active > kWarp || int64_t(op.getGroups()) > kWarp)
      return rewriter.notifyMatchFailure(op, "needs a lane for each expert");
    KernelBuilder k(rewriter, op.getLoc());
    Value logits = asRows(k, op.getLogits());
    Value dests[] = {
        emptyRows(k, op.getLogits(), active, rewriter.getI64Type()),
        emptyRows(k, op.getLogits(), active, rewriter.getF32Type())};
    auto loop = scf::ForallOp::create(
        k.b, k.loc,
        {getAsOpFoldResult(k.dim(dests[0], 0)), k.b.getIndexAttr(kWarp)}, dests,
        std::nullopt);
    {
      OpBuilder::InsertionGuard guard(rewriter);
      rewriter.setInsertionPointToStart(loop.getBody());
      Value token = loop.getInductionVar(0), lane = loop.getInductionVar(1);
      Lane mine(k, op, logits, token, lane);
      auto [expert, share] = mine.choose(k);
      Value weight = mine.weigh(k, expert, share);
      expert =
          arith::ExtUIOp::create(k.b, k.loc, rewriter.getI64Type(), expert);
      // Lanes behind the last rank store nothing.
      Value rest = k.sub(k.index(active), lane);
      Value count = arith::MaxSIOp::create(k.b, k.loc, k.min(rest, k.index(1)),
                                           k.index(0));
      OpFoldResult one = k.b.getIndexAttr(1);
      SmallVector<OpFoldResult> at = {token, getAsOpFoldResult(
                                                 k.min(lane, k.index(active)))},
                                sizes = {one, getAsOpFoldResult(count)},
                                strides = {one, one};
      for (auto [number, dest] : llvm::enumerate(loop.getRegionIterArgs())) {
        Value value = number == 0 ? expert : weight;
        Value tile = tensor::ExtractSliceOp::create(k.b, k.loc, dest, at, sizes,
                                                    strides);
        tile = k.forLoop(
            k.index(0), count, 1, tile,
            [&](KernelBuilder &k, Value i, ValueRange c) {
              return Values{tensor::InsertOp::create(
                  k.b, k.loc, value, c[0], ValueRange{k.index(0), i})};
            })[0];
        OpBuilder::InsertionGuard guard(rewriter);
        rewriter.setInsertionPointToEnd(loop.getTerminator().getBody());
        tensor::ParallelInsertSliceOp::create(k.b, k.loc, tile, dest, at, sizes,
                                              strides);
      }
    }
    rewriter.replaceOp(op,
                       {fromRows(k, loop.getResult(0),
                                 op.getExperts().getType(), op.getLogits()),
                        fromRows(k, loop.getResult(1),
                                 op.getWeights().getType(), op.getLogits())});
    return success();
  }

private:
  /// The work of one lane for a token.
  class Lane {
  public:
    Lane(KernelBuilder &k, RouterOp op, Value logits, Value token, Value lane)
        : op(op), logits(logits), token(token), lane(lane),
          experts(cast<RankedTensorType>(logits.getType()).getDimSize(1)),
          active(cast<RankedTensorType>(op.getExperts().getType())
                     .getShape()
                     .back()),
          lane32(toI32(k, lane)) {
      for (int64_t first = 0; first < experts; first += kWarp) {
        Value whose = k.add(lane, k.index(first));
        numbers.push_back(toI32(k, whose));
        isThere.push_back(first + kWarp <= experts
                              ? Value()
                              : compare(k, arith::CmpIPredicate::slt, whose,
                                        k.index(experts)));
        places.push_back(isThere.back() ? k.min(whose, k.index(experts - 1))
                                        : whose);
      }
    }

    /// The number of the expert of this lane's rank, and with sparse_mixer its
    /// share.
    std::pair<Value, Value> choose(KernelBuilder &k) {
      SmallVector<Value> own;
      for (Value place : places)
        own.push_back(k.loadScalar(logits, {token, place}));
      Value scores = onlyThere(k, toVector(k, own));
      bool mixes = op.getScoring() == RouterScoring::SparseMixer;
      if (op.getScoring() != RouterScoring::TopSoftmax && !mixes) {
        score = scoring(k, scores);
        scores = score(k, scores);
      }
      if (op.getBias()) {
        SmallVector<Value> biases;
        for (Value place : places)
          biases.push_back(k.loadScalar(op.getBias(), {place}));
        scores = arith::AddFOp::create(k.b, k.loc, scores, toVector(k, biases));
      }
      scores = onlyThere(k, scores);
      if (op.getActiveGroups() < op.getGroups())
        scores = dropGroups(k, scores);
      SmallVector<Value> carried = {scores, number(k, 0)};
      if (mixes)
        carried.push_back(k.f32(0.0));
      Values chosen = k.forLoop(
          k.index(0), k.index(active), 1, carried,
          [&](KernelBuilder &k, Value rank, ValueRange c) {
            Value best = k.f32(kLowest), whose = number(k, 0);
            for (auto [i, mine] : llvm::enumerate(numbers)) {
              Value x = element(k, c[0], int64_t(i));
              Value better = compare(k, arith::CmpFPredicate::OGT, x, best);
              best = select(k, better, x, best);
              whose = select(k, better, mine, whose);
            }
            Values found = bestOfWarp(k, best, whose);
            whose = found[1];
            SmallVector<Value> rest;
            for (auto [i, mine] : llvm::enumerate(numbers))
              rest.push_back(
                  select(k, compare(k, arith::CmpIPredicate::eq, mine, whose),
                         k.f32(kLowest), element(k, c[0], int64_t(i))));
            Value isMine = compare(k, arith::CmpIPredicate::eq, rank, lane);
            Values next = {toVector(k, rest), select(k, isMine, whose, c[1])};
            if (mixes)
              next.push_back(
                  select(k, isMine, shareOfNear(k, c[0], found[0]), c[2]));
            return next;
          });
      return {chosen[1], mixes ? chosen[2] : Value()};
    }

    /// The weight of that expert, of which sparse_mixer knows the share.
    Value weigh(KernelBuilder &k, Value expert, Value share) {
      if (share)
        return arith::MulFOp::create(k.b, k.loc, share,
                                     k.f32(op.getScale().convertToDouble()));
      Value isRank =
          compare(k, arith::CmpIPredicate::slt, lane, k.index(active));
      Value place =
          arith::IndexCastUIOp::create(k.b, k.loc, k.b.getIndexType(), expert);
      Value logit =
          toVector(k, select(k, isRank, k.loadScalar(logits, {token, place}),
                             k.f32(kLowest)));
      // With top_softmax the sum is over the ranks.
      if (!score)
        score = scoring(k, logit);
      Value weight =
          select(k, isRank, element(k, score(k, logit), 0), k.f32(0.0));
      if (op.getRenormalise()) {
        Value total =
            arith::AddFOp::create(k.b, k.loc, sumOfWarp(k, weight),
                                  k.f32(op.getEps().convertToDouble()));
        weight = arith::DivFOp::create(k.b, k.loc, weight, total);
      }
      if (!op.getScale().isExactlyValue(1.0))
        weight = arith::MulFOp::create(k.b, k.loc, weight,
                                       k.f32(op.getScale().convertToDouble()));
      return weight;
    }

  private:
    using Score = std::function<Value(KernelBuilder &, Value)>;

    /// Minus infinity for missing experts.
    Value onlyThere(KernelBuilder &k, Value scores) {
      if (!isThere.back())
        return scores;
      SmallVector<Value> elements;
      for (auto [i, there] : llvm::enumerate(isThere)) {
        Value x = element(k, scores, int64_t(i));
        elements.push_back(there ? select(k, there, x, k.f32(kLowest)) : x);
      }
      return toVector(k, elements);
    }

    /// Returns the function from a vector of logits to scores, where the lanes'
    /// `own` are those that a softmax runs over.
    Score scoring(KernelBuilder &k, Value own) {
      if (op.getScoring() == RouterScoring::Sigmoid)
        return [](KernelBuilder &k, Value x) {
          return emitActivation(k, Activation::Sigmoid, x);
        };
      Value top =
          acrossWarp(k, fold(k, vector::CombiningKind::MAXIMUMF, own),
                     [](KernelBuilder &k, ValueRange mine, ValueRange others) {
                       return Values{maximum(k, mine[0], others[0])};
                     })[0];
      auto lanesOf = [](Value x) {
        return cast<VectorType>(x.getType()).getDimSize(0);
      };
      auto exponential = [=](KernelBuilder &k, Value x) -> Value {
        Value shifted =
            arith::SubFOp::create(k.b, k.loc, x, k.splat(top, lanesOf(x)));
        return math::ExpOp::create(k.b, k.loc, shifted);
      };
      Value total = sumOfWarp(
          k, fold(k, vector::CombiningKind::ADD, exponential(k, own)));
      return [=](KernelBuilder &k, Value x) -> Value {
        return arith::DivFOp::create(k.b, k.loc, exponential(k, x),
                                     k.splat(total, lanesOf(x)));
      };
    }

    /// The share of the score `best` of a softmax over those near it.
    Value shareOfNear(KernelBuilder &k, Value scores, Value best) {
      int64_t lanes = cast<VectorType>(scores.getType()).getDimSize(0);
      Value all = k.splat(best, lanes);
      Value below = arith::SubFOp::create(k.b, k.loc, all, scores);
      Value size = maximum(k, math::AbsFOp::create(k.b, k.loc, scores), all);
      Value reach = arith::MulFOp::create(
          k.b, k.loc, size, k.splat(2 * op.getEps().convertToDouble(), lanes));
      Value isNear = arith::CmpFOp::create(
          k.b, k.loc, arith::CmpFPredicate::OLE, below, reach);
      Value share = math::ExpOp::create(
          k.b, k.loc, arith::SubFOp::create(k.b, k.loc, scores, all));
      share = arith::SelectOp::create(k.b, k.loc, isNear, share,
                                      k.splat(0.0, lanes));
      Value total = sumOfWarp(k, fold(k, vector::CombiningKind::ADD, share));
      return arith::DivFOp::create(k.b, k.loc, k.f32(1.0), total);
    }

    /// Zero for the experts of all but the best groups. The lane of a group
    /// keeps how good that is.
    Value dropGroups(KernelBuilder &k, Value scores) {
      int64_t size = experts / int64_t(op.getGroups());
      SmallVector<Value> groups;
      for (Value mine : numbers)
        groups.push_back(
            arith::DivUIOp::create(k.b, k.loc, mine, number(k, size)));
      Value lowest = k.f32(kLowest);
      Value judged = k.forLoop(
          k.index(0), k.index(op.getGroups()), 1, lowest,
          [&](KernelBuilder &k, Value group, ValueRange c) {
            Value here = toI32(k, group);
            Values top = {lowest, lowest};
            auto merge = [](KernelBuilder &k, ValueRange a, ValueRange b) {
              return Values{
                  maximum(k, a[0], b[0]),
                  maximum(k, minimum(k, a[0], b[0]), maximum(k, a[1], b[1]))};
            };
            for (auto [i, of] : llvm::enumerate(groups)) {
              Value x =
                  select(k, compare(k, arith::CmpIPredicate::eq, of, here),
                         element(k, scores, int64_t(i)), lowest);
              top = merge(k, top, {x, lowest});
            }
            top = acrossWarp(k, top, merge);
            Value good = top[0];
            if (op.getGroupScore() == GroupScore::TopTwo)
              good = arith::AddFOp::create(k.b, k.loc, top[0], top[1]);
            return Values{
                select(k, compare(k, arith::CmpIPredicate::eq, group, lane),
                       good, c[0])};
          })[0];
      // A bit for each group that stays.
      Value stay = k.forLoop(
          k.index(0), k.index(op.getActiveGroups()), 1, {judged, number(k, 0)},
          [&](KernelBuilder &k, Value, ValueRange c) {
            Value whose = bestOfWarp(k, c[0], lane32)[1];
            Value bit = arith::ShLIOp::create(k.b, k.loc, number(k, 1), whose);
            Value mine = compare(k, arith::CmpIPredicate::eq, whose, lane32);
            return Values{select(k, mine, lowest, c[0]),
                          arith::OrIOp::create(k.b, k.loc, c[1], bit)};
          })[1];
      SmallVector<Value> kept;
      for (auto [i, of] : llvm::enumerate(groups)) {
        Value bit =
            arith::AndIOp::create(k.b, k.loc, number(k, 1),
                                  arith::ShRUIOp::create(k.b, k.loc, stay, of));
        Value keep = compare(k, arith::CmpIPredicate::ne, bit, number(k, 0));
        kept.push_back(select(k, keep, element(k, scores, int64_t(i)), lowest));
      }
      return onlyThere(k, toVector(k, kept));
    }

    RouterOp op;
    Value logits, token, lane;
    int64_t experts, active;
    Value lane32;
    SmallVector<Value> numbers, places; ///< of its experts; which there are
    SmallVector<Value> isThere;         ///< null: it is, whatever the lane
    Score score;                        ///< null before that is known
  };
};

} // namespace

void populateRouterWarpPatterns(RewritePatternSet &patterns) {
  patterns.add<LowerRouterByWarps>(patterns.getContext(), /*benefit=*/2);
}

} // namespace attune
