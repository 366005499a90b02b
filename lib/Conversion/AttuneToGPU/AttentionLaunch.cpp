//===- AttentionLaunch.cpp - Which kernels an attention takes -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {

AttentionSizes::AttentionSizes(BlockBuilder &b, AttentionIntoOp op) {
  auto sizeOf = [](Value heads, int64_t dim) {
    return cast<MemRefType>(heads.getType()).getDimSize(dim);
  };
  heads = sizeOf(op.getQuery(), 1);
  kvHeads = sizeOf(op.getKey(), 1);
  group = heads / kvHeads;
  width = sizeOf(op.getQuery(), 3);
  valueWidth = sizeOf(op.getValue(), 3);
  batches = b.sizeOf(op.getQuery(), 0);
  queries = b.sizeOf(op.getQuery(), 2);
  keys = b.sizeOf(op.getKey(), 2);
  rows = b.mul(queries, group);
}

LogicalResult lowerAttention(AttentionIntoOp op, int64_t multiprocessors) {
  OpBuilder builder(op);
  BlockBuilder b(builder, op.getLoc());
  AttentionSizes sizes(b, op);
  if (sizes.width > kWidestHead)
    return op.emitOpError("has heads wider than ") << kWidestHead;
  auto tileFor = [&](bool fewRows) {
    return chooseAttentionTile(bytesOf(op.getQuery()), sizes.width,
                               sizes.valueWidth, fewRows);
  };
  AttentionTile large = tileFor(false);
  if (auto blocks = op.getBlockSizes()) {
    auto tile =
        chooseTileOfBlocks(large.elementBytes, sizes.width, sizes.valueWidth,
                           sizes.group, (*blocks)[0], (*blocks)[1]);
    if (!tile || op.getSplitKeys() ||
        (sizes.group != 1 &&
         cast<MemRefType>(op.getBlocks().getType()).getDimSize(1) != 1))
      return op.emitOpError("has a mask of blocks in which no tile lies");
    large = *tile;
  }
  auto whole = [&](BlockBuilder &b) {
    emitAttention(b, op, sizes, large, nullptr);
  };
  if (!op.getSplitKeys()) {
    whole(b);
    op.erase();
    return success();
  }
  // Two blocks for each multiprocessor, as long as there are keys for them.
  Value groups = b.max(b.mul(sizes.batches, sizes.kvHeads), b.index(1));
  Value wanted = b.div(
      b.add(b.sub(groups, b.index(1)), b.index(2 * multiprocessors)), groups);
  Value most = b.max(b.ceilDiv(sizes.keys, kLeastKeysOfPart), b.index(1));
  AttentionParts parts;
  parts.count = b.min(b.min(wanted, most), b.index(kMostParts));
  // As many rows as take this way.
  int64_t few = std::max<int64_t>(1, kWarpRows / sizes.group);
  Value states = b.mul(b.mul(sizes.batches, sizes.heads), parts.count);
  states = b.mul(states, b.min(sizes.queries, b.index(few)));
  auto memory = [&](int64_t columns) -> Value {
    auto type =
        MemRefType::get({ShapedType::kDynamic, columns}, b.b.getF32Type());
    return memref::AllocOp::create(b.b, b.loc, type, ValueRange{states});
  };
  parts.sums = memory(sizes.valueWidth);
  parts.states = memory(2);
  chooseBelow(
      b, sizes.queries, few + 1,
      [&](BlockBuilder &b) {
        emitAttention(b, op, sizes, tileFor(true), &parts);
        emitMerge(b, op, sizes, parts);
      },
      whole);
  op.erase();
  return success();
}

} // namespace attune
