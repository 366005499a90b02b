//===- AttentionKernel.cpp - Attention on tensor cores ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block computes some queries of all heads that share keys. Each warp has 16
// of its rows, and the state of these rows stays in the registers of its lanes:
// queries, scores, maxima, sums and results. Keys and values pass through a
// ring in shared memory; while one step works on a tile, copies of the next are
// under way. Tiles that causality, a window, a length or a mask of blocks hides
// from all rows are not visited or not read.
//
// The two products have the same form: a lane's sums of scores are, pair by
// pair, the probabilities that it needs. Every f32 number is split into two
// tf32 terms of 22 bits between them. Three of the four products are added, the
// smallest first; the fourth is as small as the rounding of f32. With the
// option tf32 one product of rounded numbers takes their place. Numbers of 16
// bits take one product, if the result has the same 16 bits; for other results
// the probabilities are split into terms of 16 bits.
//
// Keys and values in bytes become numbers of the queries' type on their way to
// shared memory, exactly: their bytes are loaded before a step's products and
// stored behind them. Scores are multiplied by the scales of their keys, and
// weights by those of their values.
//
// Heads wider than 128 take several blocks, each for some channels of the
// values.
//
// With few queries the keys are split (split-KV): a block of one warp leaves
// the state of its part in memory.

#include "Attention.h"
#include "AttentionBytes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>

using namespace mlir;

namespace attune {

namespace {

/// Vectors of tf32 in place of one of f32, the largest first: two that add up
/// to it, or one that is rounded.
using Cut = SmallVector<Value, 2>;
/// The same as fragments.
using CutRegisters = SmallVector<Registers, 2>;

/// One kernel; the members are what its parts share.
class AttentionBlock {
public:
  AttentionBlock(AttentionIntoOp op, const AttentionSizes &sizes,
                 KernelBuilder &k, const AttentionTile &tile,
                 const AttentionParts *parts, bool tf32)
      : op(op), sizes(sizes), tile(tile), parts(parts), b(k),
        wide(tile.elementBytes == 4), rounds(tf32),
        type(elementOf(op.getQuery())) {}

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    Value tiles = b.ceilDiv(sizes.rows, tile.rows());
    Value blocks = b.mul(b.mul(sizes.batches, b.index(sizes.kvHeads)), tiles);
    blocks = b.mul(blocks, b.index(valueBlocks()));
    if (parts)
      blocks = b.mul(blocks, parts->count);
    BlockLaunch launch(b, blocks, tile.threads());
    thread = launch.thread;
    sharedKeys = launch.shared(tile.stages * tile.stageOf(tile.width), type);
    sharedValues =
        launch.shared(tile.stages * tile.stageOf(tile.valueWidth), type);
    if (tile.scaled) {
      byteKeys.emplace(b, tile, op.getKey(), thread, launch, sharedKeys,
                       tile.width);
      byteValues.emplace(b, tile, op.getValue(), thread, launch, sharedValues,
                         tile.valueWidth, unitOfValues(op));
    }
    enterTile(launch.block, tiles);

    if (tile.holdsQuery)
      for (int64_t step = 0; step < steps(); ++step)
        heldQuery.push_back(loadQuery(b, step));
    Value count = place.countSteps(b);
    for (int64_t i = 0; i < tile.stages - 1; ++i) {
      b.when(b.less(b.index(i), count),
             [&](BlockBuilder &b) { copyStage(b, b.index(i), b.index(i)); });
      commitCopies(b);
    }
    KernelBuilder::Values states(valueTiles(), zeroSum(b));
    states.append(2, b.f32(-INFINITY));
    states.append(2, b.f32(0));
    states =
        b.forLoop(b.index(0), count, 1, states,
                  [&](KernelBuilder &k, Value i, ValueRange carried) {
                    BlockBuilder b(k);
                    // Waits for the next stage, and until all threads are done
                    // with the one before, which is refilled.
                    awaitCopies(b, tile.stages - 2);
                    Value ahead = b.add(i, b.index(tile.stages - 1));
                    Value first = b.add(place.begin, b.mul(i, tile.keys));
                    Value stage = b.rem(i, tile.stages);
                    if (tile.scaled) {
                      Step next = loadStep(b, ahead);
                      auto states = foldKeys(b, first, stage, carried);
                      storeStep(b, b.rem(ahead, tile.stages), next);
                      return states;
                    }
                    b.when(b.less(ahead, count), [&](BlockBuilder &b) {
                      copyStage(b, ahead, b.rem(ahead, tile.stages));
                    });
                    commitCopies(b);
                    if (!op.getBlocks())
                      return foldKeys(b, first, stage, carried);
                    auto choice = scf::IfOp::create(
                        b.b, b.loc, place.isBlockSeen(b, first),
                        [&](OpBuilder &builder, Location loc) {
                          BlockBuilder b(builder, loc);
                          scf::YieldOp::create(
                              builder, loc, foldKeys(b, first, stage, carried));
                        },
                        [&](OpBuilder &builder, Location loc) {
                          scf::YieldOp::create(builder, loc, carried);
                        });
                    return KernelBuilder::Values(choice.getResults());
                  });
    finish(states);
  }

private:
  /// Products of 16 of the width at a time; of 8 values.
  int64_t steps() const { return (tile.width + 15) / 16; }
  int64_t valueTiles() const { return (tile.valueWidth + 7) / 8; }
  int64_t keyTiles() const { return tile.keys / 8; }
  /// Blocks that have the same scores for other channels of the values.
  int64_t valueBlocks() const {
    return (sizes.valueWidth + tile.valueWidth - 1) / tile.valueWidth;
  }

