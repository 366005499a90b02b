//===- AttuneLadderToLinalg.cpp - The ladder as linalg ops ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The unfused path: every score in memory, every formula as the op states it.
// It is what the fused path is compared with, so it is written to be read, not
// to be fast. Steps that change one element at a time take their tensor as
// `outs`, so that bufferization updates it in place.

#include "Attune/AttuneCachedRows.h"
#include "Attune/AttuneDialect.h"
#include "attune/Conversion/Passes.h"
#include "attune/Conversion/ScoreKernels.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/WalkPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNELADDERTOLINALG
#include "attune/Conversion/Passes.h.inc"

namespace {
constexpr auto kParallel = utils::IteratorType::parallel;
constexpr auto kReduction = utils::IteratorType::reduction;

/// A builder at one place that knows the few ops a ladder is made of.
struct Kit {
  Kit(RewriterBase &b, Location loc) : b(b), loc(loc) {}

  using Body = function_ref<Value(Kit &, ValueRange)>;

  Value index(int64_t i) { return arith::ConstantIndexOp::create(b, loc, i); }
  Value f32(float x) {
    return arith::ConstantOp::create(b, loc, b.getF32FloatAttr(x));
  }
  Value infinity() { return f32(-std::numeric_limits<float>::infinity()); }

  template <typename Op, typename... Args> Value make(Args &&...args) {
    return Op::create(b, loc, std::forward<Args>(args)...);
  }
  Value equal(Value lhs, Value rhs) {
    return make<arith::CmpFOp>(arith::CmpFPredicate::OEQ, lhs, rhs);
  }
  /// Storage precision to f32, exactly.
  Value widen(Value x) {
    return x.getType().isF32() ? x : make<arith::ExtFOp>(b.getF32Type(), x);
  }

  /// The maximum of a row as exponents subtract it: 0 for a row of -inf, where
  /// -inf - -inf would be NaN.
  Value finite(Value max) {
    return make<arith::SelectOp>(equal(max, infinity()), f32(0), max);
  }

  /// A tensor of `type` with the sizes that `op` reifies for its result.
  FailureOr<Value> empty(Operation *op, RankedTensorType type) {
    ReifiedRankedShapedTypeDims shapes;
    if (failed(reifyResultShapes(b, op, shapes)))
      return failure();
    shapes[0].truncate(type.getRank());
    for (OpFoldResult size : shapes[0])
      if (!size)
        return failure();
    return Value(
        tensor::EmptyOp::create(b, loc, shapes[0], type.getElementType()));
  }
  Value filled(Value tensor, Value with) {
    return linalg::FillOp::create(b, loc, with, tensor).getResult(0);
  }

  AffineMap map(unsigned dims, ArrayRef<AffineExpr> results) {
    return AffineMap::get(dims, 0, results, b.getContext());
  }
  AffineExpr d(unsigned i) { return b.getAffineDimExpr(i); }

  Value generic(ValueRange ins, Value out, ArrayRef<AffineMap> maps,
                ArrayRef<utils::IteratorType> iterators, Body body) {
    auto op = linalg::GenericOp::create(
        b, loc, out.getType(), ins, out, maps, iterators,
        [&](OpBuilder &, Location, ValueRange args) {
          linalg::YieldOp::create(b, loc, body(*this, args));
        });
    return op.getResult(0);
  }

  /// Replaces each element of `out` [B, H, M(, N)] by `body(rows..., element)`,
  /// where each of `rows` is [H] or [B, H, M].
  Value update(ValueRange rows, Value out, Body body) {
    unsigned rank = cast<RankedTensorType>(out.getType()).getRank();
    SmallVector<AffineMap> maps;
    for (Value row : rows)
      maps.push_back(cast<RankedTensorType>(row.getType()).getRank() == 1
                         ? map(rank, {d(1)})
                         : map(rank, {d(0), d(1), d(2)}));
    maps.push_back(b.getMultiDimIdentityMap(rank));
    return generic(rows, out, maps,
                   SmallVector<utils::IteratorType>(rank, kParallel), body);
  }

