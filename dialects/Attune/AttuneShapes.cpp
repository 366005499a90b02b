//===- AttuneShapes.cpp - Sizes of results from operands --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneShapes.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

LogicalResult attune::reifySizes(OpBuilder &builder, Location loc, Value result,
                                 ArrayRef<SizeSource> sources,
                                 ReifiedRankedShapedTypeDims &shapes) {
  auto type = cast<RankedTensorType>(result.getType());
  SmallVector<OpFoldResult> sizes;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!ShapedType::isDynamic(size)) {
      sizes.push_back(builder.getIndexAttr(size));
      continue;
    }
    OpFoldResult known;
    if (dim < sources.size()) {
      const SizeSource &from = sources[dim];
      known = from.size;
      if (!known && from.source)
        known = tensor::getMixedSize(builder, loc, from.source, from.dim);
    }
    if (!known) {
      sizes.push_back({});
      continue;
    }
    // The interface wants a value wherever the result type is dynamic.
    sizes.push_back(getValueOrCreateConstantIndexOp(builder, loc, known));
  }
  shapes.push_back(std::move(sizes));
  return success();
}

LogicalResult attune::reifyAs(OpBuilder &builder, Location loc, Value result,
                              Value like, ReifiedRankedShapedTypeDims &shapes) {
  SmallVector<SizeSource> sources;
  for (int64_t dim = 0; dim < cast<RankedTensorType>(like.getType()).getRank();
       ++dim)
    sources.push_back({like, dim});
  return reifySizes(builder, loc, result, sources, shapes);
}

SmallVector<int64_t> attune::longestSizes(FunctionOpInterface function,
                                          unsigned argument) {
  Attribute most = function.getArgAttr(argument, "attune.longest");
  if (auto second = dyn_cast_or_null<IntegerAttr>(most))
    return {0, second.getInt()};
  if (auto sizes = dyn_cast_or_null<DenseI64ArrayAttr>(most))
    return SmallVector<int64_t>(sizes.asArrayRef());
  return {};
}
