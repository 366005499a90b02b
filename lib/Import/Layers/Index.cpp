//===- Index.cpp - Latent attention to chosen keys --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// DeepSeek-V3.2: small heads score every key for a query, and the attention is
// to the rows of the best of them alone. Some queries are taken after the
// others, so that a prompt does no more for each than a step of decoding: they
// score, they choose, and each copies the chosen rows, and attends to the copy
// with all heads. Where there are no more keys than would be chosen, nothing
// is: attention is what it is without an index.

#include "LayerImporter.h"

#include "Attune/AttuneIndexOps.h"
#include "attune/Support/Elements.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using namespace attune;

/// Queries that are scored together: a key is read once for all of them.
static constexpr int64_t kQueries = 16;

/// The rows of a query's places [batch, queries, top]: [batch, 1, top, width].
static Value gather(OpBuilder &builder, Location loc, Value rows, Value places,
                    Value query) {
  Elements e{builder, loc};
  auto type = typeOf(rows);
  Value none = e.index(0);
  return e.generate({getAsOpFoldResult(e.dim(rows, 0)), builder.getIndexAttr(1),
                     builder.getIndexAttr(typeOf(places).getDimSize(2)),
                     builder.getIndexAttr(type.getDimSize(3))},
                    type.getElementType(), [&](ValueRange at) {
                      Value place = arith::IndexCastOp::create(
                          builder, loc, builder.getIndexType(),
                          e.extract(places, {at[0], query, at[2]}));
                      return e.extract(rows, {at[0], none, place, at[3]});
                    });
}

/// Queries or keys of the index with their positions.
static Value turnedFirst(OpBuilder &builder, Location loc,
                         const spec::KeyIndex &index, const LayerScope &scope,
                         Value heads) {
  return RotaryOp::create(
      builder, loc, heads.getType(), heads, scope.cos, scope.sin,
      index.interleaved ? RotaryPairing::Interleaved : RotaryPairing::Half);
}

bool LayerImporter::indexOperands(const spec::Attention &attention,
                                  const std::string &prefix, Value input,
                                  Value low, IndexOperands &into) {
  const spec::KeyIndex &index = *attention.latent->index;
  Location at = loc(index.location);
  std::string role = prefix + "index.";
  Value asked = stateProjection(at, role + "q", low,
                                index.heads * index.headDim, /*bias=*/false);
  Value own =
      stateProjection(at, role + "k", input, index.headDim, /*bias=*/false);
  into.shares =
      stateProjection(at, role + "shares", input, index.heads, /*bias=*/false);
  if (!asked || !own || !into.shares)
    return false;
  Value queries = splitHeads(builder, at, asked, index.heads, index.headDim, 0);
  Value keys = splitHeads(builder, at, own, 1, index.headDim, 0);
  keys = norm(index.norm, role + "k_norm.", keys);
  if (!keys)
    return false;
  into.queries = turnedFirst(builder, at, index, scope, queries);
  into.keys = turnedFirst(builder, at, index, scope, keys);
  if (scope.keyCache)
    into.keys = throughCache(at, into.keys, scope.valueCache);
  return true;
}

/// Part of a tensor: `count` from `first` on along `dim`.
static Value part(OpBuilder &builder, Location loc, Value of, int64_t dim,
                  OpFoldResult first, OpFoldResult count) {
  auto type = typeOf(of);
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, of);
  SmallVector<OpFoldResult> offsets(shape.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(shape.size(), builder.getIndexAttr(1));
  offsets[dim] = first;
  sizes[dim] = count;
  shape[dim] =
      getConstantIntValue(count).value_or(int64_t(ShapedType::kDynamic));
  return tensor::ExtractSliceOp::create(builder, loc, type.clone(shape), of,
                                        offsets, sizes, strides);
}

/// The choice of `count` queries from `first` on: [batch, count, top] places
/// among all keys, and how many of them count.
static ChooseKeysOp chooseKeys(OpBuilder &builder, Location loc,
                               const spec::KeyIndex &index,
                               const IndexOperands &from, Value first,
                               Value count) {
  Elements e{builder, loc};
  // The keys up to that of the last of these queries.
  Value past, reach;
  if (from.causal) {
    Value before = e.sub(e.dim(from.keys, 2), e.dim(from.queries, 2));
    past = e.add(before, first);
    reach = e.add(past, count);
  }
  const int64_t dynamic = ShapedType::kDynamic;
  int64_t batch = typeOf(from.queries).getDimSize(0);
  double scale = 1 / std::sqrt(double(index.heads * index.headDim));
  Value scores = IndexScoresOp::create(
      builder, loc,
      RankedTensorType::get({batch, dynamic, dynamic}, builder.getF32Type()),
      part(builder, loc, from.queries, 2, first, count), from.keys,
      part(builder, loc, from.shares, 1, first, count), reach,
      builder.getF32FloatAttr(float(scale)));
  Type i64 = builder.getI64Type();
  return ChooseKeysOp::create(
      builder, loc, RankedTensorType::get({batch, dynamic, index.top}, i64),
      RankedTensorType::get({batch, dynamic}, i64), scores, from.mask,
      from.lengths, past, index.top);
}

