//===- AttuneIndexToLinalg.cpp - An index as linalg ops ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Nothing is sorted. Scores become integers of the same order. The last chosen
// one is found in 32 halvings of what it may be, each of which counts how many
// are at least so large. Then every place looks up its key in counts of chunks
// of keys, so that places do not wait for one another.

#include "Attune/AttuneIndexOps.h"
#include "attune/Conversion/Lanes.h"
#include "attune/Conversion/Passes.h"
#include "attune/Support/Elements.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEINDEXTOLINALG
#include "attune/Conversion/Passes.h.inc"

using arith::CmpIPredicate;

namespace {
/// Keys that are counted together.
constexpr int64_t kChunk = 128;

/// The products of the ladder, and a sum over heads.
struct LowerIndexScores final : OpRewritePattern<IndexScoresOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(IndexScoresOp op,
                                PatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Elements e{rewriter, loc};
    auto query = cast<RankedTensorType>(op.getQuery().getType());
    auto key = cast<RankedTensorType>(op.getKey().getType());
    if (query.isDynamicDim(1))
      return rewriter.notifyMatchFailure(op, "needs static heads");
    auto type = RankedTensorType::get({query.getDimSize(0), query.getDimSize(1),
                                       query.getDimSize(2), key.getDimSize(2)},
                                      rewriter.getF32Type());
    Value products = SimilarityOp::create(rewriter, loc, type, op.getQuery(),
                                          op.getKey(), op.getScaleAttr());
    OpFoldResult sizes[] = {getAsOpFoldResult(e.dim(op.getQuery(), 0)),
                            getAsOpFoldResult(e.dim(op.getQuery(), 2)),
                            getAsOpFoldResult(e.dim(op.getKey(), 2))};
    Value zero =
        arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
    Value sums =
        e.generate(sizes, rewriter.getF32Type(), [&](ValueRange at) -> Value {
          Value heads = e.dim(op.getQuery(), 1);
          if (op.getReach())
            heads = arith::SelectOp::create(
                rewriter, loc, e.less(at[2], op.getReach()), heads, e.index(0));
          auto loop = scf::ForOp::create(rewriter, loc, e.index(0), heads,
                                         e.index(1), ValueRange{zero});
          OpBuilder::InsertionGuard guard(rewriter);
          rewriter.setInsertionPointToEnd(loop.getBody());
          Value head = loop.getInductionVar();
          Value score = e.extract(products, {at[0], head, at[1], at[2]});
          score = arith::MaximumFOp::create(rewriter, loc, score, zero);
          Value share = e.extract(op.getShares(), {at[0], at[1], head});
          if (!share.getType().isF32())
            share = arith::ExtFOp::create(rewriter, loc, rewriter.getF32Type(),
                                          share);
          score = arith::MulFOp::create(rewriter, loc, score, share);
          Value sum = arith::AddFOp::create(rewriter, loc,
                                            loop.getRegionIterArg(0), score);
          scf::YieldOp::create(rewriter, loc, sum);
          return loop.getResult(0);
        });
    rewriter.replaceOp(op, e.castTo(op.getType(), sums));
    return success();
  }
};

/// Chooses the keys of each query.
class KeyChoice {
public:
  KeyChoice(OpBuilder &b, ChooseKeysOp op)
      : b(b), loc(op.getLoc()), k(b, loc), e{b, loc}, op(op),
        batch(e.dim(op.getScores(), 0)), queries(e.dim(op.getScores(), 1)),
        keys(e.dim(op.getScores(), 2)), chunks(e.ceilDiv(keys, kChunk)) {
    numbers = numbersOf();
    last = lastChosen();
    tally();
  }

  /// How many keys each query sees, at most `top`.
  Value counts() {
    return e.generate(rows(), b.getI64Type(), [&](ValueRange at) {
      return arith::ExtSIOp::create(b, loc, b.getI64Type(),
                                    chosenBefore(at, chunks));
    });
  }