  static Value zeroSum(BlockBuilder &b) {
    auto sum = VectorType::get({2, 2}, b.b.getF32Type());
    return arith::ConstantOp::create(b.b, b.loc,
                                     DenseElementsAttr::get(sum, 0.0f));
  }

  //===--------------------------------------------------------------------===//
  // Which part
  //===--------------------------------------------------------------------===//

  void enterTile(Value number, Value tiles) {
    lane = b.rem(thread, 32);
    if (parts) {
      part = b.rem(number, parts->count);
      number = b.div(number, parts->count);
    }
    Value valueBlock = b.rem(number, valueBlocks());
    firstChannel = b.mul(valueBlock, tile.valueWidth);
    number = b.div(number, valueBlocks());
    place = AttentionPlace(b, op, sizes, number, tiles, tile.rows(), tile.keys);
    if (parts)
      place.takePart(b, part, parts->count);
    place.enterWarp(b, b.div(thread, 32), lane);
  }

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// What a thread has loaded of a step's bytes.
  struct Step {
    ByteRows::Loaded keys, values;
  };
  /// Step `i`; behind the last one the last key, which no step takes.
  Step loadStep(BlockBuilder &b, Value i) {
    Value first = b.add(place.begin, b.mul(i, tile.keys));
    Value last = place.lastKey(b);
    return {byteKeys->load(b, place, b.index(0), first, place.end, last),
            byteValues->load(b, place, firstChannel, first, place.end, last)};
  }
  void storeStep(BlockBuilder &b, Value stage, const Step &step) {
    byteKeys->store(b, stage, step.keys);
    byteValues->store(b, stage, step.values);
  }

  /// Starts copies of step `i`.
  void copyStage(BlockBuilder &b, Value i, Value stage) {
    if (tile.scaled)
      return storeStep(b, stage, loadStep(b, i));
    Value first = b.add(place.begin, b.mul(i, tile.keys));
    Value to = place.end;
    if (op.getBlocks())
      to = b.select(place.isBlockSeen(b, first), to, first);
    copyRows(b, op.getKey(), tile.width, b.index(0), sharedKeys, stage, first,
             to);
    copyRows(b, op.getValue(), tile.valueWidth, firstChannel, sharedValues,
             stage, first, to);
  }

  void copyRows(BlockBuilder &b, Value from, int64_t width, Value channel,
                Value shared, Value stage, Value first, Value to) {
    int64_t chunk = tile.swizzle().elementsOfChunk();
    int64_t unit =
        std::min<int64_t>(chunk, alignmentOfRows(from) / tile.elementBytes);
    StageChunks chunks(b, tile, thread, width);
    Value start = b.mul(stage, tile.stageOf(width));
    Value last = place.lastKey(b);
    for (int64_t i = 0; i < chunks.count(); ++i)
      chunks.when(b, i, [&](BlockBuilder &b) {
        StageChunks::Chunk copied = chunks.at(b, i);
        Value key = b.add(first, copied.row);
        Value there = b.less(key, to);
        key = b.min(key, last);
        Value here = b.add(channel, copied.channel);
        Value place = b.add(start, copied.place);
        for (int64_t more = 0; more < chunk; more += unit)
          copyUnit(b, from,
                   {this->place.batch, this->place.kvHead, key,
                    b.add(here, b.index(more))},
                   unit, there, shared, b.add(place, b.index(more)));
      });
  }

