//===- AttentionStates.cpp - Start, merge and finish of softmax states ----===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace attune {

Value emitMax(KernelBuilder &k, Value lhs, Value rhs) {
  Value more =
      arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OGT, lhs, rhs);
  return arith::SelectOp::create(k.b, k.loc, more, lhs, rhs);
}

static Value constantLike(KernelBuilder &k, Value like, double value) {
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return k.splat(value, type.getDimSize(0));
  return k.f32(value);
}

Value emitSafeMax(KernelBuilder &k, Value maximum) {
  Value none =
      arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, maximum,
                            constantLike(k, maximum, -INFINITY));
  return arith::SelectOp::create(k.b, k.loc, none,
                                 constantLike(k, maximum, 0.0), maximum);
}

Value emitExp(KernelBuilder &k, Value x, bool rough) {
  // The scale could carry log2 e, for 0.1 to 1% of a prompt's attention. But
  // scores far from 0 would be rounded by it, and here only differences are.
  Value scaled =
      arith::MulFOp::create(k.b, k.loc, x, constantLike(k, x, kLog2E));
  return math::Exp2Op::create(k.b, k.loc, scaled,
                              rough ? arith::FastMathFlags::afn
                                    : arith::FastMathFlags::none);
}

KernelBuilder::Values forVectors(
    KernelBuilder &k, Value size, int64_t lanes, ValueRange inits,
    llvm::function_ref<KernelBuilder::Values(KernelBuilder &, Value at,
                                             Value valid, ValueRange carried)>
        body) {
  auto known = getConstantIntValue(size);
  if (known && *known % lanes == 0)
    return k.forLoop(k.index(0), size, lanes, inits,
                     [&](KernelBuilder &k, Value at, ValueRange carried) {
                       return body(k, at, {}, carried);
                     });
  return k.forLoop(k.index(0), size, lanes, inits,
                   [&](KernelBuilder &k, Value at, ValueRange carried) {
                     Value valid = k.min(k.index(lanes), k.sub(size, at));
                     return body(k, at, valid, carried);
                   });
}

namespace {

// Functions of one number are computed in all lanes of a vector: later stages
// expand math ops on vectors, and leave those on scalars to libm.
constexpr int64_t kScalarLanes = 8;

Value lane0(KernelBuilder &k, Value vector) {
  return vector::ExtractOp::create(k.b, k.loc, vector, int64_t{0});
}
Value scalarExp(KernelBuilder &k, Value x) {
  return lane0(k, emitExp(k, k.splat(x, kScalarLanes)));
}
Value scalarLog(KernelBuilder &k, Value x) {
  return lane0(k, math::LogOp::create(k.b, k.loc, k.splat(x, kScalarLanes)));
}
Value isZero(KernelBuilder &k, Value x) {
  return arith::CmpFOp::create(k.b, k.loc, arith::CmpFPredicate::OEQ, x,
                               k.f32(0.0));
}

/// Loops over the leading dimensions of `sizes`; the body gets one index each.
KernelBuilder::Values
forEach(KernelBuilder &k, ArrayRef<Value> sizes, ValueRange inits,
        llvm::function_ref<KernelBuilder::Values(KernelBuilder &, ValueRange at,
                                                 ValueRange carried)>
            body,
        SmallVector<Value> at = {}) {
  if (sizes.empty())
    return body(k, at, inits);
  return k.forLoop(k.index(0), sizes.front(), 1, inits,
                   [&](KernelBuilder &k, Value iv, ValueRange carried) {
                     SmallVector<Value> deeper(at);
                     deeper.push_back(iv);
                     return forEach(k, sizes.drop_front(), carried, body,
                                    deeper);
                   });
}

SmallVector<Value> with(ValueRange at, Value last) {
  SmallVector<Value> all(at);
  all.push_back(last);
  return all;
}

SmallVector<Value> leadingSizes(KernelBuilder &k, Value tensor, int64_t count) {
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < count; ++dim)
    sizes.push_back(k.dim(tensor, dim));
  return sizes;
}

/// An op on buffers has no results to replace.
void replace(PatternRewriter &rewriter, Operation *op,
             KernelBuilder::Values written) {
  if (op->getNumResults() == 0)
    rewriter.eraseOp(op);
  else
    rewriter.replaceOp(op, written);
}

