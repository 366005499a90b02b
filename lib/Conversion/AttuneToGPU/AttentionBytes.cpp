//===- AttentionBytes.cpp - Keys and values in bytes ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "AttentionBytes.h"

#include "QuantizedNumbers.h"
#include "Warpgroups.h"

#include "Attune/AttuneCachedRows.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>
#include <numeric>

using namespace mlir;

namespace attune {

double unitOfValues(AttentionIntoOp op) {
  Type element = elementOf(op.getValue());
  bool half = elementOf(op.getQuery()).isF16() && isInBytes(element);
  return half ? std::exp2(std::floor(std::log2(largestInBytes(element)))) : 1;
}

Value inUnits(BlockBuilder &b, AttentionIntoOp op, Value sums) {
  double unit = unitOfValues(op);
  if (unit == 1)
    return sums;
  return arith::MulFOp::create(b.b, b.loc, sums, b.splat(1 / unit, 2));
}

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
                   int64_t tileWidth, double unitOfScales)
    : tile(tile), rows(rows), thread(thread), shared(shared),
      scales(launch.shared(tile.stages * tile.keys, b.b.getF32Type())),
      width(widthOfRows(cast<MemRefType>(rows.getType()))),
      tileWidth(tileWidth), unitOfScales(unitOfScales),
      chunks(b, tile, thread, tileWidth) {
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

/// The scale behind the numbers of row `key` times `unit`, or 0 from key `to`
/// on.
static Value loadScaleOf(BlockBuilder &b, const AttentionPlace &place,
                         Value rows, Value key, Value to, Value last,
                         double unit) {
  int64_t width = widthOfRows(cast<MemRefType>(rows.getType()));
  int64_t align =
      std::gcd(std::gcd(kRowScaleBytes, width), alignmentOfRows(rows));
  Value read = asIntegers(
      b, b.loadAt(rows,
                  {place.batch, place.kvHead, b.min(key, last), b.index(width)},
                  kRowScaleBytes, align));
  Value scale = element(b, bitCast(b, read, b.vectorType(1)), 0);
  if (unit != 1)
    scale = arith::MulFOp::create(b.b, b.loc, scale, b.f32(unit));
  return b.select(b.less(key, to), scale, b.f32(0));
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
    loaded.scales.push_back(
        loadScaleOf(b, place, rows, key, to, last, unitOfScales));
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

//===----------------------------------------------------------------------===//
// Boxes
//===----------------------------------------------------------------------===//

static constexpr int64_t kGroup = 128; ///< threads
static constexpr int64_t kChunksOfPiece = 2;
static constexpr int64_t kWordsOfChunk = 2, kNumbersOfWord = 4,
                         kNumbersOfChunk = kWordsOfChunk * kNumbersOfWord;

ByteBoxes::ByteBoxes(BlockBuilder &b, const WarpgroupAttentionTile &tile,
                     Value rows, Type type, Value member)
    : tile(tile), rows(rows), member(member), half(type.isF16()),
      floats(isa<Float8E4M3FNType>(elementOf(rows))),
      width(widthOfRows(cast<MemRefType>(rows.getType()))) {}

SmallVector<ByteBoxes::Share> ByteBoxes::shares() const {
  constexpr int64_t chunksOfBox =
      WarpgroupAttentionTile::kBoxChannels / kNumbersOfChunk;
  SmallVector<Share> shares;
  for (int64_t box = 0; box < tile.boxes(width); ++box) {
    int64_t there = width / kNumbersOfChunk - box * chunksOfBox;
    // Products read two at a time.
    int64_t chunks = 2;
    while (chunks < chunksOfBox &&
           (chunks < there || tile.keys % (kGroup / chunks) != 0))
      chunks *= 2;
    int64_t step = kGroup / chunks, rows = kChunksOfPiece * step;
    for (int64_t first = 0; first < tile.keys; first += rows)
      shares.push_back(
          {box, chunks, step, first, std::min(first + rows, tile.keys)});
  }
  return shares;
}

int64_t ByteBoxes::pieces() const { return int64_t(shares().size()); }

SmallVector<Value> ByteBoxes::load(BlockBuilder &b, const AttentionPlace &place,
                                   Value first, int64_t piece) const {
  Share share = shares()[size_t(piece)];
  auto word = VectorType::get({1}, b.b.getI32Type());
  Value zero = i32(b, 0), last = place.lastKey(b);
  Value channel =
      b.add(b.mul(b.rem(member, share.chunks), kNumbersOfChunk),
            b.index(share.box * WarpgroupAttentionTile::kBoxChannels));
  bool whole = share.box * WarpgroupAttentionTile::kBoxChannels +
                   share.chunks * kNumbersOfChunk <=
               width;
  // What is behind a row's numbers may be no number.
  Value there = b.less(channel, b.index(width));
  if (!whole)
    channel = b.select(there, channel, b.index(0));
  Value line = b.add(first, b.div(member, share.chunks));
  SmallVector<Value> words;
  for (int64_t row = share.first; row < share.end; row += share.step) {
    Value key = b.min(b.add(line, b.index(row)), last);
    for (int64_t i = 0; i < kWordsOfChunk; ++i) {
      Value bytes =
          asIntegers(b, b.loadAt(rows,
                                 {place.batch, place.kvHead, key,
                                  b.add(channel, b.index(i * kNumbersOfWord))},
                                 kNumbersOfWord, kNumbersOfWord));
      Value read = element(b, bitCast(b, bytes, word), 0);
      words.push_back(whole ? read : b.select(there, read, zero));
    }
  }
  return words;
}

void ByteBoxes::store(BlockBuilder &b, Value stage, int64_t piece,
                      ArrayRef<Value> words) const {
  QuantizedNumbers numbers(/*bits=*/8, floats, /*zeros=*/false);
  Share share = shares()[size_t(piece)];
  int64_t start = share.box * tile.keys * WarpgroupAttentionTile::kBoxRowBytes;
  auto pairs = VectorType::get({2 * kWordsOfChunk}, b.b.getI32Type());
  auto one = VectorType::get({1}, b.b.getI32Type());
  // The other rows are the same in their atoms.
  Value to = chunkAt(b, b.add(stage, b.index(start)),
                     b.div(member, share.chunks), b.rem(member, share.chunks));
  for (int64_t row = share.first; row < share.end; row += share.step) {
    SmallVector<Value> made;
    for (Value word : words.take_front(kWordsOfChunk)) {
      if (!floats) // integers from -128 on are counted from 0
        word = arith::XOrIOp::create(b.b, b.loc, word, i32(b, 0x80808080));
      for (int64_t column = 0; column < kNumbersOfWord; column += 2) {
        Value two = numbers.toPair(b, word, Computed(b, b.index(column)), half);
        made.push_back(element(b, bitCast(b, two, one), 0));
      }
    }
    words = words.drop_front(kWordsOfChunk);
    storeChunk(b, vector::FromElementsOp::create(b.b, b.loc, pairs, made),
               b.add(to, b.index(row * WarpgroupAttentionTile::kBoxRowBytes)));
  }
}

Value ByteBoxes::keyOfScale(BlockBuilder &b) const {
  return tile.keys < kGroup ? b.min(member, b.index(tile.keys - 1)) : member;
}
Value ByteBoxes::loadScale(BlockBuilder &b, const AttentionPlace &place,
                           Value first, double unit) const {
  return loadScaleOf(b, place, rows, b.add(first, keyOfScale(b)), place.end,
                     place.lastKey(b), unit);
}

} // namespace attune
