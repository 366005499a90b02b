//===- SignalImporter.cpp - Modulated blocks --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

using namespace mlir;
using namespace attune;

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

Value LayerImporter::modulated(Location loc, Value x, Value read, Value columns,
                               int64_t number,
                               llvm::function_ref<Value(Value)> sublayer) {
  int64_t width = cast<RankedTensorType>(x.getType()).getShape().back();
  int64_t shift = 3 * number * width, scale = shift + width;
  read = ModulateOp::create(
      builder, loc, read.getType(), read, columns, /*residual=*/Value(),
      builder.getI64IntegerAttr(scale), builder.getI64IntegerAttr(shift),
      builder.getF32FloatAttr(1));
  Value result = sublayer(read);
  if (!result)
    return {};
  return ModulateOp::create(builder, loc, x.getType(), result, columns, x,
                            builder.getI64IntegerAttr(scale + width),
                            /*shift=*/nullptr, builder.getF32FloatAttr(0));
}