/// Attention of one query after the other to the keys that the index chooses:
/// of `type`, whose sizes are `sizes`.
Value LayerImporter::chosenAttention(const spec::Attention &attention,
                                     const IndexOperands &from,
                                     const AttentionOperands &operands,
                                     RankedTensorType type,
                                     ArrayRef<OpFoldResult> sizes) {
  const spec::KeyIndex &index = *attention.latent->index;
  Location at = loc(index.location);
  Elements e{builder, at};
  OpFoldResult zero = builder.getIndexAttr(0), one = builder.getIndexAttr(1);
  Value queries = e.dim(operands.query, 2);
  Value all =
      tensor::EmptyOp::create(builder, at, sizes, type.getElementType());
  OpBuilder::InsertionGuard guard(builder);
  // Whole stretches, of which the last one begins before the end of the one in
  // front of it: buffers have one size.
  Value count = arith::MinSIOp::create(builder, at, queries, e.index(kQueries));
  auto some = scf::ForOp::create(builder, at, e.index(0), queries, count, all);
  builder.setInsertionPointToEnd(some.getBody());
  Value fresh = some.getInductionVar();
  Value first =
      arith::MinSIOp::create(builder, at, fresh, e.sub(queries, count));
  ChooseKeysOp choice = chooseKeys(builder, at, index, from, first, count);
  auto each = scf::ForOp::create(builder, at, e.sub(fresh, first), count,
                                 e.index(1), some.getRegionIterArg(0));
  builder.setInsertionPointToEnd(some.getBody());
  scf::YieldOp::create(builder, at, each.getResult(0));
  builder.setInsertionPointToEnd(each.getBody());
  Value number = e.add(first, each.getInductionVar());
  AttentionOperands chosen;
  chosen.query = part(builder, at, operands.query, 2, number, one);
  chosen.key = gather(builder, at, operands.key, choice.getPlaces(),
                      each.getInductionVar());
  chosen.value = part(builder, at, chosen.key, 3, zero,
                      builder.getIndexAttr(attention.latent->rank));
  chosen.lengths = e.generate(
      {getAsOpFoldResult(e.dim(operands.query, 0))}, builder.getI64Type(),
      [&](ValueRange i) {
        return e.extract(choice.getCounts(), {i[0], each.getInductionVar()});
      });
  Value sums =
      buildAttention(builder, at, attention, chosen, /*decoding=*/true).first;
  SmallVector<OpFoldResult> offsets(4, zero), strides(4, one), own(sizes);
  offsets[2] = number;
  own[2] = one;
  Value next = tensor::InsertSliceOp::create(
      builder, at, sums, each.getRegionIterArg(0), offsets, own, strides);
  scf::YieldOp::create(builder, at, next);
  return some.getResult(0);
}

Value LayerImporter::indexedAttention(const spec::Attention &attention,
                                      const std::string &prefix, Value input,
                                      Value low,
                                      const AttentionOperands &operands) {
  const spec::KeyIndex &index = *attention.latent->index;
  Location at = loc(index.location);
  bool decoding = bool(scope.keyCache);
  IndexOperands from;
  if (!indexOperands(attention, prefix, input, low, from))
    return {};
  from.mask = operands.mask;
  from.lengths = operands.lengths;
  // A new token of each of several sequences sees all of its own.
  from.causal =
      attention.causal != spec::Causal::None && !(decoding && operands.lengths);
  Elements e{builder, at};
  auto query = typeOf(operands.query);
  SmallVector<int64_t> shape(query.getShape());
  shape[3] = attention.latent->rank;
  auto type = query.clone(shape);
  SmallVector<OpFoldResult> sizes =
      tensor::getMixedSizes(builder, at, operands.query);
  sizes[3] = builder.getIndexAttr(shape[3]);
  Value few = e.atMost(e.dim(operands.key, 2), e.index(index.top));
  auto either = scf::IfOp::create(builder, at, type, few, /*addThenBlock=*/true,
                                  /*addElseBlock=*/true);
  {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToEnd(either.thenBlock());
    scf::YieldOp::create(
        builder, at,
        buildAttention(builder, at, attention, operands, decoding).first);
    builder.setInsertionPointToEnd(either.elseBlock());
    scf::YieldOp::create(
        builder, at, chosenAttention(attention, from, operands, type, sizes));
  }
  // Later ops ask for sizes, which branches do not tell.
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(builder, at, type, either.getResult(0),
                                        offsets, sizes, strides);
}
