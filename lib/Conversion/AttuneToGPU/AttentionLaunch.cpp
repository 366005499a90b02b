//===- AttentionLaunch.cpp - Which kernels an attention takes -------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "Attune/AttuneCachedRows.h"
#include "attune/Conversion/Schedule.h"
#include "attune/TargetInfo/GpuSchedule.h"

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
  valueWidth = widthOfRows(cast<MemRefType>(op.getValue().getType()));
  batches = b.sizeOf(op.getQuery(), 0);
  queries = b.sizeOf(op.getQuery(), 2);
  keys = b.sizeOf(op.getKey(), 2);
  rows = b.mul(queries, group);
}

/// Warpgroups take products of one type and rows at multiples of 16 bytes, or
/// of four where these are in bytes.
static AttentionShape shapeOf(AttentionIntoOp op, const AttentionSizes &sizes,
                              bool warpgroups) {
  auto fits = [&](Value heads) {
    int64_t unit = isInBytes(elementOf(heads)) ? kRowScaleBytes : 16;
    return alignmentOfRows(heads) % unit == 0;
  };
  AttentionShape shape = {bytesOf(op.getQuery()), sizes.width, sizes.valueWidth,
                          sizes.group};
  if (auto blocks = op.getBlockSizes()) {
    shape.blockRows = (*blocks)[0];
    shape.blockKeys = (*blocks)[1];
  }
  shape.scaled = isInBytes(elementOf(op.getKey()));
  shape.warpgroups = warpgroups && shape.elementBytes == 2 &&
                     elementOf(op.getDest()) == elementOf(op.getQuery()) &&
                     fits(op.getQuery()) && fits(op.getKey()) &&
                     fits(op.getValue());
  shape.readsScores = ScoreModifiers::of(op).readsScores();
  return shape;
}

LogicalResult lowerAttention(AttentionIntoOp op, int64_t multiprocessors,
                             bool warpgroups, bool tf32) {
  OpBuilder builder(op);
  BlockBuilder b(builder, op.getLoc());
  AttentionSizes sizes(b, op);
  if (sizes.width > kWidestHead)
    return op.emitOpError("has heads wider than ") << kWidestHead;
  AttentionShape shape = shapeOf(op, sizes, warpgroups);
  if (!chooseAttentionTile(shape) ||
      (op.getBlocks() &&
       (op.getSplitKeys() ||
        (sizes.group != 1 &&
         cast<MemRefType>(op.getBlocks().getType()).getDimSize(1) != 1))))
    return op.emitOpError("has a mask of blocks in which no tile lies");
  auto choice = scheduleAttention(attentionNumbers(op), shape);
  if (auto *refused = std::get_if<TileRefusal>(&choice))
    return op.emitError() << refused->why;
  const auto &tiles = std::get<AttentionTiles>(choice);
  auto whole = [&](BlockBuilder &b) {
    auto warps = [&](BlockBuilder &b) {
      emitAttention(b, op, sizes, tiles.warps, nullptr, tf32);
    };
    if (!tiles.groups)
      return warps(b);
    chooseBelow(b, b.min(sizes.rows, sizes.keys), kFewestWarpgroupRows, warps,
                [&](BlockBuilder &b) {
                  emitWarpgroupAttention(b, op, sizes, *tiles.groups);
                });
  };
  if (!op.getSplitKeys()) {
    whole(b);
    op.erase();
    return success();
  }
  // Two blocks for each multiprocessor, as long as there are keys for them.
  Value heads = b.max(b.mul(sizes.batches, sizes.kvHeads), b.index(1));
  Value wanted = b.div(
      b.add(b.sub(heads, b.index(1)), b.index(2 * multiprocessors)), heads);
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
        AttentionTile few = chooseAttentionTile(shape.elementBytes, shape.width,
                                                shape.valueWidth,
                                                /*fewRows=*/true, shape.scaled);
        emitAttention(b, op, sizes, few, &parts, tf32);
        emitMerge(b, op, sizes, parts);
      },
      whole);
  op.erase();
  return success();
}

} // namespace attune