struct LowerFinish final : OpRewritePattern<OnlineFinishOp> {
  LowerFinish(MLIRContext *context, int64_t lanes)
      : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(OnlineFinishOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value acc = op.getAcc();
    KernelBuilder::Values outs(op.getDpsInits());
    Value width = k.dim(acc, 3);
    auto row = [&](KernelBuilder &k, ValueRange at, ValueRange carried) {
      Value maximum = k.loadScalar(op.getMax(), at);
      Value sum = k.loadScalar(op.getSum(), at);
      Value factor = k.f32(1.0);
      if (op.getSinks())
        addSink(k, k.loadScalar(op.getSinks(), {at[1]}), maximum, sum, factor);
      Value none = isZero(k, sum);
      Value ratio = arith::DivFOp::create(k.b, k.loc, factor, sum);
      ratio = arith::SelectOp::create(k.b, k.loc, none, k.f32(0.0), ratio);
      Value scale = k.splat(ratio, lanes);
      KernelBuilder::Values next = forVectors(
          k, width, lanes, carried[0],
          [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
            Value x = k.load(acc, with(at, column), lanes, valid);
            Value y = arith::MulFOp::create(k.b, k.loc, x, scale);
            return KernelBuilder::Values{
                k.store(y, c[0], with(at, column), valid)};
          });
      if (op.getLse()) {
        Value lse = arith::AddFOp::create(k.b, k.loc, emitSafeMax(k, maximum),
                                          scalarLog(k, sum));
        lse = arith::SelectOp::create(k.b, k.loc, none, k.f32(-INFINITY), lse);
        next.push_back(k.storeScalar(lse, carried[1], at));
      }
      return next;
    };
    replace(rewriter, op, forEach(k, leadingSizes(k, acc, 3), outs, row));
    return success();
  }

  /// The sink counts as one more key without a value.
  static void addSink(KernelBuilder &k, Value sink, Value &maximum, Value &sum,
                      Value &factor) {
    Value both = emitMax(k, sink, maximum);
    Value safe = emitSafeMax(k, both);
    auto weight = [&](Value from) {
      return scalarExp(k, arith::SubFOp::create(k.b, k.loc, from, safe));
    };
    factor = weight(maximum);
    Value rescaled = arith::MulFOp::create(k.b, k.loc, sum, factor);
    sum = arith::AddFOp::create(k.b, k.loc, rescaled, weight(sink));
    maximum = both;
  }
  int64_t lanes;
};

struct LowerMerge final : OpRewritePattern<OnlineMergeOp> {
  LowerMerge(MLIRContext *context, int64_t lanes)
      : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(OnlineMergeOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    Value width = k.dim(op.getAcc0(), 3);
    // The first state's buffers take the result.
    KernelBuilder::Values states = {op.getAcc0(), op.getMax0(), op.getSum0()};
    auto row = [&](KernelBuilder &k, ValueRange at, ValueRange carried) {
      Value max0 = k.loadScalar(carried[1], at);
      Value max1 = k.loadScalar(op.getMax1(), at);
      Value sum0 = k.loadScalar(carried[2], at);
      Value sum1 = k.loadScalar(op.getSum1(), at);
      Value maximum = emitMax(k, max0, max1);
      Value safe = emitSafeMax(k, maximum);
      auto weight = [&](Value from) {
        return scalarExp(k, arith::SubFOp::create(k.b, k.loc, from, safe));
      };
      Value weight0 = weight(max0), weight1 = weight(max1);
      auto mixed = [&](KernelBuilder &k, Value w0, Value x0, Value w1,
                       Value x1) -> Value {
        Value first = arith::MulFOp::create(k.b, k.loc, w0, x0);
        Value second = arith::MulFOp::create(k.b, k.loc, w1, x1);
        return arith::AddFOp::create(k.b, k.loc, first, second);
      };
      Value sum = mixed(k, weight0, sum0, weight1, sum1);
      Value splat0 = k.splat(weight0, lanes), splat1 = k.splat(weight1, lanes);
      KernelBuilder::Values next = forVectors(
          k, width, lanes, carried[0],
          [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
            SmallVector<Value> where = with(at, column);
            Value x0 = k.load(c[0], where, lanes, valid);
            Value x1 = k.load(op.getAcc1(), where, lanes, valid);
            return KernelBuilder::Values{
                k.store(mixed(k, splat0, x0, splat1, x1), c[0], where, valid)};
          });
      next.push_back(k.storeScalar(maximum, carried[1], at));
      next.push_back(k.storeScalar(sum, carried[2], at));
      return next;
    };
    replace(rewriter, op,
            forEach(k, leadingSizes(k, op.getAcc0(), 3), states, row));
    return success();
  }
  int64_t lanes;
};

struct LowerStart final : OpRewritePattern<OnlineStartOp> {
  LowerStart(MLIRContext *context, int64_t lanes)
      : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(OnlineStartOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    replace(rewriter, op,
            {fill(k, op.getAcc(), 0.0), fill(k, op.getMax(), -INFINITY),
             fill(k, op.getSum(), 0.0)});
    return success();
  }

  Value fill(KernelBuilder &k, Value state, double value) const {
    int64_t last = tensorType(state).getRank() - 1;
    Value size = k.dim(state, last);
    Value splat = k.splat(value, lanes);
    auto row = [&](KernelBuilder &k, ValueRange at, ValueRange carried) {
      return forVectors(
          k, size, lanes, carried,
          [&](KernelBuilder &k, Value column, Value valid, ValueRange c) {
            return KernelBuilder::Values{
                k.store(splat, c[0], with(at, column), valid)};
          });
    };
    return forEach(k, leadingSizes(k, state, last), state, row)[0];
  }
  int64_t lanes;
};

} // namespace

void populateOnlineStatePatterns(RewritePatternSet &patterns,
                                 const VectorAttentionTile &tile) {
  patterns.add<LowerStart, LowerFinish, LowerMerge>(patterns.getContext(),
                                                    tile.lanes);
}

} // namespace attune