  /// `unit` channels of a key, if it is there: zeros where the row has ended.
  void copyUnit(BlockBuilder &b, Value from, ArrayRef<Value> at, int64_t unit,
                Value there, Value shared, Value place) {
    Value channel = at.back();
    int64_t width = cast<MemRefType>(from.getType()).getDimSize(3);
    if (unit * tile.elementBytes >= 4) {
      bool whole = width % (from == op.getKey() || valueBlocks() == 1
                                ? tile.swizzle().elementsOfRow()
                                : tile.valueWidth) ==
                   0;
      Value count = whole ? b.index(unit) : validOf(b, channel, unit, width);
      return copyAsync(b, shared, place, from, at, unit,
                       b.select(there, count, b.index(0)));
    }
    // Two bytes are too few for an asynchronous copy.
    SmallVector<Value> inside(at);
    inside.back() = b.min(channel, b.index(width - 1));
    there = b.both(there, b.less(channel, b.index(width)));
    Value read = memref::LoadOp::create(b.b, b.loc, from, inside);
    Value zero = arith::ConstantOp::create(b.b, b.loc, b.b.getZeroAttr(type));
    memref::StoreOp::create(b.b, b.loc, b.select(there, read, zero), shared,
                            ValueRange{place});
  }

  /// AttentionTile::placeOf in a stage.
  Value placeIn(BlockBuilder &b, Value stage, int64_t width, int64_t firstKey,
                Computed line, int64_t first, Computed chunk) {
    return b.add(b.mul(stage, tile.stageOf(width)),
                 tile.placeOf(firstKey, line, first, chunk));
  }

  //===--------------------------------------------------------------------===//
  // Queries and scores
  //===--------------------------------------------------------------------===//

  /// `lanes` elements of a row of queries, zeros where it has ended.
  Value loadChannels(BlockBuilder &b, const AttentionRow &row, Value channel,
                     int64_t lanes, bool whole) {
    Value query = op.getQuery();
    int64_t align =
        std::min<int64_t>(lanes * tile.elementBytes, alignmentOfRows(query));
    if (whole)
      return b.loadAt(query, {place.batch, row.head, row.query, channel}, lanes,
                      align);
    auto vector = VectorType::get({lanes}, type);
    Value zero = arith::ConstantOp::create(b.b, b.loc, b.b.getZeroAttr(vector));
    auto guarded = [&](Value at, int64_t lanes, int64_t align, Value zero) {
      Value there = b.less(at, b.index(tile.width));
      Value read = b.loadAt(
          query,
          {place.batch, row.head, row.query, b.select(there, at, b.index(0))},
          lanes, align);
      return b.select(there, read, zero);
    };
    if (tile.width % lanes == 0)
      return guarded(channel, lanes, align, zero);
    auto one = VectorType::get({1}, type);
    Value none = arith::ConstantOp::create(b.b, b.loc, b.b.getZeroAttr(one));
    SmallVector<Value> numbers;
    for (int64_t i = 0; i < lanes; ++i)
      numbers.push_back(element(
          b, guarded(b.add(channel, b.index(i)), 1, tile.elementBytes, none),
          0));
    return vector::FromElementsOp::create(b.b, b.loc, vector, numbers);
  }

  /// The lane's fragments of A of 16 channels of its rows. With f32 they are
  /// four numbers in a row of each, whose first two and last two make a
  /// fragment; keys are taken in the same order.
  SmallVector<Value> loadQuery(BlockBuilder &b, int64_t step) {
    bool whole = 16 * (step + 1) <= tile.width;
    SmallVector<Value> read;
    if (wide) {
      Value channel = wideQueryChannel(Computed(b, lane)) + 16 * step;
      for (const AttentionRow &row : place.rows)
        read.push_back(loadChannels(b, row, channel, 4, whole));
      return read;
    }
    for (int64_t pair = 0; pair < 4; ++pair) {
      Value channel = placeInA(Computed(b, lane), pair).column + 16 * step;
      const AttentionRow &row = place.rows[placeInA<int64_t>(0, pair).row / 8];
      read.push_back(loadChannels(b, row, channel, 2, whole));
    }
    return read;
  }

