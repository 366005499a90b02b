//===- StateSpaceImporter.cpp - Selective state spaces ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// `count` columns from `first` on.
static Value columns(OpBuilder &builder, Location loc, Value tokens,
                     int64_t first, int64_t count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  offsets.back() = builder.getIndexAttr(first);
  sizes.back() = builder.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(builder, loc, tokens, offsets, sizes,
                                        strides);
}

/// `count` tokens from number `first` on.
static Value rows(OpBuilder &builder, Location loc, Value tokens,
                  OpFoldResult first, OpFoldResult count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  offsets[1] = first;
  sizes[1] = count;
  return tensor::ExtractSliceOp::create(builder, loc, typeOf(tokens), tokens,
                                        offsets, sizes, strides);
}

/// Tokens behind those that the cache kept of them, which then keeps the last.
static Value afterCached(OpBuilder &builder, Location loc, Value tokens,
                         LayerScope &scope) {
  Value past = readState(builder, loc, scope.keyCache, scope.index, scope.past);
  int64_t kept = typeOf(past).getDimSize(1);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  OpFoldResult count = sizes[1];
  Value own = getValueOrCreateConstantIndexOp(builder, loc, count);
  Value all = arith::AddIOp::create(
      builder, loc, own, arith::ConstantIndexOp::create(builder, loc, kept));
  SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(3, builder.getIndexAttr(1));
  sizes[1] = all;
  Value joined = tensor::EmptyOp::create(builder, loc, sizes,
                                         typeOf(tokens).getElementType());
  sizes[1] = builder.getIndexAttr(kept);
  joined = tensor::InsertSliceOp::create(builder, loc, past, joined, offsets,
                                         sizes, strides);
  offsets[1] = builder.getIndexAttr(kept);
  sizes[1] = count;
  joined = tensor::InsertSliceOp::create(builder, loc, tokens, joined, offsets,
                                         sizes, strides);
  offsets[1] = count;
  sizes[1] = builder.getIndexAttr(kept);
  Value last = tensor::ExtractSliceOp::create(
      builder, loc, cast<RankedTensorType>(past.getType()), joined, offsets,
      sizes, strides);
  scope.keyCache =
      writeState(builder, loc, scope.keyCache, scope.index, scope.past, last);
  return joined;
}

Value LayerImporter::mamba(const spec::Mamba &mamba, StringRef prefix,
                           Value input, int64_t width, Value residual,
                           double scale) {
  Location at = loc(mamba.location);
  if (scale != 1) {
    Value result = this->mamba(mamba, prefix, input, width, Value());
    return result ? addScaled(at, residual, result, scale) : Value();
  }
  int64_t inner = mamba.inner, states = mamba.states, rank = mamba.rank;
  auto get = [&](StringRef role, int64_t rows, int64_t depth) {
    return weight(at, (prefix + role).str(), rows, depth);
  };
  auto project = [&](StringRef role, Value from, int64_t rows, bool bias,
                     Value residual = {}) -> Value {
    Value matrix =
        get((role + ".weight").str(), rows, typeOf(from).getShape().back());
    Value biases =
        bias && matrix ? get((role + ".bias").str(), rows, 0) : Value();
    if (!matrix || (bias && !biases))
      return {};
    SmallVector<int64_t> shape(typeOf(from).getShape());
    shape.back() = rows;
    auto type = RankedTensorType::get(shape, typeOf(from).getElementType());
    return LinearOp::create(builder, at, type, from, matrix, biases, residual,
                            attune::Activation::Identity, /*gated=*/false,
                            /*scale=*/nullptr);
  };

  // The stream that the state space sees, and the gate of its result.
  Value both = project("in_proj", input, 2 * inner, mamba.bias);
  Value taps = get("conv1d.weight", inner, mamba.kernel);
  Value tapsBias = mamba.convBias ? get("conv1d.bias", inner, 0) : Value();
  Value decay = get("A_log", inner, states), skip = get("D", inner, 0);
  if (!both || !taps || !decay || !skip || (mamba.convBias && !tapsBias))
    return {};
  Value keep;
  if (scope.mask) {
    auto type = RankedTensorType::get(
        {ShapedType::kDynamic, ShapedType::kDynamic}, builder.getI1Type());
    keep = tensor::CollapseShapeOp::create(
        builder, at, type, scope.mask,
        ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}});
  }
  Value x = columns(builder, at, both, 0, inner);
  if (scope.keyCache)
    x = afterCached(builder, at, x, scope);
  x = CausalConvOp::create(builder, at, x, taps, tapsBias, keep,
                           attune::Activation::Silu);
  if (scope.keyCache)
    x = rows(builder, at, x, builder.getIndexAttr(mamba.kernel - 1),
             tensor::getMixedSize(builder, at, both, 1));
  Value gate = columns(builder, at, both, inner, inner);

  // Step sizes, what goes into the states and what is read from them.
  Value chosen = project("x_proj", x, rank + 2 * states, /*bias=*/false);
  if (!chosen)
    return {};
  int64_t first = 0;
  auto part = [&](StringRef name, int64_t count) -> Value {
    Value value = columns(builder, at, chosen, first, count);
    first += count;
    return mamba.norm
               ? norm(*mamba.norm, (prefix + name + "_norm.").str(), value)
               : value;
  };
  Value low = part("dt", rank), b = part("b", states), c = part("c", states);
  if (!low || !b || !c)
    return {};
  Value step = project("dt_proj", low, inner, /*bias=*/true);
  if (!step)
    return {};
  auto lastType = RankedTensorType::get(
      {typeOf(input).getDimSize(0), states, inner}, builder.getF32Type());
  Value before;
  if (scope.valueCache)
    before = readState(builder, at, scope.valueCache, scope.index, scope.past);
  auto scan = SelectiveScanOp::create(builder, at, x.getType(), lastType, x,
                                      step, decay, b, c, skip, gate, before);
  if (scope.valueCache)
    scope.valueCache = writeState(builder, at, scope.valueCache, scope.index,
                                  scope.past, scan.getLast());
  return project("out_proj", scan.getResult(), width, mamba.bias, residual);
}