  /// Folds the keys of `scores` into `out`: `body(score, rows..., so far)`.
  Value foldKeys(Value scores, ValueRange rows, Value out, Body body) {
    SmallVector<Value> ins = {scores};
    SmallVector<AffineMap> maps = {b.getMultiDimIdentityMap(4)};
    for (Value row : rows) {
      ins.push_back(row);
      maps.push_back(map(4, {d(0), d(1), d(2)}));
    }
    maps.push_back(map(4, {d(0), d(1), d(2)}));
    return generic(ins, out, maps,
                   {kParallel, kParallel, kParallel, kReduction}, body);
  }

  RewriterBase &b;
  Location loc;
};

/// A byte of a cache as an integer of 8 bits, whatever its type.
Value byteOf(Kit &k, Value element) {
  Type i8 = k.b.getI8Type();
  return element.getType() == i8 ? element
                                 : k.make<arith::BitcastOp>(i8, element);
}

/// What a byte says, before it is scaled.
Value numberOf(Kit &k, Value element) {
  Type f32 = k.b.getF32Type(), i16 = k.b.getIntegerType(16);
  if (element.getType().isInteger(8))
    return k.make<arith::SIToFPOp>(f32, element);
  // A float of 8 bits has the sign, exponent and mantissa of one of 16, whose
  // exponent counts from 15 and not from 7.
  auto bits = [&](int64_t number) -> Value {
    return k.make<arith::ConstantOp>(k.b.getIntegerAttr(i16, number));
  };
  Value wide = k.make<arith::ExtSIOp>(i16, byteOf(k, element));
  Value sign = k.make<arith::AndIOp>(wide, bits(-0x8000));
  Value rest =
      k.make<arith::AndIOp>(k.make<arith::ShLIOp>(wide, bits(7)), bits(0x3f80));
  Value half = k.make<arith::BitcastOp>(k.b.getF16Type(),
                                        k.make<arith::OrIOp>(sign, rest));
  return k.make<arith::MulFOp>(k.make<arith::ExtFOp>(f32, half), k.f32(0x1p8F));
}

/// Keys or values; those in bytes as the numbers that they stand for.
Value readHeads(Kit &k, Value heads) {
  auto type = cast<RankedTensorType>(heads.getType());
  if (!isInBytes(type.getElementType()))
    return heads;
  int64_t width = widthOfRows(type);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(k.b, k.loc, heads);
  sizes.back() = k.b.getIndexAttr(width);
  Value out = tensor::EmptyOp::create(k.b, k.loc, sizes, k.b.getF32Type());
  return k.generic(
      {}, out, {k.b.getMultiDimIdentityMap(4)},
      SmallVector<utils::IteratorType>(4, kParallel), [&](Kit &k, ValueRange) {
        SmallVector<Value> at;
        for (int64_t i = 0; i < 4; ++i)
          at.push_back(k.make<linalg::IndexOp>(i));
        Value number = numberOf(k, k.make<tensor::ExtractOp>(heads, at));
        Value bits;
        for (int64_t i = kRowScaleBytes - 1; i >= 0; --i) {
          at.back() = k.index(width + i);
          Value byte = k.make<arith::ExtUIOp>(
              k.b.getI32Type(),
              byteOf(k, k.make<tensor::ExtractOp>(heads, at)));
          Value eight = k.make<arith::ConstantOp>(k.b.getI32IntegerAttr(8));
          bits = bits ? k.make<arith::OrIOp>(k.make<arith::ShLIOp>(bits, eight),
                                             byte)
                      : byte;
        }
        return k.make<arith::MulFOp>(
            number, k.make<arith::BitcastOp>(k.b.getF32Type(), bits));
      });
}

/// How many query heads share one key/value head; 0 if not known.
int64_t groupOf(Value queries, Value keys) {
  int64_t hq = cast<RankedTensorType>(queries.getType()).getDimSize(1);
  int64_t hkv = cast<RankedTensorType>(keys.getType()).getDimSize(1);
  bool known = !ShapedType::isDynamic(hq) && !ShapedType::isDynamic(hkv);
  return known && hkv > 0 ? hq / hkv : 0;
}

/// The maximum of every row, at least its sink.
FailureOr<Value> rowMaxima(Kit &k, Operation *op, Value scores, Value sinks) {
  auto type = cast<RankedTensorType>(scores.getType());
  FailureOr<Value> max =
      k.empty(op, RankedTensorType::get(type.getShape().drop_back(),
                                        type.getElementType()));
  if (failed(max))
    return failure();
  Value start =
      sinks ? k.update(sinks, *max, [](Kit &, ValueRange v) { return v[0]; })
            : k.filled(*max, k.infinity());
  return k.foldKeys(scores, {}, start, [](Kit &k, ValueRange v) {
    return k.make<arith::MaximumFOp>(v[0], v[1]);
  });
}

/// Where the sum of exponentials of a row starts: 0, or its sink's share.
Value sumStart(Kit &k, Value maxima, Value sinks) {
  auto type = cast<RankedTensorType>(maxima.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(k.b, k.loc, maxima);
  Value sum = tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
  if (!sinks)
    return k.filled(sum, k.f32(0));
  return k.update({sinks, maxima}, sum, [](Kit &k, ValueRange v) {
    return k.make<math::ExpOp>(k.make<arith::SubFOp>(v[0], k.finite(v[1])));
  });
}

struct LowerSimilarity final : OpRewritePattern<SimilarityOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SimilarityOp op,
                                PatternRewriter &rewriter) const override {
    Kit k(rewriter, op.getLoc());
    int64_t group = groupOf(op.getQuery(), op.getKey());
    FailureOr<Value> scores = k.empty(op, op.getType());
    if (!group || failed(scores))
      return rewriter.notifyMatchFailure(op, "needs static heads");
    // b, h, m, n, d
    Value products = k.generic(
        {op.getQuery(), readHeads(k, op.getKey())}, k.filled(*scores, k.f32(0)),
        {k.map(5, {k.d(0), k.d(1), k.d(2), k.d(4)}),
         k.map(5, {k.d(0), k.d(1).floorDiv(group), k.d(3), k.d(4)}),
         k.map(5, {k.d(0), k.d(1), k.d(2), k.d(3)})},
        {kParallel, kParallel, kParallel, kParallel, kReduction},
        [](Kit &k, ValueRange v) {
          Value product = k.make<arith::MulFOp>(k.widen(v[0]), k.widen(v[1]));
          return k.make<arith::AddFOp>(v[2], product);
        });
    Value scale = k.make<arith::ConstantOp>(op.getScaleAttr());
    rewriter.replaceOp(op, k.update({}, products, [&](Kit &k, ValueRange v) {
      return k.make<arith::MulFOp>(v[0], scale);
    }));
    return success();
  }
};

