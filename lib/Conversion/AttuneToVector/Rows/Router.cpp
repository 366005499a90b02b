//===- Router.cpp - Choosing the experts of each token ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Two loops over tokens: which experts, then how much each counts. The choice
// is scalar, A walks over E numbers, which is nothing beside the experts' work.

#include "../Patterns.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <limits>

using namespace mlir;

namespace attune {
namespace {

using Values = KernelBuilder::Values;
constexpr double kLowest = -std::numeric_limits<double>::infinity();

struct LowerRouter final : OpRewritePattern<RouterOp> {
  LowerRouter(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

  LogicalResult matchAndRewrite(RouterOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getExperts().getType());
    if (type.getRank() < 2 || type.getRank() > 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    KernelBuilder k(rewriter, op.getLoc());
    int64_t active = type.getShape().back();
    Value logits = asRows(k, op.getLogits());
    Value experts =
        forallRows(k, emptyRows(k, op.getLogits(), active, k.b.getI64Type()),
                   [&](KernelBuilder &k, Value token, Value tile) {
                     Value scores = choiceScores(k, op, logits, token);
                     if (op.getActiveGroups() < op.getGroups())
                       scores = dropGroups(k, op, scores);
                     return best(k, scores, active, tile, storeNumber);
                   });
    Value weights =
        forallRows(k, emptyRows(k, op.getLogits(), active, k.b.getF32Type()),
                   [&](KernelBuilder &k, Value token, Value tile) {
                     return shares(k, op, logits, experts, token, active, tile);
                   });
    rewriter.replaceOp(
        op, {fromRows(k, experts, op.getExperts().getType(), op.getLogits()),
             fromRows(k, weights, op.getWeights().getType(), op.getLogits())});
    return success();
  }

private:
  static int64_t widthOf(Value rows) {
    return cast<RankedTensorType>(rows.getType()).getShape().back();
  }

  Value scratch(KernelBuilder &k, int64_t size) const {
    return tensor::EmptyOp::create(k.b, k.loc, ArrayRef<int64_t>{size},
                                   k.b.getF32Type());
  }

  /// Loads of one row: `at` in front of the column.
  struct Row {
    Value tensor;
    SmallVector<Value> at;
    Value load(KernelBuilder &k, Value column, int64_t lanes, Value valid,
               double pad) const {
      SmallVector<Value> indices(at);
      indices.push_back(column);
      return k.load(tensor, indices, lanes, valid, pad);
    }
  };

  /// Returns the function from a vector of logits to scores, given the row that
  /// a softmax runs over. Lanes of minus infinity give zero.
  std::function<Value(KernelBuilder &, Value)>
  scoring(KernelBuilder &k, RouterScoring kind, const Row &row) const {
    if (kind == RouterScoring::Sigmoid)
      return [](KernelBuilder &k, Value x) {
        return emitActivation(k, Activation::Sigmoid, x);
      };
    int64_t width = widthOf(row.tensor);
    Value largest = forColumns(
        k, width, lanes, k.splat(kLowest, lanes),
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = row.load(k, column, lanes, valid, kLowest);
          return Values{arith::MaximumFOp::create(k.b, k.loc, c[0], x)};
        })[0];
    Value top =
        k.splat(vector::ReductionOp::create(
                    k.b, k.loc, vector::CombiningKind::MAXIMUMF, largest)
                    .getResult(),
                lanes);
    auto exponential = [top](KernelBuilder &k, Value x) -> Value {
      Value shifted = arith::SubFOp::create(k.b, k.loc, x, top);
      return math::ExpOp::create(k.b, k.loc, shifted);
    };
    Value sums = forColumns(
        k, width, lanes, k.splat(0.0, lanes),
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = row.load(k, column, lanes, valid, kLowest);
          return Values{
              arith::AddFOp::create(k.b, k.loc, c[0], exponential(k, x))};
        })[0];
    Value total = k.splat(vector::ReductionOp::create(
                              k.b, k.loc, vector::CombiningKind::ADD, sums)
                              .getResult(),
                          lanes);
    return [exponential, total](KernelBuilder &k, Value x) -> Value {
      return arith::DivFOp::create(k.b, k.loc, exponential(k, x), total);
    };
  }

  /// The scores that choose a token's experts, as a scratch tensor.
  Value choiceScores(KernelBuilder &k, RouterOp op, Value logits,
                     Value token) const {
    int64_t width = widthOf(logits);
    Row row{logits, {token}};
    std::function<Value(KernelBuilder &, Value)> score;
    if (op.getScoring() != RouterScoring::TopSoftmax &&
        op.getScoring() != RouterScoring::SparseMixer)
      score = scoring(k, op.getScoring(), row);
    return forColumns(
        k, width, lanes, scratch(k, width),
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = row.load(k, column, lanes, valid, kLowest);
          if (score)
            x = score(k, x);
          if (op.getBias())
            x = arith::AddFOp::create(
                k.b, k.loc, x, k.load(op.getBias(), {column}, lanes, valid));
          return Values{k.store(x, c[0], {column}, valid)};
        })[0];
  }

