//===- ScoreKernels.cpp - Scores of attention in kernels --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Conversion/ScoreKernels.h"

#include "mlir/Dialect/Math/IR/Math.h"

#include <cmath>

using namespace mlir;

namespace attune {

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

/// `value` in every lane of what `like` is.
static Value constantLike(KernelBuilder &k, Value like, double value) {
  if (auto type = dyn_cast<VectorType>(like.getType()))
    return k.splat(value, type.getDimSize(0));
  return k.f32(value);
}

Value ScoreArithmetic::modify(const ScoreModifiers &modifiers, Value score) {
  if (modifiers.scale != 1)
    score = times(score, modifiers.scale);
  if (auto cap = modifiers.softcap) {
    score = over(score, *cap);
    score = times(math::TanhOp::create(k.b, k.loc, score), *cap);
  }
  if (modifiers.bias)
    score = plus(score, biasAt(modifiers.bias));
  if (modifiers.diagonals)
    score = plus(score, diagonalAt(modifiers.diagonals));
  if (modifiers.slopes) {
    Value slope = slopeAt(modifiers.slopes);
    score = plusProduct(score, slope, distance());
  }
  if (modifiers.mask)
    score = hideUnless(maskAt(modifiers.mask), score);
  return score;
}

Value ScoreArithmetic::times(Value score, double by) {
  return arith::MulFOp::create(k.b, k.loc, score, constantLike(k, score, by));
}
Value ScoreArithmetic::over(Value score, double by) {
  return times(score, 1.0 / by);
}
Value ScoreArithmetic::plus(Value x, Value y) {
  return arith::AddFOp::create(k.b, k.loc, x, y);
}
Value ScoreArithmetic::plusProduct(Value sum, Value x, Value y) {
  if (isa<VectorType>(sum.getType()))
    return k.fma(x, y, sum);
  return math::FmaOp::create(k.b, k.loc, x, y, sum);
}
Value ScoreArithmetic::hideUnless(Value seen, Value score) {
  return arith::SelectOp::create(k.b, k.loc, seen, score,
                                 constantLike(k, score, -INFINITY));
}

//===----------------------------------------------------------------------===//
// Keys of a tile
//===----------------------------------------------------------------------===//

Value KeysInReach::positionOf(Value query) {
  Value position = k.add(query, k.sub(numKeys, numQueries));
  return firstKey ? k.sub(position, firstKey) : position;
}
Value KeysInReach::ownKey(Value query) {
  if (modifiers.causal != CausalAlign::TopLeft)
    return positionOf(query);
  return firstKey ? k.sub(query, firstKey) : query;
}
Value KeysInReach::begin(Value own) {
  if (!modifiers.window)
    return {};
  return k.sub(own, k.index(*modifiers.window - 1));
}
Value KeysInReach::end(Value own, Value count) {
  if (!modifiers.isCausal())
    return {};
  Value end = k.add(own, count);
  return modifiers.causal == CausalAlign::Symmetric
             ? k.add(end, k.index(*modifiers.window - 1))
             : end;
}

/// The length of a sequence, of which some keys may be elsewhere.
static Value lengthOf(KernelBuilder &k, const ScoreModifiers &modifiers,
                      Value batch) {
  return arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(),
                                    k.loadScalar(modifiers.lengths, {batch}));
}

Value keysOfBatch(KernelBuilder &k, const ScoreModifiers &modifiers,
                  Value numKeys, Value batch) {
  if (!modifiers.lengths)
    return numKeys;
  Value length = lengthOf(k, modifiers, batch);
  // All keys may come behind the last query.
  if (modifiers.causal == CausalAlign::Lengths)
    length = k.b.createOrFold<arith::MaxSIOp>(k.loc, k.index(0), length);
  return k.min(numKeys, length);
}

Value keysUpToLast(KernelBuilder &k, const ScoreModifiers &modifiers,
                   Value numKeys, Value batch) {
  return modifiers.causal == CausalAlign::Lengths
             ? lengthOf(k, modifiers, batch)
             : numKeys;
}

KeyRange keysOfTile(KernelBuilder &k, KeysInReach reach, Value keys,
                    Value first, Value count, int64_t step) {
  KeyRange range = {k.index(0), keys};
  Value own = reach.ownKey(first);
  if (Value end = reach.end(own, count))
    range.end = k.min(keys, end);
  Value begin = reach.begin(own);
  if (!begin)
    return range;
  range.begin = k.b.createOrFold<arith::MaxSIOp>(k.loc, begin, range.begin);
  if (step == 1)
    return range;
  Value beyond =
      k.b.createOrFold<arith::RemUIOp>(k.loc, range.begin, k.index(step));
  range.begin = k.sub(range.begin, beyond);
  return range;
}

Value isBlockSeen(KernelBuilder &k, const ScoreModifiers &modifiers,
                  Value batch, Value head, Value query, Value key) {
  Value blocks = modifiers.blocks;
  auto blockOf = [&](Value place, int64_t size) -> Value {
    return k.b.createOrFold<arith::DivUIOp>(k.loc, place, k.index(size));
  };
  SmallVector<Value> at = {batch, head, blockOf(query, modifiers.blockSizes[0]),
                           blockOf(key, modifiers.blockSizes[1])};
  for (int64_t dim = 0; dim < 2; ++dim)
    if (cast<ShapedType>(blocks.getType()).getDimSize(dim) == 1)
      at[dim] = k.index(0);
  return k.loadScalar(blocks, at);
}

Value keysOfPart(KernelBuilder &k, Value keys, Value parts, int64_t step) {
  Value each = k.b.createOrFold<arith::DivUIOp>(
      k.loc, k.add(keys, k.sub(parts, k.index(1))), parts);
  return k.mul(k.ceilDiv(each, step), step);
}

Value cutScores(KernelBuilder &k, Value whole, ArrayRef<OpFoldResult> offsets,
                ArrayRef<OpFoldResult> sizes) {
  if (!whole)
    return {};
  SmallVector<OpFoldResult> at(offsets), count(sizes);
  for (int64_t dim = 0; dim < 3; ++dim)
    if (cast<ShapedType>(whole.getType()).getDimSize(dim) == 1) {
      at[dim] = k.b.getIndexAttr(0);
      count[dim] = k.b.getIndexAttr(1);
    }
  SmallVector<OpFoldResult> strides(at.size(), k.b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(k.b, k.loc, whole, at, count, strides);
}

} // namespace attune
