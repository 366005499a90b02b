//===- TimeMix.cpp - Time mixing of RWKV-7 ----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTokens.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>

using namespace mlir;
using namespace attune;

/// What `body` makes of each number of `tokens`, which have one type, and of
/// its channel's in `vector`, in f32.
static Value
perChannel(OpBuilder &builder, Location loc, ValueRange tokens, Value vector,
           llvm::function_ref<Value(OpBuilder &, ValueRange)> body) {
  auto type = typeOf(tokens[0]);
  Value dest = tensor::EmptyOp::create(
      builder, loc, tensor::getMixedSizes(builder, loc, tokens[0]),
      type.getElementType());
  AffineMap all = builder.getMultiDimIdentityMap(3);
  SmallVector<AffineMap> maps(tokens.size(), all);
  SmallVector<Value> inputs(tokens);
  inputs.push_back(vector);
  maps.push_back(
      AffineMap::get(3, 0, builder.getAffineDimExpr(2), builder.getContext()));
  maps.push_back(all);
  SmallVector<utils::IteratorType> parallel(3, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(type), inputs, ValueRange(dest), maps,
             parallel,
             [&](OpBuilder &b, Location at, ValueRange args) {
               SmallVector<Value> wide(args.drop_back());
               Value &number = wide.back();
               if (!number.getType().isF32())
                 number = arith::ExtFOp::create(b, at, b.getF32Type(), number);
               linalg::YieldOp::create(b, at, body(b, wide));
             })
      .getResult(0);
}

Value LayerImporter::changeBefore(Location at, Value &tokens, Value &cache) {
  if (scope.mask)
    tokens = showTokens(builder, at, tokens, scope.mask);
  Value joined;
  if (cache) {
    joined = afterCached(builder, at, tokens, scope, cache);
  } else {
    auto type = typeOf(tokens);
    auto one = RankedTensorType::get(
        {type.getDimSize(0), 1, type.getDimSize(2)}, type.getElementType());
    SmallVector<Value> sizes;
    if (type.isDynamicDim(0))
      sizes.push_back(builder.createOrFold<tensor::DimOp>(at, tokens, 0));
    Value zero = arith::ConstantOp::create(
        builder, at, builder.getZeroAttr(type.getElementType()));
    Value none = tensor::SplatOp::create(builder, at, zero, one, sizes);
    joined = joinTokens(builder, at, none, tokens);
  }
  Value before = rows(builder, at, joined, builder.getIndexAttr(0),
                      tensor::getMixedSize(builder, at, tokens, 1));
  return arith::SubFOp::create(builder, at, before, tokens);
}

Value LayerImporter::shifted(Location at, StringRef role, Value tokens,
                             Value change) {
  Value by = weight(at, role, typeOf(tokens).getDimSize(2), 0);
  if (!by)
    return {};
  return perChannel(builder, at, {tokens, change}, by,
                    [&](OpBuilder &b, ValueRange args) -> Value {
                      Value more =
                          arith::MulFOp::create(b, at, args[1], args[2]);
                      return arith::AddFOp::create(b, at, args[0], more);
                    });
}

Value LayerImporter::throughRank(Location at, StringRef down, StringRef up,
                                 Value from, int64_t rank, int64_t rows,
                                 bool bias, attune::Activation inner,
                                 attune::Activation outer) {
  Value low = stateProjection(at, down, from, rank, /*bias=*/false,
                              /*residual=*/Value(), inner);
  return low ? stateProjection(at, up, low, rows, bias, /*residual=*/Value(),
                               outer)
             : Value();
}