  /// The first of them, in order.
  Value places() {
    return e.generate(
        rows({b.getIndexAttr(op.getTop())}), b.getI64Type(),
        [&](ValueRange at) -> Value {
          Value place =
              arith::IndexCastOp::create(b, loc, b.getI32Type(), at[2]);
          ValueRange query = at.take_front(2);
          Value isThere = compare(k, CmpIPredicate::slt, place,
                                  chosenBefore(query, chunks));
          Value key = select(k, isThere, keyAt(query, place), e.index(0));
          return arith::IndexCastOp::create(b, loc, b.getI64Type(), key);
        });
  }

private:
  Value one(Value when) {
    return arith::ExtUIOp::create(b, loc, b.getI32Type(), when);
  }
  Value plus(Value x, Value y) { return arith::AddIOp::create(b, loc, x, y); }
  SmallVector<OpFoldResult> rows(ArrayRef<OpFoldResult> more = {}) {
    SmallVector<OpFoldResult> sizes = {getAsOpFoldResult(batch),
                                       getAsOpFoldResult(queries)};
    llvm::append_range(sizes, more);
    return sizes;
  }
  Value extract(Value tensor, ValueRange query, ArrayRef<Value> more = {}) {
    SmallVector<Value> at(query);
    llvm::append_range(at, more);
    return e.extract(tensor, at);
  }
  /// A loop that carries numbers.
  SmallVector<Value>
  loop(Value from, Value to, ValueRange start,
       llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
    auto op = scf::ForOp::create(b, loc, from, to, e.index(1), start);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToEnd(op.getBody());
    scf::YieldOp::create(b, loc,
                         body(op.getInductionVar(), op.getRegionIterArgs()));
    return llvm::to_vector_of<Value>(op.getResults());
  }
  std::pair<Value, Value> chunkAt(Value chunk) {
    Value begin = arith::MulIOp::create(b, loc, chunk, e.index(kChunk));
    Value end =
        arith::MinSIOp::create(b, loc, keys, e.add(begin, e.index(kChunk)));
    return {begin, end};
  }

  Value numbersOf();
  Value lastChosen();
  void tally();
  Value chosenBefore(ValueRange query, Value chunk);
  Value keyAt(ValueRange query, Value place);

  OpBuilder &b;
  Location loc;
  KernelBuilder k;
  Elements e;
  ChooseKeysOp op;
  Value batch, queries, keys, chunks;
  Value numbers; ///< [batch, queries, keys], in the order of scores
  Value last;    ///< [batch, queries]: the smallest number that is chosen
  /// [batch, queries, chunks + 1, 2]: keys before a chunk that are above the
  /// last one, and as large.
  Value before;
};
} // namespace

/// Scores as integers that are in order as they are. Those of keys that the
/// query does not see are below all others.
Value KeyChoice::numbersOf() {
  return e.generate(
      rows({getAsOpFoldResult(keys)}), b.getI32Type(), [&](ValueRange at) {
        Value rank = rankOf(k, e.extract(op.getScores(), at));
        Value seen =
            e.shown(op.getMask(), op.getLengths(), at[0], at[2], at[1]);
        if (op.getPast()) {
          Value reached = e.atMost(at[2], e.add(op.getPast(), at[1]));
          seen = seen ? e.both(seen, reached) : reached;
        }
        return seen ? select(k, seen, rank, number(k, kNoRank)) : rank;
      });
}

/// The largest number that at least `top` are not below; if there are fewer,
/// the smallest that a key has which is not hidden. Bit after bit, from the
/// smallest of all numbers on: one more is set if enough keys have it, too.
Value KeyChoice::lastChosen() {
  Value start = e.generate(rows(), b.getI32Type(),
                           [&](ValueRange) { return number(k, kNoRank); });
  Value found =
      loop(e.index(0), e.index(32), start, [&](Value round, ValueRange so) {
        Value bit = arith::ShRUIOp::create(
            b, loc, number(k, kNoRank),
            arith::IndexCastOp::create(b, loc, b.getI32Type(), round));
        Value parts = e.generate(
            rows({getAsOpFoldResult(chunks)}), b.getI32Type(),
            [&](ValueRange at) {
              ValueRange query = at.take_front(2);
              Value least = plus(extract(so[0], query), bit);
              auto [begin, end] = chunkAt(at[2]);
              return loop(
                  begin, end, number(k, 0), [&](Value key, ValueRange so) {
                    Value own = extract(numbers, query, {key});
                    Value more = compare(k, CmpIPredicate::sge, own, least);
                    return SmallVector<Value>{plus(so[0], one(more))};
                  })[0];
            });
        auto next = linalg::GenericOp::create(
            b, loc, so[0].getType(), ValueRange{}, so[0],
            b.getMultiDimIdentityMap(2),
            SmallVector<utils::IteratorType>(2, utils::IteratorType::parallel),
            [&](OpBuilder &inner, Location, ValueRange own) {
              OpBuilder::InsertionGuard guard(b);
              b.setInsertionPointToEnd(inner.getInsertionBlock());
              Value query[] = {linalg::IndexOp::create(b, loc, 0),
                               linalg::IndexOp::create(b, loc, 1)};
              Value many = loop(e.index(0), chunks, number(k, 0),
                                [&](Value chunk, ValueRange so) {
                                  return SmallVector<Value>{plus(
                                      so[0], extract(parts, query, {chunk}))};
                                })[0];
              Value enough =
                  compare(k, CmpIPredicate::sge, many, number(k, op.getTop()));
              linalg::YieldOp::create(
                  b, loc, select(k, enough, plus(own[0], bit), own[0]));
            });
        return SmallVector<Value>{next.getResult(0)};
      })[0];
  return e.generate(rows(), b.getI32Type(), [&](ValueRange at) -> Value {
    return arith::MaxSIOp::create(b, loc, e.extract(found, at),
                                  number(k, kNoRank + 1));
  });
}

