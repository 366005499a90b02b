//===- AttentionBytes.cpp - Keys and values in bytes ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBytes.h"

#include "QuantizedNumbers.h"

#include "Attune/AttuneCachedRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <numeric>

using namespace mlir;

namespace attune {

//===----------------------------------------------------------------------===//
// Chunks
//===----------------------------------------------------------------------===//

// Sizes are powers of two: what a thread copies next is some rows or columns
// further, and swizzled alike.

StageChunks::StageChunks(BlockBuilder &b, const AttentionTile &tile,
                         Value thread, int64_t width)
    : threads(tile.threads()), thread(thread) {
  SwizzledRows swizzle = tile.swizzle();
  int64_t chunk = swizzle.elementsOfChunk();
  each = swizzle.elementsOfRow();
  chunks = each / chunk;
  column = tile.keys * chunks;
  total = tile.columns(width) * column;
  row = b.rem(b.div(thread, chunks), tile.keys);
  Value at = b.rem(thread, chunks), firstColumn = b.div(thread, column);
  channel = b.add(b.mul(firstColumn, each), b.mul(at, chunk));
  place = b.add(b.mul(firstColumn, tile.keys * each),
                swizzle.placeOf(Computed(b, row), Computed(b, at)));
}

StageChunks::Chunk StageChunks::at(BlockBuilder &b, int64_t number) const {
  int64_t i = number * threads;
  int64_t moreColumns = i / column, moreRows = i % column / chunks;
  return {b.add(row, b.index(moreRows)),
          b.add(channel, b.index(moreColumns * each)),
          b.add(place,
                b.index((moreColumns * (column / chunks) + moreRows) * each))};
}

void StageChunks::when(BlockBuilder &b, int64_t number,
                       llvm::function_ref<void(BlockBuilder &)> body) const {
  int64_t rest = total - number * threads;
  if (rest >= threads)
    return body(b);
  b.when(b.less(thread, b.index(rest)), body);
}

//===----------------------------------------------------------------------===//
// Rows
//===----------------------------------------------------------------------===//

ByteRows::ByteRows(BlockBuilder &b, const AttentionTile &tile, Value rows,
                   Value thread, BlockLaunch &launch, Value shared,
                   int64_t tileWidth)
    : tile(tile), rows(rows), thread(thread), shared(shared),
      scales(launch.shared(tile.stages * tile.keys, b.b.getF32Type())),
      width(widthOfRows(cast<MemRefType>(rows.getType()))),
      tileWidth(tileWidth), chunks(b, tile, thread, tileWidth) {
  // A scale ends each row: no more bytes than it has are aligned.
  unit = std::gcd(kRowScaleBytes, alignmentOfRows(rows));
}

/// Elements of 8 bits as integers.
static Value asIntegers(BlockBuilder &b, Value elements) {
  auto type = cast<VectorType>(elements.getType());
  if (type.getElementType().isInteger(8))
    return elements;
  return arith::BitcastOp::create(
      b.b, b.loc, VectorType::get(type.getShape(), b.b.getI8Type()), elements);
}

Value ByteRows::rowOfScale(BlockBuilder &b, int64_t number) const {
  Value row = b.add(thread, b.index(number));
  if (number + tile.threads() <= tile.keys)
    return row;
  // Threads that have none do as the last one does.
  return b.min(row, b.index(tile.keys - 1));
}

ByteRows::Loaded ByteRows::load(BlockBuilder &b, const AttentionPlace &place,
                                Value firstChannel, Value first, Value to,
                                Value last) const {
  Loaded loaded;
  SwizzledRows swizzle = tile.swizzle();
  bool whole = width % (tile.columns(tileWidth) * swizzle.elementsOfRow()) == 0;
  auto zero = arith::ConstantOp::create(
      b.b, b.loc, b.b.getZeroAttr(VectorType::get({unit}, b.b.getI8Type())));
  for (int64_t i = 0; i < chunks.count(); ++i) {
    StageChunks::Chunk chunk = chunks.at(b, i);
    Value key = b.min(b.add(first, chunk.row), last);
    Value channel = b.add(firstChannel, chunk.channel);
    for (int64_t more = 0; more < swizzle.elementsOfChunk(); more += unit) {
      Value here = b.add(channel, b.index(more));
      Value there = b.less(here, b.index(width));
      Value read = asIntegers(b, b.loadAt(rows,
                                          {place.batch, place.kvHead, key,
                                           b.select(there, here, b.index(0))},
                                          unit, unit));
      // What is behind a row's numbers may be no number.
      loaded.bytes.push_back(whole ? read : b.select(there, read, zero));
    }
  }
  for (int64_t i = 0; i < tile.keys; i += tile.threads()) {
    Value key = b.add(first, rowOfScale(b, i));
    Value read = asIntegers(b, b.loadAt(rows,
                                        {place.batch, place.kvHead,
                                         b.min(key, last), b.index(width)},
                                        kRowScaleBytes, std::gcd(unit, width)));
    Value scale = element(b, bitCast(b, read, b.vectorType(1)), 0);
    loaded.scales.push_back(b.select(b.less(key, to), scale, b.f32(0)));
  }
  return loaded;
}

void ByteRows::store(BlockBuilder &b, Value stage, const Loaded &loaded) const {
  bool floats = isa<Float8E4M3FNType>(elementOf(rows));
  QuantizedNumbers numbers(/*bits=*/8, floats, /*zeros=*/false);
  int64_t lanes = tile.swizzle().elementsOfChunk(), each = lanes / unit;
  auto words = VectorType::get({unit}, b.b.getI32Type());
  Value start = b.mul(stage, tile.stageOf(tileWidth));
  for (int64_t i = 0; i < chunks.count(); ++i)
    chunks.when(b, i, [&](BlockBuilder &b) {
      SmallVector<Value> all;
      for (Value bytes :
           ArrayRef(loaded.bytes).slice(size_t(i * each), size_t(each))) {
        Value codes = arith::ExtUIOp::create(b.b, b.loc, words, bytes);
        if (!floats) // integers from -128 on are counted from 0
          codes = arith::XOrIOp::create(
              b.b, b.loc, codes,
              arith::ConstantOp::create(
                  b.b, b.loc, DenseElementsAttr::get(words, APInt(32, 128))));
        Value made = numbers.toFloats(b, codes);
        for (int64_t lane = 0; lane < unit; ++lane)
          all.push_back(element(b, made, lane));
      }
      Value chunk =
          vector::FromElementsOp::create(b.b, b.loc, b.vectorType(lanes), all);
      b.storeAt(chunk, shared, {b.add(start, chunks.at(b, i).place)},
                SwizzledRows::kChunkBytes);
    });
  for (auto [i, scale] : llvm::enumerate(loaded.scales)) {
    Value row = rowOfScale(b, int64_t(i) * tile.threads());
    memref::StoreOp::create(b.b, b.loc, scale, scales,
                            ValueRange{b.add(b.mul(stage, tile.keys), row)});
  }
}

Value ByteRows::scaleOf(BlockBuilder &b, Value stage, Value key) const {
  return memref::LoadOp::create(
      b.b, b.loc, scales, ValueRange{b.add(b.mul(stage, tile.keys), key)});
}

} // namespace attune