  /// The number rounded to tf32, and the remainder unless it does not matter;
  /// the hardware reads no more bits.
  Cut cut(BlockBuilder &b, Value x, bool exact = false) {
    if (exact) // as it is
      return {x};
    auto f32 = cast<VectorType>(x.getType());
    auto i32 = VectorType::get(f32.getShape(), b.b.getI32Type());
    if (rounds) {
      SmallVector<Value> words;
      for (int64_t i = 0; i < f32.getNumElements(); ++i)
        words.push_back(roundToTF32(b, element(b, x, i)));
      return {vector::FromElementsOp::create(b.b, b.loc, i32, words)};
    }
    auto number = [&](uint32_t value) -> Value {
      return arith::ConstantOp::create(
          b.b, b.loc, DenseElementsAttr::get(i32, APInt(32, value)));
    };
    auto mask = [&](Value bits) -> Value {
      Value kept = arith::AndIOp::create(b.b, b.loc, bits, number(0xffffe000));
      return bitCast(b, kept, f32);
    };
    Value half = number(0x1000);
    Value high =
        mask(arith::AddIOp::create(b.b, b.loc, bitCast(b, x, i32), half));
    Value rest = arith::SubFOp::create(b.b, b.loc, x, high);
    return {high, mask(bitCast(b, rest, i32))};
  }
  static CutRegisters pick(BlockBuilder &b, const Cut &parts,
                           ArrayRef<int64_t> at) {
    CutRegisters registers;
    for (Value part : parts) {
      Registers &words = registers.emplace_back();
      for (int64_t i : at)
        words.push_back(toRegister(b, element(b, part, i)));
    }
    return registers;
  }
  /// sum + a b, the smallest product first.
  static Value multiplyCut(BlockBuilder &b, const CutRegisters &a,
                           const CutRegisters &c, Value sum) {
    constexpr auto tf32 = NVVM::MMATypes::tf32;
    if (a.size() > 1)
      sum = multiplyAdd(b, a[1], c[0], sum, tf32);
    if (c.size() > 1)
      sum = multiplyAdd(b, a[0], c[1], sum, tf32);
    return multiplyAdd(b, a[0], c[0], sum, tf32);
  }
  NVVM::MMATypes narrowType() {
    return type.isBF16() ? NVVM::MMATypes::bf16 : NVVM::MMATypes::f16;
  }

  void multiplyQueryKeys(BlockBuilder &b, Value stage,
                         SmallVector<Value> &sums) {
    for (int64_t step = 0; step < steps(); ++step) {
      SmallVector<Value> query =
          tile.holdsQuery ? heldQuery[step] : loadQuery(b, step);
      if (wide)
        multiplyWideKeys(b, stage, step, query, sums);
      else
        multiplyNarrowKeys(b, stage, step, query, sums);
    }
  }

  void multiplyNarrowKeys(BlockBuilder &b, Value stage, int64_t step,
                          ArrayRef<Value> query, SmallVector<Value> &sums) {
    Registers a = toRegisters(b, query);
    PlaceIn<Computed> named = namedAcross(Computed(b, lane));
    for (int64_t n = 0; n < keyTiles(); n += 2) {
      SmallVector<Value> pairs =
          loadMatrices(b, sharedKeys,
                       placeIn(b, stage, tile.width, 8 * n, named.row, 2 * step,
                               named.column),
                       4, /*transpose=*/false);
      for (int64_t i = 0; i < 2; ++i)
        sums[n + i] = multiplyAdd(b, a, registersOfB(b, pairs, i), sums[n + i],
                                  narrowType());
    }
  }

  static Registers registersOfB(BlockBuilder &b, ArrayRef<Value> pairs,
                                int64_t n) {
    return toRegisters(b, {pairs[matrixOfB(n, 0)], pairs[matrixOfB(n, 1)]});
  }

  /// A of tf32 from two rows of numbers, from number `first` on.
  static CutRegisters wideA(BlockBuilder &b, const std::array<Cut, 2> &halves,
                            int64_t first) {
    CutRegisters parts;
    for (size_t part = 0; part < halves[0].size(); ++part) {
      Registers &words = parts.emplace_back();
      for (int64_t i = 0; i < 4; ++i) {
        WordOfA word = wordOfA(i);
        words.push_back(toRegister(
            b, element(b, halves[word.half][part], first + word.number)));
      }
    }
    return parts;
  }