/// The score in the body of a linalg.generic over all [B, H, M, N]. `read` has
/// the numbers of those operands that the generic reads.
class LadderScore : public ScoreArithmetic {
public:
  LadderScore(const KernelBuilder &k, const ScoreModifiers &modifiers,
              const DenseMap<Value, Value> &read, Value numQueries,
              Value numKeys)
      : ScoreArithmetic(k), modifiers(modifiers), read(read), allKeys(numKeys),
        reach(k, modifiers, numQueries,
              keysUpToLast(this->k, modifiers, numKeys, indexOf(0))),
        query(indexOf(2)), key(indexOf(3)) {}

  /// Hides a score for where it is. Kernels do this to ranges of keys.
  Value hideByPlace(Value score) {
    auto isLess = [&](Value x, Value y) -> Value {
      return arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::slt, x, y);
    };
    if (modifiers.lengths) {
      Value keys = keysOfBatch(k, modifiers, allKeys, indexOf(0));
      score = hideUnless(isLess(key, keys), score);
    }
    if (modifiers.blocks)
      score = hideUnless(
          isBlockSeen(k, modifiers, indexOf(0), indexOf(1), query, key), score);
    Value own = reach.ownKey(query);
    if (Value end = reach.end(own, k.index(1)))
      score = hideUnless(isLess(key, end), score);
    if (Value begin = reach.begin(own))
      score = hideUnless(isLess(k.sub(begin, k.index(1)), key), score);
    return score;
  }