Value LayerImporter::timeMix(const spec::TimeMix &mix, StringRef prefix,
                             Value input, int64_t width, Value residual,
                             double scale) {
  Location at = loc(mix.location);
  if (scale != 1) {
    Value result = timeMix(mix, prefix, input, width, Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  using Act = attune::Activation;
  int64_t keys = mix.heads * mix.keyDim, values = mix.heads * mix.valueDim;
  auto role = [&](StringRef name) { return (prefix + name).str(); };
  Value change = changeBefore(at, input, scope.convCache);
  auto part = [&](StringRef name) {
    return shifted(at, role(("x_" + name).str()), input, change);
  };
  Value xr = part("r"), xw = part("w"), xk = part("k"), xv = part("v"),
        xa = part("a"), xg = part("g");
  if (!xr || !xw || !xk || !xv || !xa || !xg)
    return {};
  Value r = stateProjection(at, role("r"), xr, keys, /*bias=*/false);
  Value k = stateProjection(at, role("k"), xk, keys, /*bias=*/false);
  Value v = stateProjection(at, role("v"), xv, values, /*bias=*/false);
  Value decay = throughRank(at, role("w_down"), role("w"), xw, mix.decayRank,
                            keys, /*bias=*/true, Act::Tanh, Act::Sigmoid);
  Value rate = throughRank(at, role("a_down"), role("a"), xa, mix.rateRank,
                           keys, /*bias=*/true, Act::Identity, Act::Sigmoid);
  Value gate = throughRank(at, role("g_down"), role("g"), xg, mix.gateRank,
                           values, /*bias=*/false, Act::Sigmoid, Act::Identity);
  Value ofKeys = weight(at, role("k_k"), keys, 0),
        ofRates = weight(at, role("k_a"), keys, 0),
        bonus = weight(at, role("r_k"), keys, 0);
  if (!r || !k || !v || !decay || !rate || !gate || !ofKeys || !ofRates ||
      !bonus)
    return {};
  decay = addScaled(at, /*x=*/Value(), decay, -std::exp(-0.5));
  if (mix.valueRank) {
    Value by = throughRank(at, role("v_down"), role("v_mix"), xv, mix.valueRank,
                           values, /*bias=*/true, Act::Identity, Act::Sigmoid);
    if (!by)
      return {};
    Value other = arith::SubFOp::create(builder, at, scope.firstValues, v);
    v = arith::AddFOp::create(builder, at, v,
                              arith::MulFOp::create(builder, at, other, by));
  } else if (scope.givesValues) {
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, at, v);
    SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0));
    SmallVector<OpFoldResult> strides(3, builder.getIndexAttr(1));
    scope.firstValues = tensor::InsertSliceOp::create(
        builder, at, v, scope.firstValues, offsets, sizes, strides);
  }
  if (scope.mask)
    v = showTokens(builder, at, v, scope.mask);

  // Keys of length 1 find what is removed.
  Value found = perChannel(
      builder, at, k, ofKeys, [&](OpBuilder &b, ValueRange args) -> Value {
        return arith::MulFOp::create(b, at, args[0], args[1]);
      });
  auto type = typeOf(k);
  auto heads = RankedTensorType::get(
      {type.getDimSize(0), mix.heads, type.getDimSize(1), mix.keyDim},
      type.getElementType());
  found = SplitHeadsOp::create(builder, at, heads, found, 0);
  double root = std::sqrt(double(mix.keyDim));
  found = RMSNormOp::create(
      builder, at, heads, found, /*gamma=*/Value(),
      builder.getF32FloatAttr(float(mix.eps / double(mix.keyDim))),
      builder.getF32FloatAttr(0));
  found = MergeHeadsOp::create(builder, at, type, found);
  Value remove = addScaled(at, /*x=*/Value(), found, -1 / root);
  found = addScaled(at, /*x=*/Value(), found, 1 / root);
  Value replace = arith::MulFOp::create(builder, at, found, rate);
  k = perChannel(builder, at, {k, rate}, ofRates,
                 [&](OpBuilder &b, ValueRange args) -> Value {
                   Value one =
                       arith::ConstantOp::create(b, at, b.getF32FloatAttr(1));
                   Value less = arith::SubFOp::create(b, at, args[1], one);
                   less = arith::MulFOp::create(b, at, less, args[2]);
                   less = arith::MulFOp::create(b, at, less, args[0]);
                   return arith::AddFOp::create(b, at, args[0], less);
                 });
  return rememberMixed(mix, prefix, {r, k, v, decay, remove, replace, bonus},
                       gate, width, residual);
}

Value LayerImporter::rememberMixed(const spec::TimeMix &mix, StringRef prefix,
                                   ArrayRef<Value> read, Value gate,
                                   int64_t width, Value residual) {
  Location at = loc(mix.location);
  Value before;
  if (scope.stateCache)
    before = readState(builder, at, scope.stateCache, scope.index, scope.past);
  auto type = typeOf(gate);
  auto lastType = RankedTensorType::get(
      {type.getDimSize(0), mix.keyDim, type.getDimSize(2)},
      builder.getF32Type());
  auto op = GeneralizedDeltaRuleOp::create(
      builder, at, TypeRange{type, lastType, type}, read[0], read[1], read[2],
      read[3], read[4], read[5], read[6], before);
  if (scope.stateCache)
    scope.stateCache = writeState(builder, at, scope.stateCache, scope.index,
                                  scope.past, op.getLast());
  auto heads = RankedTensorType::get(
      {type.getDimSize(0), mix.heads, type.getDimSize(1), mix.valueDim},
      type.getElementType());
  Value split = SplitHeadsOp::create(builder, at, heads, op.getResult(), 0);
  split = norm(mix.norm, (prefix + "norm.").str(), split, mix.heads);
  if (!split)
    return {};
  Value result = MergeHeadsOp::create(builder, at, type, split);
  result = arith::AddFOp::create(builder, at, result, op.getOwn());
  result = arith::MulFOp::create(builder, at, result, gate);
  return stateProjection(at, (prefix + "o").str(), result, width,
                         /*bias=*/false, residual);
}
