//===- Joint.cpp - Blocks of two kinds of tokens ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "LayerImporter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <array>

using namespace mlir;
using namespace attune;

Value attune::cutAlong(OpBuilder &builder, Location loc, Value value,
                       unsigned dim, OpFoldResult first, OpFoldResult count) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, value);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  offsets[dim] = first;
  sizes[dim] = count;
  return tensor::ExtractSliceOp::create(builder, loc, type, value, offsets,
                                        sizes, strides);
}

Value attune::joinAlong(OpBuilder &builder, Location loc, Value first,
                        Value second, unsigned dim) {
  auto type = cast<RankedTensorType>(first.getType());
  Value mine = builder.createOrFold<tensor::DimOp>(loc, first, dim);
  Value others = builder.createOrFold<tensor::DimOp>(loc, second, dim);
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, first);
  SmallVector<OpFoldResult> offsets(sizes.size(), builder.getIndexAttr(0));
  SmallVector<OpFoldResult> strides(sizes.size(), builder.getIndexAttr(1));
  sizes[dim] = builder.createOrFold<arith::AddIOp>(loc, mine, others);
  Value joined =
      tensor::EmptyOp::create(builder, loc, sizes, type.getElementType());
  sizes[dim] = mine;
  joined = tensor::InsertSliceOp::create(builder, loc, first, joined, offsets,
                                         sizes, strides);
  offsets[dim] = mine;
  sizes[dim] = others;
  return tensor::InsertSliceOp::create(builder, loc, second, joined, offsets,
                                       sizes, strides);
}

Value LayerImporter::throughSharedOut(const spec::Block &block, Value input,
                                      Value fed, int64_t width,
                                      Value residual) {
  Location at = loc(block.ffn->location);
  Value heads = mergedHeads(*block.attention, "attention.", input);
  Value inner = heads ? stateProjection(at, "ffn.up", fed, block.ffn->width,
                                        block.ffn->bias, /*residual=*/Value(),
                                        toActivation(block.ffn->activation))
                      : Value();
  if (!inner)
    return {};
  return stateProjection(at, "out", joinChannels(builder, at, {heads, inner}),
                         width, block.ffn->bias, residual);
}

namespace {
/// The tokens of one kind within a joint block.
struct Kind {
  std::string prefix; ///< of its roles
  OpFoldResult first, count;
  Value x;
  Value columns; ///< its modulation
  AttentionOperands operands;
};
} // namespace

Value LayerImporter::joint(const spec::Block &block, Value input) {
  const spec::Joint &joint = *block.joint;
  const spec::Attention &attention = *block.attention;
  Location at = loc(joint.location), by = loc(block.modulation->location);
  int64_t width = cast<RankedTensorType>(input.getType()).getShape().back();
  Value tokens = tensor::DimOp::create(builder, at, input, 1);
  Value rest = arith::SubIOp::create(builder, at, tokens, scope.firstTokens);

  // Queries, keys and values of both, each from its own norm.
  std::array<Kind, 2> kinds;
  kinds[0].first = builder.getIndexAttr(0);
  kinds[0].count = kinds[1].first = scope.firstTokens;
  kinds[1].count = rest;
  Kind &other = kinds[joint.part], &own = kinds[1 - joint.part];
  other.prefix = "joint.";
  Value ownRead;
  for (Kind &kind : kinds) {
    bool keysOnly = joint.keysOnly && &kind == &other;
    int64_t columns = keysOnly ? 2 : 6;
    if (joint.second && &kind == &own)
      columns = 9;
    kind.x = cutAlong(builder, at, input, 1, kind.first, kind.count);
    kind.columns = modulation(*block.modulation, kind.prefix + "modulation.",
                              columns * width, scope.condition);
    Value read = norm(block.norm, kind.prefix + "norm1.", kind.x);
    if (!kind.columns || !read)
      return {};
    if (&kind == &own)
      ownRead = read;
    read = shiftedBy(by, read, kind.columns, /*number=*/0);
    std::string prefix = kind.prefix + "attention.";
    if (!(keysOnly ? keysAndValues(attention, prefix, read, kind.operands)
                   : projections(attention, prefix, read, kind.operands) &&
                         normBoth(attention, prefix, kind.operands)))
      return {};
  }

  AttentionOperands all;
  auto join = [&](Value AttentionOperands::*part) {
    Value first = kinds[0].operands.*part, second = kinds[1].operands.*part;
    all.*part = first && second ? joinAlong(builder, at, first, second, 2)
                                : (first ? first : second);
  };
  join(&AttentionOperands::query);
  join(&AttentionOperands::key);
  join(&AttentionOperands::value);
  turn(attention, all);
  Value heads = buildAttention(builder, at, attention, all, /*decoding=*/false,
                               scope.maps, /*cross=*/false, scope.index)
                    .first;
  Value merged = mergeHeads(attention, heads);

  // Each goes on alone.
  for (Kind &kind : kinds) {
    if (joint.keysOnly && &kind == &other)
      continue;
    Value mine = joint.keysOnly
                     ? merged
                     : cutAlong(builder, at, merged, 1, kind.first, kind.count);
    Value attended = joinHeads(attention, kind.prefix + "attention.", kind.x,
                               mine, width, /*residual=*/Value(), /*scale=*/1);
    if (!attended)
      return {};
    kind.x = gatedBy(by, kind.x, attended, kind.columns, /*number=*/0);
    if (joint.second && &kind == &own) {
      Value beside =
          alone(attention, "attention2.",
                shiftedBy(by, ownRead, kind.columns, /*number=*/2), width);
      if (!beside)
        return {};
      kind.x = gatedBy(by, kind.x, beside, kind.columns, /*number=*/2);
    }
    Value read = norm(block.norm, kind.prefix + "norm2.", kind.x);
    if (!read)
      return {};
    kind.x = modulated(by, kind.x, read, kind.columns, /*number=*/1,
                       [&](Value changed) {
                         return ffn(*block.ffn, kind.prefix + "ffn.", changed,
                                    width, /*residual=*/Value());
                       });
    if (!kind.x)
      return {};
  }
  return joinAlong(builder, at, kinds[0].x, kinds[1].x, 1);
}

/// Attention of some tokens alone, without positions.
Value LayerImporter::alone(const spec::Attention &attention,
                           const std::string &prefix, Value input,
                           int64_t width) {
  AttentionOperands operands;
  if (!projections(attention, prefix, input, operands) ||
      !normBoth(attention, prefix, operands))
    return {};
  Value heads = buildAttention(builder, loc(attention.location), attention,
                               operands, /*decoding=*/false)
                    .first;
  return joinHeads(attention, prefix, input, mergeHeads(attention, heads),
                   width, /*residual=*/Value(), /*scale=*/1);
}