private:
  Value indexOf(int64_t dim) {
    return linalg::IndexOp::create(k.b, k.loc, dim);
  }

  // Not as kernels do, but step after step.
  Value over(Value score, double by) override {
    return arith::DivFOp::create(k.b, k.loc, score, k.f32(by));
  }
  Value plusProduct(Value sum, Value x, Value y) override {
    return plus(sum, arith::MulFOp::create(k.b, k.loc, x, y));
  }

  Value biasAt(Value bias) override { return read.lookup(bias); }
  Value slopeAt(Value slopes) override { return read.lookup(slopes); }
  Value maskAt(Value mask) override { return read.lookup(mask); }
  Value diagonalAt(Value diagonals) override {
    Value last = k.sub(reach.numQueries, k.index(1));
    Value number = k.add(k.sub(key, query), last);
    if (modifiers.causal == CausalAlign::Lengths) {
      // Keys behind the sequence are hidden, but have no diagonal.
      number = k.add(number, k.sub(allKeys, reach.numKeys));
      number = k.min(number, k.sub(k.dim(diagonals, 1), k.index(1)));
    }
    return k.loadScalar(diagonals, {indexOf(1), number});
  }
  Value distance() override {
    Value between = k.sub(key, reach.positionOf(query));
    between = arith::IndexCastOp::create(k.b, k.loc, k.b.getI64Type(), between);
    return arith::SIToFPOp::create(k.b, k.loc, k.b.getF32Type(), between);
  }

  const ScoreModifiers &modifiers;
  const DenseMap<Value, Value> &read;
  Value allKeys;
  KeysInReach reach;
  Value query, key;
};

struct LowerMaskScores final : OpRewritePattern<MaskScoresOp> {
  using OpRewritePattern::OpRewritePattern;

  /// Where `operand` is read: a size of 1 serves every index.
  static AffineMap broadcast(Kit &k, Value operand) {
    SmallVector<AffineExpr> exprs;
    for (auto [dim, size] :
         llvm::enumerate(cast<RankedTensorType>(operand.getType()).getShape()))
      exprs.push_back(size == 1 && dim < 3 ? k.b.getAffineConstantExpr(0)
                                           : k.d(dim));
    return k.map(4, exprs);
  }

  LogicalResult matchAndRewrite(MaskScoresOp op,
                                PatternRewriter &rewriter) const override {
    Kit k(rewriter, op.getLoc());
    ScoreModifiers modifiers = ScoreModifiers::of(op);
    SmallVector<Value> ins;
    SmallVector<AffineMap> maps;
    for (Value operand : {modifiers.mask, modifiers.bias})
      if (operand) {
        ins.push_back(operand);
        maps.push_back(broadcast(k, operand));
      }
    if (modifiers.slopes) {
      ins.push_back(modifiers.slopes);
      maps.push_back(k.map(4, {k.d(1)}));
    }
    maps.push_back(rewriter.getMultiDimIdentityMap(4));
    Value numQueries = k.make<tensor::DimOp>(op.getScores(), k.index(2));
    Value numKeys = k.make<tensor::DimOp>(op.getScores(), k.index(3));

    auto body = [&](Kit &kit, ValueRange numbers) -> Value {
      KernelBuilder k(kit.b, kit.loc);
      DenseMap<Value, Value> read;
      for (auto [operand, number] : llvm::zip(ins, numbers))
        read[operand] = number;
      LadderScore score(k, modifiers, read, numQueries, numKeys);
      return score.hideByPlace(score.modify(modifiers, numbers.back()));
    };
    rewriter.replaceOp(
        op, k.generic(ins, op.getScores(), maps,
                      SmallVector<utils::IteratorType>(4, kParallel), body));
    return success();
  }
};

struct LowerSoftmax final : OpRewritePattern<SoftmaxOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(SoftmaxOp op,
                                PatternRewriter &rewriter) const override {
    Kit k(rewriter, op.getLoc());
    FailureOr<Value> max = rowMaxima(k, op, op.getScores(), op.getSinks());
    if (failed(max))
      return rewriter.notifyMatchFailure(op, "needs known sizes");
    Value powers = k.update(*max, op.getScores(), [](Kit &k, ValueRange v) {
      return k.make<math::ExpOp>(k.make<arith::SubFOp>(v[1], k.finite(v[0])));
    });
    Value sum = k.foldKeys(
        powers, {}, sumStart(k, *max, op.getSinks()),
        [](Kit &k, ValueRange v) { return k.make<arith::AddFOp>(v[1], v[0]); });
    // A sum of 0 is a row that saw nothing.
    rewriter.replaceOp(op, k.update(sum, powers, [](Kit &k, ValueRange v) {
      return k.make<arith::SelectOp>(k.equal(v[0], k.f32(0)), k.f32(0),
                                     k.make<arith::DivFOp>(v[1], v[0]));
    }));
    return success();
  }
};

