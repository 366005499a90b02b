//===- Functions.cpp - Layers without weights -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

/// scores - log(sum(exp(scores))) of each row.
static Value logSoftmax(OpBuilder &builder, Location at, Value scores) {
  auto type = cast<RankedTensorType>(scores.getType());
  Value sums = LogSumExpOp::create(
      builder, at,
      RankedTensorType::get(type.getShape().drop_back(), type.getElementType()),
      scores, /*sinks=*/Value());
  AffineMap all = builder.getMultiDimIdentityMap(4);
  AffineMap rows = all.dropResult(3);
  SmallVector<utils::IteratorType> parallel(4, utils::IteratorType::parallel);
  SmallVector<Value> sizes;
  for (int64_t i = 0; i < 4; ++i)
    if (type.isDynamicDim(i))
      sizes.push_back(tensor::DimOp::create(builder, at, scores, i));
  Value dest = tensor::EmptyOp::create(builder, at, type, sizes);
  return linalg::GenericOp::create(
             builder, at, TypeRange(type), ValueRange{scores, sums},
             ValueRange(dest), ArrayRef<AffineMap>{all, rows, all}, parallel,
             [](OpBuilder &b, Location at, ValueRange args) {
               Value less = arith::SubFOp::create(b, at, args[0], args[1]);
               linalg::YieldOp::create(b, at, less);
             })
      .getResult(0);
}

/// Softmax of each [.., width] row, as scores of one head: [batch, 1, tokens,
/// width], or [1, 1, batch, width] of a pooled stream.
static Value softmax(OpBuilder &builder, Location at, bool logarithm,
                     Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  bool pooled = type.getRank() == 2;
  SmallVector<int64_t> shape(type.getShape());
  shape.insert(shape.begin() + !pooled, pooled ? 2 : 1, 1);
  SmallVector<ReassociationIndices> groups = {{0, 1}, {2}, {3}};
  if (pooled)
    groups = {{0, 1, 2}, {3}};
  SmallVector<OpFoldResult> sizes;
  for (int64_t i = 0; i < 4; ++i) {
    int64_t from = std::max<int64_t>(0, i - (pooled ? 2 : 1));
    sizes.push_back(
        ShapedType::isDynamic(shape[i])
            ? OpFoldResult(builder.createOrFold<tensor::DimOp>(at, input, from))
            : builder.getIndexAttr(shape[i]));
  }
  auto scoresType = RankedTensorType::get(shape, type.getElementType());
  Value scores = tensor::ExpandShapeOp::create(builder, at, scoresType, input,
                                               groups, sizes);
  Value probs = logarithm ? logSoftmax(builder, at, scores)
                          : SoftmaxOp::create(builder, at, scoresType, scores,
                                              /*sinks=*/Value())
                                .getResult();
  return tensor::CollapseShapeOp::create(builder, at, type, probs, groups);
}

Value LayerImporter::rotary(const spec::Function &function, Value input) {
  auto type = cast<RankedTensorType>(input.getType());
  if (type.getRank() != 3) {
    diags.error(layer.location,
                "needs an input of shape [batch, tokens, width]");
    return {};
  }
  Location at = loc(layer.location);
  auto headsType = RankedTensorType::get({type.getDimSize(0), function.heads,
                                          type.getDimSize(1),
                                          type.getDimSize(2) / function.heads},
                                         type.getElementType());
  Value heads = SplitHeadsOp::create(builder, at, headsType, input, 0);
  heads =
      RotaryOp::create(builder, at, headsType, heads, scope.cos, scope.sin,
                       function.rope->interleaved ? RotaryPairing::Interleaved
                                                  : RotaryPairing::Half);
  return MergeHeadsOp::create(builder, at, type, heads);
}

Value LayerImporter::function(const spec::Function &function, Value input) {
  Location at = loc(layer.location);
  switch (function.kind) {
  case spec::Function::Kind::Activation:
    return ActivationOp::create(builder, at, input,
                                toActivation(function.activation));
  case spec::Function::Kind::Softmax:
    return softmax(builder, at, function.logarithm, input);
  case spec::Function::Kind::Rotary:
    return rotary(function, input);
  }
  llvm_unreachable("every kind is listed");
}
