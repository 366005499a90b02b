//===- StateTokens.cpp - Tokens that states run over ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "StateTokens.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

Value attune::columns(OpBuilder &builder, Location loc, Value tokens,
                      int64_t first, int64_t count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  offsets.back() = builder.getIndexAttr(first);
  sizes.back() = builder.getIndexAttr(count);
  return tensor::ExtractSliceOp::create(builder, loc, tokens, offsets, sizes,
                                        strides);
}

Value attune::rows(OpBuilder &builder, Location loc, Value tokens,
                   OpFoldResult first, OpFoldResult count) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  offsets[1] = first;
  sizes[1] = count;
  return tensor::ExtractSliceOp::create(builder, loc, typeOf(tokens), tokens,
                                        offsets, sizes, strides);
}

Value attune::tokensToKeep(OpBuilder &builder, Location loc, Value mask) {
  auto type = RankedTensorType::get(
      {ShapedType::kDynamic, ShapedType::kDynamic}, builder.getI1Type());
  return tensor::CollapseShapeOp::create(
      builder, loc, type, mask, ArrayRef<ReassociationIndices>{{0, 1, 2}, {3}});
}

Value attune::joinTokens(OpBuilder &builder, Location loc, Value past,
                         Value tokens) {
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
  return tensor::InsertSliceOp::create(builder, loc, tokens, joined, offsets,
                                       sizes, strides);
}

Value attune::afterCached(OpBuilder &builder, Location loc, Value tokens,
                          LayerScope &scope, Value &cache) {
  Value past = readState(builder, loc, cache, scope.index, scope.past);
  Value joined = joinTokens(builder, loc, past, tokens);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  SmallVector<OpFoldResult> offsets(3, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(3, builder.getIndexAttr(1));
  offsets[1] = sizes[1];
  sizes[1] = builder.getIndexAttr(typeOf(past).getDimSize(1));
  Value last = tensor::ExtractSliceOp::create(
      builder, loc, cast<RankedTensorType>(past.getType()), joined, offsets,
      sizes, strides);
  cache = writeState(builder, loc, cache, scope.index, scope.past, last);
  return joined;
}

Value attune::showTokens(OpBuilder &builder, Location loc, Value tokens,
                         Value mask) {
  auto type = typeOf(tokens);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, tokens);
  Value dest =
      tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  AffineMap all = builder.getMultiDimIdentityMap(3);
  SmallVector<utils::IteratorType> parallel(3, utils::IteratorType::parallel);
  return linalg::GenericOp::create(
             builder, loc, TypeRange(dest.getType()),
             ValueRange{tokens, tokensToKeep(builder, loc, mask)},
             ValueRange(dest), ArrayRef<AffineMap>{all, all.dropResult(2), all},
             parallel,
             [&](OpBuilder &b, Location at, ValueRange args) {
               Value zero = arith::ConstantOp::create(
                   b, at, b.getZeroAttr(type.getElementType()));
               Value kept =
                   arith::SelectOp::create(b, at, args[1], args[0], zero);
               linalg::YieldOp::create(b, at, kept);
             })
      .getResult(0);
}