struct LowerLogSumExp final : OpRewritePattern<LogSumExpOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(LogSumExpOp op,
                                PatternRewriter &rewriter) const override {
    Kit k(rewriter, op.getLoc());
    FailureOr<Value> max = rowMaxima(k, op, op.getScores(), op.getSinks());
    if (failed(max))
      return rewriter.notifyMatchFailure(op, "needs known sizes");
    Value sum =
        k.foldKeys(op.getScores(), *max, sumStart(k, *max, op.getSinks()),
                   [](Kit &k, ValueRange v) {
                     Value power = k.make<math::ExpOp>(
                         k.make<arith::SubFOp>(v[0], k.finite(v[1])));
                     return k.make<arith::AddFOp>(v[2], power);
                   });
    rewriter.replaceOp(op, k.update(*max, sum, [](Kit &k, ValueRange v) {
      Value log =
          k.make<arith::AddFOp>(k.finite(v[0]), k.make<math::LogOp>(v[1]));
      return k.make<arith::SelectOp>(k.equal(v[1], k.f32(0)), k.infinity(),
                                     log);
    }));
    return success();
  }
};

struct LowerWeightedSum final : OpRewritePattern<WeightedSumOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(WeightedSumOp op,
                                PatternRewriter &rewriter) const override {
    Kit k(rewriter, op.getLoc());
    auto f32 =
        RankedTensorType::get(op.getType().getShape(), rewriter.getF32Type());
    int64_t group = groupOf(op.getProbs(), op.getValue());
    FailureOr<Value> start = k.empty(op, f32);
    if (!group || failed(start))
      return rewriter.notifyMatchFailure(op, "needs static heads");
    // b, h, m, n, d: the innermost loop runs along rows of the values.
    Value sum =
        k.generic({op.getProbs(), readHeads(k, op.getValue())},
                  k.filled(*start, k.f32(0)),
                  {k.map(5, {k.d(0), k.d(1), k.d(2), k.d(3)}),
                   k.map(5, {k.d(0), k.d(1).floorDiv(group), k.d(3), k.d(4)}),
                   k.map(5, {k.d(0), k.d(1), k.d(2), k.d(4)})},
                  {kParallel, kParallel, kParallel, kReduction, kParallel},
                  [](Kit &k, ValueRange v) {
                    Value product = k.make<arith::MulFOp>(v[0], k.widen(v[1]));
                    return k.make<arith::AddFOp>(v[2], product);
                  });
    if (op.getType() == f32) {
      rewriter.replaceOp(op, sum);
      return success();
    }
    AffineMap identity = rewriter.getMultiDimIdentityMap(4);
    FailureOr<Value> narrow = k.empty(op, op.getType());
    rewriter.replaceOp(
        op, k.generic(sum, *narrow, {identity, identity},
                      SmallVector<utils::IteratorType>(4, kParallel),
                      [&](Kit &k, ValueRange v) {
                        return k.make<arith::TruncFOp>(v[1].getType(), v[0]);
                      }));
    return success();
  }
};

struct ConvertAttuneLadderToLinalg final
    : impl::ConvertAttuneLadderToLinalgBase<ConvertAttuneLadderToLinalg> {
  using Base::Base;
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<LowerSimilarity, LowerMaskScores, LowerSoftmax, LowerLogSumExp,
                 LowerWeightedSum>(&getContext());
    walkAndApplyPatterns(getOperation(), std::move(patterns));

    getOperation()->walk([&](Operation *op) {
      if (!isa<SimilarityOp, MaskScoresOp, SoftmaxOp, LogSumExpOp,
               WeightedSumOp>(op))
        return;
      op->emitOpError("cannot be lowered to linalg: its numbers of heads have "
                      "to be static");
      signalPassFailure();
    });
  }
};
} // namespace
} // namespace attune
