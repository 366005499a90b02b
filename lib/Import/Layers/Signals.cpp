//===- Signals.cpp - Channels joined and scaled -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

Value attune::joinChannels(OpBuilder &builder, Location loc,
                           ArrayRef<Value> values) {
  if (values.size() == 1)
    return values.front();
  auto widthOf = [](Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  };
  int64_t total = 0;
  for (Value value : values)
    total += widthOf(value);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, loc, values.front());
  sizes.back() = builder.getIndexAttr(total);
  auto type = cast<RankedTensorType>(values.front().getType());
  Value result =
      tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  int64_t at = 0;
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  for (Value value : values) {
    offsets.back() = builder.getIndexAttr(at);
    sizes.back() = builder.getIndexAttr(widthOf(value));
    result = tensor::InsertSliceOp::create(builder, loc, value, result, offsets,
                                           sizes, strides);
    at += widthOf(value);
  }
  return result;
}

void LayerImporter::scaleByLayer(const spec::Attention &attention,
                                 Value &query) {
  if (!attention.scaleByLayer || !scope.index)
    return; // an attention alone is the first repeat
  Location at = loc(attention.location);
  Value number = arith::AddIOp::create(
      builder, at, scope.index, arith::ConstantIndexOp::create(builder, at, 1));
  Value integer =
      arith::IndexCastOp::create(builder, at, builder.getI32Type(), number);
  Value factor = arith::DivFOp::create(
      builder, at,
      arith::ConstantOp::create(builder, at, builder.getF32FloatAttr(1)),
      arith::SIToFPOp::create(builder, at, builder.getF32Type(), integer)
          .getResult());
  auto type = cast<RankedTensorType>(query.getType());
  SmallVector<Value> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim)
    if (type.isDynamicDim(dim))
      sizes.push_back(builder.createOrFold<tensor::DimOp>(at, query, dim));
  Value all = tensor::SplatOp::create(builder, at, factor, type, sizes);
  query = arith::MulFOp::create(builder, at, query, all);
}

Value LayerImporter::modulation(const spec::Modulation &by, StringRef prefix,
                                int64_t columns, Value condition) {
  Location at = loc(by.location);
  auto type = cast<RankedTensorType>(condition.getType());
  Value matrix = weight(at, (prefix + "weight").str(), columns, by.sourceWidth),
        bias;
  if (by.bias)
    bias = weight(at, (prefix + "bias").str(), columns, 0);
  if (!matrix || (by.bias && !bias))
    return {};
  auto result = RankedTensorType::get({type.getDimSize(0), columns},
                                      builder.getF32Type());
  return LinearOp::create(builder, at, result, condition, matrix, bias,
                          /*residual=*/Value(), attune::Activation::Identity,
                          /*gated=*/false, /*scale=*/nullptr);
}

/// A convolution of one tap multiplies each channel by its weight.
Value LayerImporter::addScaledChannels(StringRef role, Value x, Value result,
                                       double scale) {
  Location at = loc(layer.location);
  Value scales =
      weight(at, role == "norm1" ? "layer_scale1" : "layer_scale2",
             cast<RankedTensorType>(x.getType()).getShape().back(), 1);
  if (!scales || !result)
    return {};
  result = CausalConvOp::create(builder, at, result, scales, /*bias=*/Value(),
                                /*keep=*/Value(), attune::Activation::Identity);
  return addScaled(at, x, result, scale);
}

Value LayerImporter::modulated(Location loc, Value x, Value read, Value columns,
                               int64_t number,
                               llvm::function_ref<Value(Value)> sublayer) {
  Value result = sublayer(shiftedBy(loc, read, columns, number));
  return result ? gatedBy(loc, x, result, columns, number) : Value();
}

Value LayerImporter::shiftedBy(Location loc, Value read, Value columns,
                               int64_t number) {
  int64_t width = cast<RankedTensorType>(read.getType()).getShape().back();
  int64_t shift = 3 * number * width;
  return ModulateOp::create(
      builder, loc, read.getType(), read, columns, /*residual=*/Value(),
      builder.getI64IntegerAttr(shift + width),
      builder.getI64IntegerAttr(shift), builder.getF32FloatAttr(1));
}

Value LayerImporter::gatedBy(Location loc, Value x, Value result, Value columns,
                             int64_t number) {
  int64_t width = cast<RankedTensorType>(x.getType()).getShape().back();
  return ModulateOp::create(builder, loc, x.getType(), result, columns, x,
                            builder.getI64IntegerAttr((3 * number + 2) * width),
                            /*shift=*/nullptr, builder.getF32FloatAttr(0));
}