  void multiplyWideKeys(BlockBuilder &b, Value stage, int64_t step,
                        ArrayRef<Value> query, SmallVector<Value> &sums) {
    std::array<Cut, 2> halves = {cut(b, query[0]), cut(b, query[1])};
    CutRegisters a[] = {wideA(b, halves, 0), wideA(b, halves, 2)};
    PlaceIn<Computed> mine = wideKeysOf(Computed(b, lane));
    for (int64_t n = 0; n < keyTiles(); ++n) {
      Value key = b.loadAt(sharedKeys,
                           {placeIn(b, stage, tile.width, 8 * n, mine.row,
                                    4 * step, mine.column)},
                           4, 16);
      Cut parts = cut(b, key, /*exact=*/tile.scaled);
      for (int64_t i = 0; i < 2; ++i)
        sums[n] =
            multiplyCut(b, a[i], pick(b, parts, {2 * i, 2 * i + 1}), sums[n]);
    }
  }

  //===--------------------------------------------------------------------===//
  // Weights and values
  //===--------------------------------------------------------------------===//

  /// A pair of probabilities in terms of 16 bits, the smallest first. One term
  /// is enough for a result that is rounded to 16 bits anyway.
  SmallVector<Value> cutWeights(BlockBuilder &b, Value pair) {
    bool same = elementOf(op.getDest()) == type;
    int64_t count = same ? 1 : type.isBF16() ? 3 : 2;
    auto narrow = VectorType::get({2}, type);
    SmallVector<Value> parts;
    for (int64_t i = 0; i < count; ++i) {
      Value here = arith::TruncFOp::create(b.b, b.loc, narrow, pair);
      parts.insert(parts.begin(), toRegister(b, here));
      if (i + 1 < count)
        pair = arith::SubFOp::create(
            b.b, b.loc, pair,
            arith::ExtFOp::create(b.b, b.loc, pair.getType(), here));
    }
    return parts;
  }

  static Value pairOf(BlockBuilder &b, const std::array<Value, 2> &pair) {
    return vector::FromElementsOp::create(b.b, b.loc, b.vectorType(2), pair);
  }

  void multiplyNarrowValues(BlockBuilder &b, Value stage, const Scores &weights,
                            MutableArrayRef<Value> sums) {
    PlaceIn<Computed> named = namedDown(Computed(b, lane));
    for (int64_t k = 0; k < keyTiles(); k += 2) {
      SmallVector<SmallVector<Value>> pairs;
      for (int64_t pair = 0; pair < 4; ++pair) {
        SumOfA sum = sumOfA(pair);
        pairs.push_back(
            cutWeights(b, pairOf(b, weights[k + sum.matrix][sum.pair])));
      }
      for (int64_t n = 0; n < valueTiles(); n += 2) {
        // The last eight channels may have none beside them.
        int64_t count = n + 1 < valueTiles() ? 2 : 1;
        SmallVector<Value> values =
            loadMatrices(b, sharedValues,
                         placeIn(b, stage, tile.valueWidth, 8 * k, named.row, n,
                                 named.column),
                         2 * count, /*transpose=*/true);
        for (int64_t i = 0; i < count; ++i)
          for (size_t part = 0; part < pairs[0].size(); ++part) {
            Registers a;
            for (auto &parts : pairs)
              a.push_back(parts[part]);
            sums[n + i] = multiplyAdd(b, a, registersOfB(b, values, i),
                                      sums[n + i], narrowType());
          }
      }
    }
  }

  void multiplyWideValues(BlockBuilder &b, Value stage, const Scores &weights,
                          MutableArrayRef<Value> sums) {
    for (int64_t k = 0; k < keyTiles(); ++k) {
      CutRegisters a = wideA(
          b,
          {cut(b, pairOf(b, weights[k][0])), cut(b, pairOf(b, weights[k][1]))},
          0);
      for (int64_t n = 0; n < valueTiles(); ++n) {
        SmallVector<Value> pair;
        for (int64_t number = 0; number < 2; ++number) {
          PlaceIn<Computed> mine = wideValueOf(Computed(b, lane), number);
          Value place = b.add(placeIn(b, stage, tile.valueWidth, 8 * k,
                                      mine.row, 2 * n, mine.column / 4),
                              mine.column % 4);
          pair.push_back(element(b, b.loadAt(sharedValues, {place}, 1, 4), 0));
        }
        Cut value = cut(
            b,
            vector::FromElementsOp::create(b.b, b.loc, b.vectorType(2), pair),
            /*exact=*/tile.scaled);
        sums[n] = multiplyCut(b, a, pick(b, value, {0, 1}), sums[n]);
      }
    }
  }

  //===--------------------------------------------------------------------===//
  // One step
  //===--------------------------------------------------------------------===//

