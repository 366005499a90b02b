//===- StateSpaceImporter.cpp - Selective state spaces ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

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
  Value x =
      CausalConvOp::create(builder, at, columns(builder, at, both, 0, inner),
                           taps, tapsBias, keep, attune::Activation::Silu);
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
  auto scan = SelectiveScanOp::create(builder, at, x.getType(), lastType, x,
                                      step, decay, b, c, skip, gate,
                                      /*state=*/Value());
  return project("out_proj", scan.getResult(), width, mamba.bias, residual);
}