  /// The larger of two numbered scores; of equal ones the first.
  static Values larger(KernelBuilder &k, ValueRange first, Value score,
                       Value number) {
    Value better = arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT,
                                         score, first[0]);
    return {arith::SelectOp::create(k.b, k.loc, better, score, first[0]),
            arith::SelectOp::create(k.b, k.loc, better, number, first[1])};
  }

  /// Finds the `count` largest of `scores`, largest first, which it destroys,
  /// and carries `carried` through `take(k, carried, rank, number)`.
  static Value
  best(KernelBuilder &k, Value scores, int64_t count, Value carried,
       function_ref<Value(KernelBuilder &, Value, Value, Value)> take) {
    Value zero = k.index(0), lowest = k.f32(kLowest);
    return k.forLoop(zero, k.index(count), 1, {carried, scores},
                     [&](KernelBuilder &k, Value rank, ValueRange c) {
                       Value number = k.forLoop(
                           zero, k.index(widthOf(scores)), 1, {lowest, zero},
                           [&](KernelBuilder &k, Value i, ValueRange found) {
                             Value score = k.loadScalar(c[1], {i});
                             return larger(k, found, score, i);
                           })[1];
                       Value rest = tensor::InsertOp::create(k.b, k.loc, lowest,
                                                             c[1], number);
                       return Values{take(k, c[0], rank, number), rest};
                     })[0];
  }

  static Value storeNumber(KernelBuilder &k, Value tile, Value rank,
                           Value number) {
    Value cast =
        arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), number);
    return tensor::InsertOp::create(k.b, k.loc, cast, tile,
                                    ValueRange{k.index(0), rank});
  }

  /// The lowest score for the experts of all but the best groups.
  Value dropGroups(KernelBuilder &k, RouterOp op, Value scores) const {
    int64_t groups = op.getGroups(), size = widthOf(scores) / groups;
    Value zero = k.index(0), lowest = k.f32(kLowest);
    // For each group its score; and, in the second half, whether it stays.
    Value judged = k.forLoop(
        zero, k.index(groups), 1, scratch(k, groups),
        [&](KernelBuilder &k, Value group, ValueRange c) {
          Value begin = k.mul(group, size);
          Values top = k.forLoop(
              zero, k.index(size), 1, {lowest, lowest},
              [&](KernelBuilder &k, Value i, ValueRange found) {
                Value x = k.loadScalar(scores, {k.add(begin, i)});
                Value loser =
                    arith::MinimumFOp::create(k.b, k.loc, x, found[0]);
                return Values{
                    arith::MaximumFOp::create(k.b, k.loc, x, found[0]),
                    arith::MaximumFOp::create(k.b, k.loc, loser, found[1])};
              });
          Value score = top[0];
          if (op.getGroupScore() == GroupScore::TopTwo)
            score = arith::AddFOp::create(k.b, k.loc, top[0], top[1]);
          return Values{
              tensor::InsertOp::create(k.b, k.loc, score, c[0], group)};
        })[0];
    Value stays = k.forLoop(zero, k.index(groups), 1, scratch(k, groups),
                            [&](KernelBuilder &k, Value group, ValueRange c) {
                              return Values{tensor::InsertOp::create(
                                  k.b, k.loc, k.f32(0.0), c[0], group)};
                            })[0];
    stays = best(k, judged, op.getActiveGroups(), stays,
                 [&](KernelBuilder &k, Value stays, Value, Value group) {
                   return tensor::InsertOp::create(k.b, k.loc, k.f32(1.0),
                                                   stays, group)
                       .getResult();
                 });
    return k.forLoop(
        zero, k.index(groups), 1, scores,
        [&](KernelBuilder &k, Value group, ValueRange outer) {
          Value keep =
              arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT,
                                    k.loadScalar(stays, {group}), k.f32(0.0));
          Value begin = k.mul(group, size);
          return k.forLoop(
              zero, k.index(size), 1, outer,
              [&](KernelBuilder &k, Value i, ValueRange c) {
                Value at = k.add(begin, i);
                Value x = arith::SelectOp::create(
                    k.b, k.loc, keep, k.loadScalar(c[0], {at}), lowest);
                return Values{
                    tensor::InsertOp::create(k.b, k.loc, x, c[0], at)};
              });
        })[0];
  }

  /// With sparse_mixer: of each chosen expert its share of a softmax over those
  /// near it that were not chosen before.
  Value sharesOfNear(KernelBuilder &k, RouterOp op, Value logits, Value experts,
                     Value token, int64_t active, Value tile) const {
    int64_t width = widthOf(logits);
    double twice = 2 * op.getEps().convertToDouble();
    Row row{logits, {token}};
    Value left = forColumns(
        k, width, lanes, scratch(k, width),
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = row.load(k, column, lanes, valid, kLowest);
          return Values{k.store(x, c[0], {column}, valid)};
        })[0];
    Value zero = k.index(0);
    return k.forLoop(
        zero, k.index(active), 1, {tile, left},
        [&](KernelBuilder &k, Value a, ValueRange outer) {
          Value number = arith::IndexCastOp::create(
              k.b, k.loc, k.b.getIndexType(),
              tensor::ExtractOp::create(k.b, k.loc, experts,
                                        ValueRange{token, a})
                  .getResult());
          Value best = k.splat(k.loadScalar(outer[1], {number}), lanes);
          Row rest{outer[1], {}};
          Value sums = forColumns(
              k, width, lanes, k.splat(0.0, lanes),
              [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
                // Minus infinity is near in name and adds nothing.
                Value x = rest.load(k, column, lanes, valid, kLowest);
                Value below = arith::SubFOp::create(k.b, k.loc, best, x);
                Value size = arith::MaximumFOp::create(
                    k.b, k.loc, math::AbsFOp::create(k.b, k.loc, x), best);
                Value isNear = arith::CmpFOp::create(
                    k.b, k.loc, arith::CmpFPredicate::OLE, below,
                    arith::MulFOp::create(k.b, k.loc, size,
                                          k.splat(twice, lanes)));
                Value share = math::ExpOp::create(
                    k.b, k.loc, arith::SubFOp::create(k.b, k.loc, x, best));
                share = arith::SelectOp::create(k.b, k.loc, isNear, share,
                                                k.splat(0.0, lanes));
                return Values{arith::AddFOp::create(k.b, k.loc, c[0], share)};
              })[0];
          Value total = vector::ReductionOp::create(
              k.b, k.loc, vector::CombiningKind::ADD, sums);
          Value weight = arith::DivFOp::create(
              k.b, k.loc, k.f32(op.getScale().convertToDouble()), total);
          return Values{tensor::InsertOp::create(k.b, k.loc, weight, outer[0],
                                                 ValueRange{zero, a}),
                        tensor::InsertOp::create(k.b, k.loc, k.f32(kLowest),
                                                 outer[1], number)};
        })[0];
  }

  /// The weights of the chosen experts of a token.
  Value shares(KernelBuilder &k, RouterOp op, Value logits, Value experts,
               Value token, int64_t active, Value tile) const {
    if (op.getScoring() == RouterScoring::SparseMixer)
      return sharesOfNear(k, op, logits, experts, token, active, tile);
    Value zero = k.index(0);
    tile = k.forLoop(zero, k.index(active), 1, tile,
                     [&](KernelBuilder &k, Value a, ValueRange c) {
                       Value number = tensor::ExtractOp::create(
                           k.b, k.loc, experts, ValueRange{token, a});
                       Value expert = arith::IndexCastOp::create(
                           k.b, k.loc, k.b.getIndexType(), number);
                       Value logit = k.loadScalar(logits, {token, expert});
                       return Values{tensor::InsertOp::create(
                           k.b, k.loc, logit, c[0], ValueRange{zero, a})};
                     })[0];
    bool onlyTop = op.getScoring() == RouterScoring::TopSoftmax;
    auto score = scoring(k, op.getScoring(),
                         onlyTop ? Row{tile, {zero}} : Row{logits, {token}});
    Values scored = forColumns(
        k, active, lanes, {tile, k.splat(0.0, lanes)},
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x =
              score(k, k.load(c[0], {zero, column}, lanes, valid, kLowest));
          return Values{k.store(x, c[0], {zero, column}, valid),
                        arith::AddFOp::create(k.b, k.loc, c[1], x)};
        });
    if (!op.getRenormalise() && op.getScale().isExactlyValue(1.0))
      return scored[0];
    Value total = vector::ReductionOp::create(
        k.b, k.loc, vector::CombiningKind::ADD, scored[1]);
    total = k.splat(arith::AddFOp::create(k.b, k.loc, total,
                                          k.f32(op.getEps().convertToDouble()))
                        .getResult(),
                    lanes);
    return forColumns(
        k, active, lanes, scored[0],
        [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
          Value x = k.load(c[0], {zero, column}, lanes, valid);
          if (op.getRenormalise())
            x = arith::DivFOp::create(k.b, k.loc, x, total);
          x = arith::MulFOp::create(
              k.b, k.loc, x, k.splat(op.getScale().convertToDouble(), lanes));
          return Values{k.store(x, c[0], {zero, column}, valid)};
        })[0];
  }

  int64_t lanes;
};

} // namespace

void populateRouterPatterns(RewritePatternSet &patterns,
                            const VectorLowering &lowering) {
  patterns.add<LowerRouter>(patterns.getContext(), lowering);
}

} // namespace attune
