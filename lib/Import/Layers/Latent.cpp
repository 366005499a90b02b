//===- Latent.cpp - Latent attention ----------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Keys and values of every head are linear in one compressed row per token:
// k_h = K_h c, v_h = V_h c. So q_h . k_h = (K_h^T q_h) . c, and the weighted
// sum of values is V_h times that of rows. Queries go into the space of the
// rows, attention runs there with the rows as the one key and value of all
// heads, and its results come out. Nothing is ever expanded: a step of decoding
// reads the cached rows and no more, where expanding them would cost a matrix
// product over the whole cache. A long prompt pays for it with scores as wide
// as a row; in return it computes the same bits as decoding does and kv_b is
// kept once.

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

static Value projectTo(OpBuilder &builder, Location loc, Value input,
                       Value matrix, Value bias, int64_t width) {
  SmallVector<int64_t> shape(typeOf(input).getShape());
  shape.back() = width;
  auto type = RankedTensorType::get(shape, typeOf(input).getElementType());
  return LinearOp::create(builder, loc, type, input, matrix, bias,
                          /*residual=*/Value(), attune::Activation::Identity,
                          /*gated=*/false, /*scale=*/nullptr);
}

static RankedTensorType headsType(Value like, int64_t heads, int64_t width) {
  auto type = typeOf(like);
  int64_t tokens =
      type.getRank() == 4 ? type.getDimSize(2) : type.getDimSize(1);
  return RankedTensorType::get({type.getDimSize(0), heads, tokens, width},
                               type.getElementType());
}

/// Columns `offset` on of each head of [batch, heads, tokens, channels].
static Value columns(OpBuilder &builder, Location loc, Value heads,
                     int64_t offset, int64_t width) {
  auto type = typeOf(heads);
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, heads);
  SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
  offsets[3] = builder.getIndexAttr(offset);
  sizes[3] = builder.getIndexAttr(width);
  return tensor::ExtractSliceOp::create(
      builder, loc, headsType(heads, type.getDimSize(1), width), heads, offsets,
      sizes, strides);
}

/// Channels of `first`, then those of `second`, head by head.
static Value joinColumns(OpBuilder &builder, Location loc, Value first,
                         Value second) {
  int64_t left = typeOf(first).getDimSize(3);
  int64_t right = typeOf(second).getDimSize(3);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, first);
  sizes[3] = builder.getIndexAttr(left + right);
  Value joined = tensor::EmptyOp::create(builder, loc, sizes,
                                         typeOf(first).getElementType());
  SmallVector<OpFoldResult> offsets(4, builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(4, builder.getIndexAttr(1));
  for (Value part : {first, second}) {
    sizes[3] = builder.getIndexAttr(typeOf(part).getDimSize(3));
    joined = tensor::InsertSliceOp::create(builder, loc, part, joined, offsets,
                                           sizes, strides);
    offsets[3] = builder.getIndexAttr(left);
  }
  return joined;
}

Value LayerImporter::perHead(const spec::Attention &attention,
                             const std::string &prefix, bool values) {
  const spec::Latent &latent = *attention.latent;
  Location at = loc(attention.location);
  std::string role = prefix + "kv_b.weight";
  std::vector<spec::WeightSource> sources = spec::resolveWeight(layer, role);
  if (sources.size() != 1 || sources[0].transposed || sources[0].begin != 0 ||
      sources[0].end >= 0) {
    diags.error(layer.location, "weight '" + role +
                                    "' is taken apart by heads; it must be one "
                                    "whole tensor [out, in]");
    return {};
  }
  spec::WeightSource &source = sources[0];
  source.step = latent.nopeDim + attention.valueDim;
  std::string name = symbol.str() + "." + prefix;
  if (values) {
    source.begin = latent.nopeDim;
    source.end = source.step;
    return weights.get(builder, at, name + "v_b.weight",
                       WeightPiece{sources, attention.valueDim}, latent.rank,
                       layer, scope.index, attention.heads);
  }
  // Queries are multiplied by the transpose of the matrix that makes keys.
  source.transposed = true;
  return weights.get(builder, at, name + "k_b.weight",
                     WeightPiece{sources, latent.rank}, latent.nopeDim, layer,
                     scope.index, attention.heads);
}

/// Channels that have positions, if any do.
Value LayerImporter::turnedChannels(const spec::Attention &attention,
                                    Value channels) {
  if (!attention.rope)
    return channels;
  return RotaryOp::create(builder, loc(attention.rope->location),
                          channels.getType(), channels, scope.cos, scope.sin,
                          attention.rope->interleaved
                              ? RotaryPairing::Interleaved
                              : RotaryPairing::Half);
}