  static Value at(BlockBuilder &b, Value sum, int64_t half, int64_t i) {
    return vector::ExtractOp::create(b.b, b.loc, sum,
                                     ArrayRef<int64_t>{half, i});
  }

  /// The states after the keys from `first` on; carried are the sums, then the
  /// two rows' maxima, then the lane's part of their sums.
  KernelBuilder::Values foldKeys(BlockBuilder &b, Value first, Value stage,
                                 ValueRange carried) {
    SmallVector<Value> products(keyTiles(), zeroSum(b));
    multiplyQueryKeys(b, stage, products);
    Scores scores(keyTiles());
    for (auto [four, product] : llvm::zip_equal(scores, products))
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t i = 0; i < 2; ++i)
          four[half][i] = at(b, product, half, i);
    columns = columnsOfLane(b);
    if (tile.scaled)
      scaleBy(b, *byteKeys, stage, scores);
    AttentionScores between(op, sizes, place.batch, place.rows, columns);
    between.adjust(b, first, scores);
    between.hide(b, place.onEdge(b, first), first, scores);

    KernelBuilder::Values states(carried);
    AttentionSums now = sumsOf(states);
    std::array<Value, 2> ratios = between.weigh(b, scores, now);
    for (int64_t half = 0; half < 2; ++half) {
      states[valueTiles() + half] = now.most[half];
      states[valueTiles() + 2 + half] = now.sum[half];
    }
    auto sums = MutableArrayRef<Value>(states).take_front(valueTiles());
    for (Value &sum : sums) {
      SmallVector<Value> scaled;
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t i = 0; i < 2; ++i)
          scaled.push_back(arith::MulFOp::create(
              b.b, b.loc, at(b, sum, half, i), ratios[half]));
      sum = vector::FromElementsOp::create(b.b, b.loc, sum.getType(), scaled);
    }
    if (tile.scaled)
      scaleBy(b, *byteValues, stage, scores);
    if (wide)
      multiplyWideValues(b, stage, scores, sums);
    else
      multiplyNarrowValues(b, stage, scores, sums);
    return states;
  }

  /// Scores or weights times the scales of their keys.
  void scaleBy(BlockBuilder &b, const ByteRows &rows, Value stage,
               Scores &scores) {
    multiplyByScales(
        b, scores, [&](BlockBuilder &b, int64_t tile) -> std::array<Value, 2> {
          auto scale = [&](Value column) {
            return rows.scaleOf(b, stage, b.add(column, b.index(8 * tile)));
          };
          return {scale(columns[0]), scale(columns[1])};
        });
  }

  /// The columns, of eight keys, whose scores the lane has.
  std::array<Value, 2> columnsOfLane(BlockBuilder &b) {
    Computed first = placeInSum(Computed(b, lane), 0).column;
    if (wide)
      return {keyOfColumn(first), keyOfColumn(first + 1)};
    return {first, first + 1};
  }

  //===--------------------------------------------------------------------===//
  // Results
  //===--------------------------------------------------------------------===//

  AttentionSums sumsOf(ValueRange states) {
    int64_t at = valueTiles();
    return {{states[at], states[at + 1]}, {states[at + 2], states[at + 3]}};
  }

  void finish(ValueRange states) {
    AttentionResult result = {
        lane,         firstChannel,   (valueBlocks() - 1) * tile.valueWidth,
        valueTiles(), sumsOf(states), parts,
        part};
    storeResult(b, op, sizes, place, result,
                [&](BlockBuilder &b, int64_t n, int64_t half) {
                  return inUnits(b, op,
                                 pairOf(b, {at(b, states[n], half, 0),
                                            at(b, states[n], half, 1)}));
                });
  }

  AttentionIntoOp op;
  const AttentionSizes &sizes;
  const AttentionTile tile;
  const AttentionParts *parts;
  BlockBuilder b;
  bool wide;   ///< f32
  bool rounds; ///< that to tf32
  Type type;
  Value thread, lane;
  Value part, firstChannel;
  AttentionPlace place;
  std::array<Value, 2> columns;
  Value sharedKeys, sharedValues;
  std::optional<ByteRows> byteKeys, byteValues; ///< if they are bytes
  SmallVector<SmallVector<Value>> heldQuery;
};

} // namespace

void emitAttention(KernelBuilder &k, AttentionIntoOp op,
                   const AttentionSizes &sizes, const AttentionTile &tile,
                   const AttentionParts *parts, bool tf32) {
  AttentionBlock(op, sizes, k, tile, parts, tf32).emit();
}

} // namespace attune
