//===- Relative.cpp - Relative positions, segments --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Transformer-XL's relative positions, as encoders have them (XLNet): beside
// the products of queries and keys stand those of queries and of the sines and
// cosines of distances. All distances of N tokens are 2 N - 1 rows, so that
// their products are one matrix of each head, of which a score reads the column
// of its distance.

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

Value LayerImporter::withHeadBias(const spec::Attention &attention,
                                  const std::string &role, Value heads) {
  Location at = loc(attention.location);
  int64_t dim = attention.headDim;
  Value bias = weight(at, role, attention.heads * dim, 0);
  if (!bias)
    return {};
  auto type = RankedTensorType::get({attention.heads, dim},
                                    typeOf(bias).getElementType());
  bias = tensor::ExpandShapeOp::create(builder, at, type, bias,
                                       ArrayRef<ReassociationIndices>{{0, 1}});
  Type number = typeOf(heads).getElementType();
  MLIRContext *context = builder.getContext();
  AffineExpr head = getAffineDimExpr(1, context),
             channel = getAffineDimExpr(3, context);
  AffineMap all = builder.getMultiDimIdentityMap(4);
  AffineMap maps[] = {all, AffineMap::get(4, 0, {head, channel}, context), all};
  SmallVector<utils::IteratorType> parallel(4, utils::IteratorType::parallel);
  Value dest = tensor::EmptyOp::create(
      builder, at, tensor::getMixedSizes(builder, at, heads), number);
  auto body = [&](OpBuilder &b, Location at, ValueRange in) {
    Value added = in[1];
    if (added.getType() != number)
      added = arith::ExtFOp::create(b, at, number, added);
    Value sum = arith::AddFOp::create(b, at, in[0], added);
    linalg::YieldOp::create(b, at, sum);
  };
  return linalg::GenericOp::create(builder, at, dest.getType(),
                                   ValueRange{heads, bias}, dest, maps,
                                   parallel, body)
      .getResult(0);
}

/// Score [b, h, m, n] is byDistance[h, b * N + m, m - n + N - 1] and, if there
/// are segments, bySegment[h, b * N + m, whether those of m and n differ].
static Value scoresOf(OpBuilder &b, Location loc, int64_t heads, Value tokens,
                      Value byDistance, Value bySegment, Value segments) {
  OpFoldResult length = tensor::getMixedSize(b, loc, tokens, 1);
  SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(b, loc, tokens, 0),
                                     b.getIndexAttr(heads), length, length};
  Value dest = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value many = getValueOrCreateConstantIndexOp(b, loc, length);
  Value zero = arith::ConstantIndexOp::create(b, loc, 0);
  Value one = arith::ConstantIndexOp::create(b, loc, 1);
  Value last = arith::SubIOp::create(b, loc, many, one);
  SmallVector<utils::IteratorType> parallel(4, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location at, ValueRange) {
    Value i[4];
    for (unsigned dim = 0; dim < 4; ++dim)
      i[dim] = linalg::IndexOp::create(b, at, dim);
    Value place = arith::AddIOp::create(
        b, at, arith::MulIOp::create(b, at, i[0], many), i[2]);
    Value row = arith::AddIOp::create(
        b, at, arith::SubIOp::create(b, at, i[2], i[3]), last);
    Value score = tensor::ExtractOp::create(b, at, byDistance,
                                            ValueRange{zero, i[1], place, row});
    if (bySegment) {
      Value own =
          tensor::ExtractOp::create(b, at, segments, ValueRange{i[0], i[2]});
      Value other =
          tensor::ExtractOp::create(b, at, segments, ValueRange{i[0], i[3]});
      Value differ =
          arith::CmpIOp::create(b, at, arith::CmpIPredicate::ne, own, other);
      Value which = arith::SelectOp::create(b, at, differ, one, zero);
      Value more = tensor::ExtractOp::create(
          b, at, bySegment, ValueRange{zero, i[1], place, which});
      score = arith::AddFOp::create(b, at, score, more);
    }
    linalg::YieldOp::create(b, at, score);
  };
  return linalg::GenericOp::create(b, loc, dest.getType(), ValueRange{}, dest,
                                   b.getMultiDimIdentityMap(4), parallel, body)
      .getResult(0);
}

Value LayerImporter::relativeScores(const spec::Attention &attention,
                                    const std::string &prefix, Value all) {
  Location at = loc(attention.location);
  int64_t heads = attention.heads, dim = attention.headDim;
  Value rows = project(attention, prefix, "r", {{"r", heads * dim}},
                       scope.distances, /*bias=*/false);
  if (!rows)
    return {};
  Value queries =
      splitHeads(builder, at, asOneSequence(builder, at, all), heads, dim, 0);
  // Multiplies all tokens in a row by `keys`, [1, heads, tokens, keys].
  auto products = [&](const std::string &role, Value keys) -> Value {
    Value moved = withHeadBias(attention, prefix + "r." + role, queries);
    if (!moved)
      return {};
    auto type = RankedTensorType::get(
        {1, heads, typeOf(moved).getDimSize(2), typeOf(keys).getDimSize(2)},
        builder.getF32Type());
    return SimilarityOp::create(
        builder, at, type, moved, keys,
        builder.getF32FloatAttr(float(attention.scale)));
  };
  Value byDistance =
      products("position_bias", splitHeads(builder, at, rows, heads, dim, 0));
  if (!byDistance)
    return {};
  Value bySegment;
  if (scope.segments) {
    Value table = weight(at, prefix + "r.segments", 2, heads * dim);
    if (!table)
      return {};
    auto type = RankedTensorType::get({2, heads * dim}, builder.getF32Type());
    if (table.getType() != type)
      table = arith::ExtFOp::create(builder, at, type, table);
    auto one = RankedTensorType::get({1, 2, heads * dim}, builder.getF32Type());
    Value both = tensor::ExpandShapeOp::create(
        builder, at, one, table, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
    bySegment =
        products("segment_bias", splitHeads(builder, at, both, heads, dim, 0));
    if (!bySegment)
      return {};
  }
  return scoresOf(builder, at, heads, all, byDistance, bySegment,
                  scope.segments);
}