Value LayerImporter::queryInput(const spec::Attention &attention,
                                const std::string &prefix, Value input) {
  const spec::Latent &latent = *attention.latent;
  if (!latent.queryRank)
    return input;
  Location at = loc(attention.location);
  Value low = stateProjection(at, prefix + "q_a", input, latent.queryRank,
                              attention.qkvBias);
  return low ? norm(latent.norm, prefix + "q_norm.", low) : Value();
}

/// Queries of all heads in the space of cached rows: [rank | turned].
Value LayerImporter::latentQueries(const spec::Attention &attention,
                                   const std::string &prefix, Value input) {
  const spec::Latent &latent = *attention.latent;
  Location at = loc(attention.location);
  int64_t rows = attention.heads * attention.headDim;
  std::string last = latent.queryRank ? "q_b" : "q";
  Value matrix = weight(at, prefix + last + ".weight", rows,
                        typeOf(input).getShape().back());
  if (!matrix)
    return {};
  Value all = projectTo(builder, at, input, matrix, /*bias=*/Value(), rows);
  Value heads = SplitHeadsOp::create(
      builder, at, headsType(all, attention.heads, attention.headDim), all,
      /*offset=*/0);
  Value plain = columns(builder, at, heads, 0, latent.nopeDim);
  Value turned = columns(builder, at, heads, latent.nopeDim,
                         attention.headDim - latent.nopeDim);
  Value into = perHead(attention, prefix, /*values=*/false);
  if (!into)
    return {};
  plain = HeadLinearOp::create(
      builder, at, headsType(plain, attention.heads, latent.rank), plain, into);
  turned = turnedChannels(attention, turned);
  return joinColumns(builder, at, plain, turned);
}

/// One row per token, as it is cached: [compressed | turned key].
Value LayerImporter::latentRows(const spec::Attention &attention,
                                const std::string &prefix, Value input) {
  const spec::Latent &latent = *attention.latent;
  Location at = loc(attention.location);
  int64_t turnedDim = attention.headDim - latent.nopeDim;
  int64_t width = latent.rank + turnedDim;
  Value matrix = weight(at, prefix + "kv_a.weight", width,
                        typeOf(input).getShape().back());
  Value bias =
      attention.qkvBias ? weight(at, prefix + "kv_a.bias", width, 0) : Value();
  if (!matrix || (attention.qkvBias && !bias))
    return {};
  Value both = projectTo(builder, at, input, matrix, bias, width);
  Value rows = SplitHeadsOp::create(
      builder, at, headsType(both, 1, latent.rank), both, /*offset=*/0);
  rows = norm(latent.norm, prefix + "kv_norm.", rows);
  if (!rows)
    return {};
  Value turned = SplitHeadsOp::create(
      builder, at, headsType(both, 1, turnedDim), both, latent.rank);
  turned = turnedChannels(attention, turned);
  return joinColumns(builder, at, rows, turned);
}

Value LayerImporter::latentAttention(const spec::Attention &attention,
                                     StringRef prefix, Value input,
                                     int64_t width, Value residual) {
  const spec::Latent &latent = *attention.latent;
  Location at = loc(attention.location);
  std::string role = prefix.str();
  AttentionOperands operands;
  Value low = queryInput(attention, role, input);
  if (!low)
    return {};
  operands.query = latentQueries(attention, role, low);
  operands.key = latentRows(attention, role, input);
  if (!operands.query || !operands.key)
    return {};
  if (scope.keyCache)
    operands.key = throughCache(at, operands.key, scope.keyCache);
  operands.value = columns(builder, at, operands.key, 0, latent.rank);
  operands.mask = scope.maskOfAttention();
  operands.lengths = scope.lengths;
  operands.blocks = scope.blocks;
  Value sums =
      latent.index
          ? indexedAttention(attention, role, input, low, operands)
          : buildAttention(builder, at, attention, operands,
                           /*decoding=*/bool(scope.keyCache), scope.maps,
                           /*cross=*/false, scope.index)
                .first;
  if (!sums)
    return {};
  Value outOf = perHead(attention, role, /*values=*/true);
  int64_t merged = attention.heads * attention.valueDim;
  Value matrix = weight(at, role + "o.weight", width, merged);
  Value bias =
      attention.outBias ? weight(at, role + "o.bias", width, 0) : Value();
  if (!outOf || !matrix || (attention.outBias && !bias))
    return {};
  Value heads = HeadLinearOp::create(
      builder, at, headsType(sums, attention.heads, attention.valueDim), sums,
      outOf);
  SmallVector<int64_t> shape(typeOf(input).getShape());
  shape.back() = merged;
  Type element = typeOf(input).getElementType();
  Value joined = MergeHeadsOp::create(
      builder, at, RankedTensorType::get(shape, element), heads);
  shape.back() = width;
  return LinearOp::create(builder, at, RankedTensorType::get(shape, element),
                          joined, matrix, bias, residual,
                          attune::Activation::Identity, /*gated=*/false,
                          /*scale=*/nullptr);
}
