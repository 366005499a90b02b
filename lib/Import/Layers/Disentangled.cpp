//===- Disentangled.cpp - Scores of positions -------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace attune;

/// The row of each distance from -last to last, and all beyond have the rows of
/// these two. In f32, as the published class computes logarithms.
static std::vector<int32_t> rowsOfDistances(const spec::Disentangled &form) {
  int64_t last = form.buckets ? form.maxDistance : form.span;
  int64_t middle = form.span / 2;
  std::vector<int32_t> rows;
  for (int64_t distance = -last; distance <= last; ++distance) {
    int64_t size = std::abs(distance), step = size;
    if (form.buckets && size > middle) {
      float share =
          std::log(float(size) / float(middle)) /
          std::log(float(double(form.maxDistance - 1) / double(middle)));
      step = int64_t(std::ceil(share * float(middle - 1))) + middle;
    }
    int64_t row = form.span + (distance < 0 ? -step : step);
    rows.push_back(int32_t(std::clamp<int64_t>(row, 0, 2 * form.span - 1)));
  }
  return rows;
}

Value attune::asOneSequence(OpBuilder &builder, Location loc, Value tokens) {
  auto type = typeOf(tokens);
  int64_t width = type.getShape().back();
  auto flat = RankedTensorType::get({ShapedType::kDynamic, width},
                                    type.getElementType());
  Value rows = tensor::CollapseShapeOp::create(
      builder, loc, flat, tokens, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
  auto one = RankedTensorType::get({1, ShapedType::kDynamic, width},
                                   type.getElementType());
  SmallVector<OpFoldResult> sizes = {
      builder.getIndexAttr(1), tensor::getMixedSize(builder, loc, rows, 0),
      builder.getIndexAttr(width)};
  return tensor::ExpandShapeOp::create(
      builder, loc, one, rows, ArrayRef<ReassociationIndices>{{0, 1}, {2}},
      sizes);
}

/// For each head the products of `tokens`, of all sequences in a row, and of
/// the rows of positions: [1, heads, batch * tokens, rows].
static Value products(OpBuilder &builder, Location loc,
                      const spec::Attention &attention, Value tokens,
                      Value rows) {
  auto type =
      RankedTensorType::get({1, attention.heads, typeOf(tokens).getDimSize(2),
                             typeOf(rows).getDimSize(2)},
                            builder.getF32Type());
  return SimilarityOp::create(builder, loc, type, tokens, rows,
                              builder.getF32FloatAttr(float(attention.scale)));
}

/// Score [b, h, m, n] is toPositions[h, b * M + m, row] + toContents[h, b * M +
/// n, row], each if it is there, where the row is that of m - n.
static Value scoresOf(OpBuilder &b, Location loc, const spec::Attention &of,
                      Value tokens, Value toPositions, Value toContents) {
  std::vector<int32_t> rows = rowsOfDistances(*of.disentangled);
  int64_t count = int64_t(rows.size()), last = count / 2;
  auto tableType = RankedTensorType::get({count}, b.getI32Type());
  Value table = arith::ConstantOp::create(
      b, loc, DenseElementsAttr::get(tableType, ArrayRef(rows)));
  OpFoldResult length = tensor::getMixedSize(b, loc, tokens, 1);
  SmallVector<OpFoldResult> sizes = {tensor::getMixedSize(b, loc, tokens, 0),
                                     b.getIndexAttr(of.heads), length, length};
  Value dest = tensor::EmptyOp::create(b, loc, sizes, b.getF32Type());
  Value many = getValueOrCreateConstantIndexOp(b, loc, length);
  auto index = [&](int64_t number) -> Value {
    return arith::ConstantIndexOp::create(b, loc, number);
  };
  Value zero = index(0), end = index(2 * last), middle = index(last);
  SmallVector<utils::IteratorType> parallel(4, utils::IteratorType::parallel);
  auto body = [&](OpBuilder &b, Location at, ValueRange) {
    Value i[4];
    for (unsigned dim = 0; dim < 4; ++dim)
      i[dim] = linalg::IndexOp::create(b, at, dim);
    Value distance = arith::AddIOp::create(
        b, at, arith::SubIOp::create(b, at, i[2], i[3]), middle);
    distance = arith::MinSIOp::create(
        b, at, arith::MaxSIOp::create(b, at, distance, zero), end);
    Value row = arith::IndexCastOp::create(
        b, at, b.getIndexType(),
        tensor::ExtractOp::create(b, at, table, distance));
    Value before = arith::MulIOp::create(b, at, i[0], many), sum;
    for (auto [part, token] :
         {std::pair(toPositions, i[2]), std::pair(toContents, i[3])}) {
      if (!part)
        continue;
      Value place = arith::AddIOp::create(b, at, before, token);
      Value score = tensor::ExtractOp::create(
          b, at, part, ValueRange{zero, i[1], place, row});
      sum = sum ? arith::AddFOp::create(b, at, sum, score).getResult() : score;
    }
    linalg::YieldOp::create(b, at, sum);
  };
  return linalg::GenericOp::create(b, loc, dest.getType(), ValueRange{}, dest,
                                   b.getMultiDimIdentityMap(4), parallel, body)
      .getResult(0);
}

Value LayerImporter::positionScores(
    const spec::Attention &attention, StringRef prefix, Value all,
    int64_t width, ArrayRef<std::pair<std::string, int64_t>> projections) {
  const spec::Disentangled &form = *attention.disentangled;
  Location at = loc(form.location);
  int64_t heads = attention.heads, dim = attention.headDim;
  int64_t count = 2 * form.span, columns = heads * dim;
  Value table = weight(at, (prefix + "positions.weight").str(), count, width);
  if (!table)
    return {};
  auto type = RankedTensorType::get({count, width}, builder.getF32Type());
  if (table.getType() != type)
    table = arith::ExtFOp::create(builder, at, type, table);
  auto one = RankedTensorType::get({1, count, width}, builder.getF32Type());
  Value rows = tensor::ExpandShapeOp::create(
      builder, at, one, table, ArrayRef<ReassociationIndices>{{0, 1}, {2}});
  if (form.norm)
    rows = norm(*form.norm, (prefix + "positions_norm.").str(), rows);
  if (!rows)
    return {};
  bool bias = attention.qkvBias;
  Value both;
  if (form.shared &&
      !(both = project(attention, prefix, "qkv", projections, rows, bias)))
    return {};
  // The queries or keys that are made of positions.
  auto made = [&](StringRef name, int64_t first) -> Value {
    Value own = both ? both
                     : project(attention, prefix, name, {{name.str(), columns}},
                               rows, bias);
    return own ? splitHeads(builder, at, own, heads, dim, both ? first : 0)
               : Value();
  };
  Value tokens = asOneSequence(builder, at, all);
  Value toPositions, toContents;
  if (form.contentToPosition) {
    Value keys = made("position_k", columns);
    if (!keys)
      return {};
    toPositions =
        products(builder, at, attention,
                 splitHeads(builder, at, tokens, heads, dim, 0), keys);
  }
  if (form.positionToContent) {
    Value queries = made("position_q", 0);
    if (!queries)
      return {};
    toContents =
        products(builder, at, attention,
                 splitHeads(builder, at, tokens, heads, dim, columns), queries);
  }
  return scoresOf(builder, at, attention, all, toPositions, toContents);
}