/// Counts the keys before each chunk.
void KeyChoice::tally() {
  auto kindOf = [&](ValueRange at, Value own) -> Value {
    Value least = extract(last, at.take_front(2));
    Value above = compare(k, CmpIPredicate::sgt, own, least);
    Value alike = compare(k, CmpIPredicate::eq, own, least);
    Value first = compare(k, CmpIPredicate::eq, at[3], e.index(0));
    return one(select(k, first, above, alike));
  };
  auto sizes = [&](Value chunks) {
    return rows({getAsOpFoldResult(chunks), b.getIndexAttr(2)});
  };
  Value parts = e.generate(sizes(chunks), b.getI32Type(), [&](ValueRange at) {
    auto [begin, end] = chunkAt(at[2]);
    return loop(begin, end, number(k, 0), [&](Value key, ValueRange so) {
      Value own = extract(numbers, at.take_front(2), {key});
      return SmallVector<Value>{plus(so[0], kindOf(at, own))};
    })[0];
  });
  before = e.generate(
      sizes(e.add(chunks, e.index(1))), b.getI32Type(), [&](ValueRange at) {
        return loop(
            e.index(0), at[2], number(k, 0), [&](Value chunk, ValueRange so) {
              Value own = extract(parts, at.take_front(2), {chunk, at[3]});
              return SmallVector<Value>{plus(so[0], own)};
            })[0];
      });
}

/// How many keys before a chunk are chosen: all above the last chosen key, and
/// as many of its equals, the first ones, as these leave room for.
Value KeyChoice::chosenBefore(ValueRange query, Value chunk) {
  Value above = extract(before, query, {chunk, e.index(0)});
  Value alike = extract(before, query, {chunk, e.index(1)});
  Value all = extract(before, query, {chunks, e.index(0)});
  Value room = arith::SubIOp::create(b, loc, number(k, op.getTop()), all);
  return plus(above, arith::MinSIOp::create(b, loc, alike, room));
}

/// The key that stands at a place of the chosen ones.
Value KeyChoice::keyAt(ValueRange query, Value place) {
  // The last chunk before which there are no more.
  Value chunk =
      loop(e.index(1), chunks, e.index(0), [&](Value chunk, ValueRange so) {
        Value fewer =
            compare(k, CmpIPredicate::sle, chosenBefore(query, chunk), place);
        return SmallVector<Value>{select(k, fewer, chunk, so[0])};
      })[0];
  Value above = extract(before, query, {chunk, e.index(0)});
  Value alike = extract(before, query, {chunk, e.index(1)});
  Value all = extract(before, query, {chunks, e.index(0)});
  Value room = arith::SubIOp::create(b, loc, number(k, op.getTop()), all);
  Value least = extract(last, query);
  auto [begin, end] = chunkAt(chunk);
  return loop(begin, end, {above, alike, begin}, [&](Value key, ValueRange so) {
    Value own = extract(numbers, query, {key});
    Value larger = compare(k, CmpIPredicate::sgt, own, least);
    Value equal = compare(k, CmpIPredicate::eq, own, least);
    Value fits = compare(k, CmpIPredicate::slt, so[1], room);
    Value chosen = either(k, larger, both(k, equal, fits));
    Value many = plus(so[0], arith::MinSIOp::create(b, loc, so[1], room));
    Value here = compare(k, CmpIPredicate::eq, many, place);
    return SmallVector<Value>{plus(so[0], one(larger)), plus(so[1], one(equal)),
                              select(k, both(k, chosen, here), key, so[2])};
  })[2];
}

namespace {
struct LowerChooseKeys final : OpRewritePattern<ChooseKeysOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(ChooseKeysOp op,
                                PatternRewriter &rewriter) const override {
    KeyChoice choice(rewriter, op);
    Elements e{rewriter, op.getLoc()};
    Value results[] = {e.castTo(op.getPlaces().getType(), choice.places()),
                       e.castTo(op.getCounts().getType(), choice.counts())};
    rewriter.replaceOp(op, results);
    return success();
  }
};

struct ConvertAttuneIndexToLinalg final
    : impl::ConvertAttuneIndexToLinalgBase<ConvertAttuneIndexToLinalg> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerIndexScores, LowerChooseKeys>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));
    getOperation()->walk([&](IndexScoresOp op) {
      op->emitOpError("cannot be lowered to linalg: its number of heads has to "
                      "be static");
      signalPassFailure();
    });
  }
};
} // namespace
} // namespace attune
