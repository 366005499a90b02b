//===- Channels.cpp - Vectors of channels that walk the tokens --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Channels.h"

using namespace mlir;

namespace attune {

Value emptyLike(OpBuilder &b, Location loc, Value result,
                ArrayRef<OpFoldResult> sizes) {
  auto type = cast<RankedTensorType>(result.getType());
  Value empty = tensor::EmptyOp::create(b, loc, sizes, type.getElementType());
  return empty.getType() == type
             ? empty
             : tensor::CastOp::create(b, loc, type, empty).getResult();
}

Value ChannelTile::perLane(KernelBuilder &k, int64_t size,
                           function_ref<Value(KernelBuilder &, Value)> read) {
  int64_t lanes = channels.lanes;
  auto runOf = [&](Value channel) -> Value {
    return size == 1
               ? channel
               : arith::DivUIOp::create(k.b, k.loc, channel, k.index(size));
  };
  if (size % lanes == 0)
    return k.splat(read(k, runOf(column)), lanes);
  Value lastChannel = k.index(channels.count - 1);
  Value all = k.splat(0.0, lanes);
  for (int64_t lane = 0; lane < lanes; ++lane) {
    Value at = k.min(k.add(column, k.index(lane)), lastChannel);
    all = vector::InsertOp::create(k.b, k.loc, read(k, runOf(at)), all, lane);
  }
  return all;
}

Value ChannelTile::ofRuns(KernelBuilder &k, int64_t size, Value from,
                          Value token) {
  return perLane(k, size, [&](KernelBuilder &k, Value at) {
    return k.loadScalar(from, {batch, token, at});
  });
}

Value ChannelTile::ofState(KernelBuilder &k, int64_t size, int64_t states,
                           Value from, Value token, Value state) {
  int64_t width = cast<RankedTensorType>(from.getType()).getDimSize(2);
  if (width == states) // all channels are one run
    return k.splat(k.loadScalar(from, {batch, token, state}), channels.lanes);
  return perLane(k, size, [&](KernelBuilder &k, Value at) {
    Value place = k.add(k.mul(at, states), state);
    return k.loadScalar(from, {batch, token, place});
  });
}

KernelBuilder::Values forChannelTiles(
    OpBuilder &b, Location loc, const Channels &channels, Value input,
    ValueRange results, Value last,
    function_ref<KernelBuilder::Values(KernelBuilder &, const ChannelTile &,
                                       ValueRange tiles)>
        compute) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(b, loc, input);
  OpFoldResult states =
      b.getIndexAttr(cast<RankedTensorType>(last.getType()).getDimSize(1));
  KernelBuilder::Values dests;
  for (Value result : results)
    dests.push_back(emptyLike(b, loc, result, sizes));
  dests.push_back(emptyLike(b, loc, last, {sizes[0], states, sizes[2]}));
  KernelBuilder outer(b, loc);
  return outer.forallTiles(
      {sizes[0], channels.tiles(b)}, dests,
      [&](KernelBuilder &k, ValueRange ivs) {
        Value column = k.mul(ivs[1], channels.lanes),
              valid = channels.valid(k, column);
        OpFoldResult unit = k.b.getIndexAttr(1),
                     width = valid ? OpFoldResult(valid)
                                   : k.b.getIndexAttr(channels.lanes);
        KernelBuilder::Values at = {ivs[0], k.index(0), column};
        SmallVector<KernelBuilder::Tile> tiles(results.size(),
                                               {at, {unit, sizes[1], width}});
        tiles.push_back({at, {unit, states, width}});
        return tiles;
      },
      [&](KernelBuilder &k, ValueRange ivs, ValueRange tiles) {
        Value column = k.mul(ivs[1], channels.lanes);
        return compute(k, {channels, ivs[0], column, channels.valid(k, column)},
                       tiles);
      });
}

Value forStates(KernelBuilder &k, int64_t states, int64_t lanes,
                function_ref<Value(KernelBuilder &, Value state)> make) {
  Value scratch = tensor::EmptyOp::create(
      k.b, k.loc, ArrayRef<int64_t>{states, lanes}, k.b.getF32Type());
  return k.forLoop(k.index(0), k.index(states), 1, scratch,
                   [&](KernelBuilder &k, Value state, ValueRange carried) {
                     return KernelBuilder::Values{k.store(
                         make(k, state), carried[0], {state, k.index(0)})};
                   })[0];
}

Value copyStates(KernelBuilder &k, int64_t states, ChannelTile &tile,
                 Value scratch, Value last) {
  Value zero = k.index(0);
  return k.forLoop(zero, k.index(states), 1, last,
                   [&](KernelBuilder &k, Value state, ValueRange carried) {
                     Value kept =
                         k.load(scratch, {state, zero}, tile.channels.lanes);
                     return KernelBuilder::Values{k.store(
                         kept, carried[0], {zero, state, zero}, tile.valid)};
                   })[0];
}

} // namespace attune
