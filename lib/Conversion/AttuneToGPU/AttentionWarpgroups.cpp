//===- AttentionWarpgroups.cpp - Attention that copies and multiplies apart ==//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block computes some queries of all heads that share keys. One thread of its
// first warpgroup starts copies of keys and values by tensor maps and the group
// gives its registers away; each of the others multiplies 64 rows by wgmma.
// Queries lie in shared memory, keys and values come through a ring of stages
// each. Scores, maxima, sums and results stay in registers: the fragments are
// those of mma.sync side by side, so scores take the same code, and
// probabilities are A of the second product in place.
//
// While the tensor cores multiply the values of one step, scores of the next
// become probabilities: both products are started together, that of scores
// first, and each is waited for when it is needed. The warpgroups take turns at
// starting them, so that one multiplies while the other computes probabilities.
//
// The copy fills with zeros whatever lies outside a head's keys. Channels past
// the width are zeros too, and the products skip those past the next multiple
// of 16.
//
// Keys and values in bytes are no copies: all threads of the first warpgroup
// load them and make numbers of the queries' type of them, which lie in the
// same stages. Scales stay apart, f32: scores are multiplied by those of their
// keys, and probabilities by those of their values.

#include "Attention.h"
#include "AttentionBytes.h"
#include "Warpgroups.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <cmath>

using namespace mlir;

namespace attune {

namespace {

class WarpgroupAttention {
public:
  WarpgroupAttention(AttentionIntoOp op, const AttentionSizes &sizes,
                     KernelBuilder &k, const WarpgroupAttentionTile &tile)
      : op(op), sizes(sizes), tile(tile), b(k), type(elementOf(op.getQuery())) {
  }

  void emit() {
    OpBuilder::InsertionGuard guard(b.b);
    Value keyMap, valueMap;
    if (!tile.scaled) {
      keyMap = mapOf(op.getKey(), sizes.width);
      valueMap = mapOf(op.getValue(), sizes.valueWidth);
    }
    Value tiles = b.ceilDiv(sizes.rows, tile.rows());
    Value heads = b.mul(sizes.batches, b.index(sizes.kvHeads));
    BlockLaunch launch(b, b.mul(heads, tiles), tile.threads(),
                       tile.sharedBytes());
    thread = launch.thread;
    place = AttentionPlace(b, op, sizes, launch.block, tiles, tile.rows(),
                           tile.keys);
    // At least one step: a tile of hidden keys changes nothing.
    count = b.max(place.countSteps(b), b.index(1));
    Value shared = dynamicShared(b);
    auto take = [&](int64_t bytes) {
      Value here = shared;
      shared = b.add(shared, b.index(bytes));
      return here;
    };
    sharedQuery = take(tile.queryBytes());
    sharedKeys = take(tile.stages * tile.keyBytes());
    sharedValues = take(tile.stages * tile.valueBytes());
    for (StageRing *ring : {&keyRing, &valueRing})
      *ring =
          StageRing(take(tile.stages * StageRing::kBytesOfStage), tile.stages);
    sharedScales = take(tile.scaleSteps() * tile.scaleBytes());

    b.when(b.less(thread, b.index(1)), [&](BlockBuilder &b) {
      for (StageRing *ring : {&keyRing, &valueRing})
        ring->init(b, i32(b, tile.scaled ? kGroup : 1),
                   i32(b, tile.rows() / kWarpRows));
      NVVM::FenceMbarrierInitOp::create(b.b, b.loc);
    });
    b.barrier();
    auto role = scf::IfOp::create(b.b, b.loc, b.less(thread, b.index(kGroup)),
                                  /*withElseRegion=*/true);
    b.b.setInsertionPointToStart(role.thenBlock());
    setRegisters(b, tile.fewRegisters(), /*more=*/false);
    if (tile.scaled)
      widen(b);
    else
      b.when(b.less(thread, b.index(1)),
             [&](BlockBuilder &b) { copy(b, keyMap, valueMap); });
    b.b.setInsertionPointToStart(role.elseBlock());
    setRegisters(b, tile.manyRegisters(), /*more=*/true);
    multiply();
  }

private:
  static constexpr int64_t kGroup = 128; ///< threads

  //===--------------------------------------------------------------------===//
  // Copies
  //===--------------------------------------------------------------------===//

  /// A map of keys or values. On the host.
  Value mapOf(Value heads, int64_t width) {
    auto data = memref::ExtractStridedMetadataOp::create(b.b, b.loc, heads);
    Value start =
        memref::ExtractAlignedPointerAsIndexOp::create(b.b, b.loc, heads);
    auto bytes = [&](Value elements) { return b.mul(elements, 2); };
    auto strides = data.getStrides();
    MappedMatrix matrix = {b.add(start, bytes(data.getOffset())),
                           2,
                           width,
                           sizes.keys,
                           bytes(strides[2]),
                           b.index(sizes.kvHeads),
                           bytes(strides[1]),
                           sizes.batches,
                           bytes(strides[0])};
    return tensorMap(b, matrix,
                     {WarpgroupAttentionTile::kBoxChannels, tile.keys,
                      /*swizzle=*/true});
  }

  void copy(BlockBuilder &b, Value keyMap, Value valueMap) {
    Value keys = acquireMap(b, keyMap), values = acquireMap(b, valueMap);
    b.forLoop(
        b.index(0), count, 1, {}, [&](KernelBuilder &k, Value i, ValueRange) {
          BlockBuilder b(k);
          copyStage(b, keyRing, i, keys, sharedKeys, tile.keyBytes());
          copyStage(b, valueRing, i, values, sharedValues, tile.valueBytes());
          return KernelBuilder::Values();
        });
  }

  void copyStage(BlockBuilder &b, StageRing &ring, Value step, Value map,
                 Value shared, int64_t bytes) {
    Value to = b.add(shared, b.mul(ring.awaitEmpty(b, step), bytes));
    Value barrier = ring.expect(b, step, bytes);
    Value key = firstKey(b, step);
    int64_t box = tile.keys * WarpgroupAttentionTile::kBoxRowBytes;
    for (int64_t i = 0; i < bytes / box; ++i)
      copyBox(b, b.add(to, b.index(i * box)), map,
              {b.index(i * WarpgroupAttentionTile::kBoxChannels), key,
               place.kvHead, place.batch},
              barrier);
  }

  //===--------------------------------------------------------------------===//
  // Bytes
  //===--------------------------------------------------------------------===//

  using Words = SmallVector<Value>;
  /// What a thread loads at once and widens at once: rows of a box of a step's
  /// keys or values.
  struct Piece {
    const ByteBoxes *rows;
    StageRing *ring;
    Value shared;
    int64_t stageBytes;
    Value step;
    int64_t number, count; ///< of those of the stage

    bool isFirst() const { return number == 0; }
    bool isLast() const { return number + 1 == count; }
  };
  using Pieces = SmallVector<Piece>;

  /// Fills stages with keys and values in bytes. Words of the next pieces are
  /// on their way while those of one are widened. Keys are one step ahead: a
  /// stage of theirs is empty as soon as there are scores, one of values only
  /// when the next step ends.
  void widen(BlockBuilder &b) {
    ByteBoxes keys(b, tile, op.getKey(), type, thread),
        values(b, tile, op.getValue(), type, thread);
    auto add = [&](Pieces &pieces, bool areKeys, Value step) {
      const ByteBoxes &rows = areKeys ? keys : values;
      int64_t count = rows.pieces();
      for (int64_t i = 0; i < count; ++i)
        pieces.push_back({&rows, areKeys ? &keyRing : &valueRing,
                          areKeys ? sharedKeys : sharedValues,
                          areKeys ? tile.keyBytes() : tile.valueBytes(), step,
                          i, count});
    };
    // Scales of values come with the keys.
    auto load = [&](BlockBuilder &b, const Piece &piece) {
      Value first = firstKey(b, piece.step);
      Words words = piece.rows->load(b, place, first, piece.number);
      if (piece.rows == &keys && piece.isFirst())
        words.append({keys.loadScale(b, place, first, 1),
                      values.loadScale(b, place, first, unitOfValues(op))});
      return words;
    };
    auto store = [&](BlockBuilder &b, const Piece &piece, Words words) {
      if (piece.isFirst())
        piece.ring->awaitEmpty(b, piece.step);
      if (piece.rows == &keys && piece.isFirst())
        for (int64_t i : {1, 0}) {
          Value at =
              b.add(scalesOf(b, piece.step, i), b.mul(keys.keyOfScale(b), 4));
          LLVM::StoreOp::create(b.b, b.loc, words.pop_back_val(),
                                pointerTo(b, at, NVVM::NVVMMemorySpace::Shared),
                                4);
        }
      piece.rows->store(
          b,
          stageAt(b, *piece.ring, piece.step, piece.shared, piece.stageBytes),
          piece.number, words);
      if (!piece.isLast())
        return;
      showToProducts(b);
      piece.ring->tell(b, piece.step);
    };
    // Stores the first pieces, whose first kAhead are loaded, and loads as many
    // behind them.
    constexpr size_t kAhead = 2;
    auto pass = [&](BlockBuilder &b, ArrayRef<Piece> pieces, size_t count,
                    SmallVector<Words> loaded) {
      for (size_t i = 0; i < count; ++i) {
        loaded.push_back(load(b, pieces[i + kAhead]));
        auto storeIt = [&](BlockBuilder &b) {
          store(b, pieces[i], loaded.front());
        };
        if (pieces[i].rows == &keys)
          b.when(b.less(pieces[i].step, this->count), storeIt);
        else
          storeIt(b);
        loaded.erase(loaded.begin());
      }
      return loaded;
    };
    auto flat = [](ArrayRef<Words> loaded) {
      KernelBuilder::Values all;
      for (const Words &words : loaded)
        llvm::append_range(all, words);
      return all;
    };

    Pieces first;
    Value zero = b.index(0), one = b.index(1);
    add(first, true, zero);
    size_t count = first.size();
    add(first, true, one);
    add(first, false, zero);
    SmallVector<Words> loaded;
    for (size_t i = 0; i < kAhead; ++i)
      loaded.push_back(load(b, first[i]));
    loaded = pass(b, first, count, loaded);
    b.forLoop(zero, this->count, 1, flat(loaded),
              [&](KernelBuilder &k, Value i, ValueRange carried) {
                BlockBuilder b(k);
                Value next = b.add(i, one);
                Pieces pieces;
                add(pieces, true, next);
                add(pieces, false, i);
                size_t count = pieces.size();
                add(pieces, true, b.add(i, b.index(2)));
                add(pieces, false, next);
                SmallVector<Words> here;
                for (const Words &words : loaded) {
                  here.emplace_back(carried.take_front(words.size()));
                  carried = carried.drop_front(words.size());
                }
                return flat(pass(b, pieces, count, here));
              });
  }

  /// Where the scales of a step's keys are, or, second, of its values.
  Value scalesOf(BlockBuilder &b, Value step, int64_t second) {
    Value place = b.mul(b.rem(step, tile.scaleSteps()), tile.scaleBytes());
    return b.add(b.add(sharedScales, place),
                 b.index(second * tile.scaleBytes() / 2));
  }
  void scaleBy(BlockBuilder &b, Value step, int64_t second, Scores &scores) {
    Value first = b.add(scalesOf(b, step, second),
                        b.mul(placeInSum(Computed(b, lane), 0).column, 4));
    multiplyByScales(
        b, scores, [&](BlockBuilder &b, int64_t tile) -> std::array<Value, 2> {
          Value at = b.add(first, b.index(8 * 4 * tile));
          Value two = LLVM::LoadOp::create(
              b.b, b.loc, b.vectorType(2),
              pointerTo(b, at, NVVM::NVVMMemorySpace::Shared), 8);
          return {element(b, two, 0), element(b, two, 1)};
        });
  }

  //===--------------------------------------------------------------------===//
  // What those that multiply write
  //===--------------------------------------------------------------------===//

  /// All threads of the warpgroup have arrived, and their writes to shared
  /// memory are visible to wgmma.
  void publish(BlockBuilder &b) {
    showToProducts(b);
    Value number = b.add(consumer, b.index(1 + tile.consumers));
    NVVM::BarrierOp::create(b.b, b.loc, TypeRange(), toI32(b, number),
                            i32(b, kGroup), {}, Value());
  }

  /// The warpgroup's queries. Missing rows repeat the last one.
  void loadQuery() {
    constexpr int64_t lanes = 8, chunks = 8, rows = kGroup / chunks;
    auto vector = VectorType::get({lanes}, type);
    Value zero = arith::ConstantOp::create(b.b, b.loc, b.b.getZeroAttr(vector));
    Value member = b.rem(thread, kGroup), chunk = b.rem(member, chunks);
    Value line = b.add(b.div(member, chunks), b.mul(consumer, 64));
    for (int64_t i = 0; i < 64; i += rows) {
      Value row = b.add(line, b.index(i));
      Value number = b.min(b.add(place.firstRow, row), place.lastRow);
      Value head = place.headOf(b, number), query = place.queryOf(b, number);
      for (int64_t box = 0; box < tile.boxes(tile.width); ++box) {
        Value channel = b.add(b.mul(chunk, lanes), b.index(box * 64));
        Value there = b.less(channel, b.index(tile.width));
        bool whole = (box + 1) * 64 <= tile.width;
        Value from = whole ? channel : b.select(there, channel, b.index(0));
        Value read = b.loadAt(op.getQuery(), {place.batch, head, query, from},
                              lanes, 16);
        Value start = b.add(sharedQuery, b.index(box * tile.rows() * 128));
        storeChunk(b, whole ? read : b.select(there, read, zero),
                   chunkAt(b, start, row, chunk));
      }
    }
    publish(b);
  }

  /// Memory past a batch's length may hold anything: a probability of zero does
  /// not hide a NaN. Each warpgroup clears values for itself.
  void clearHidden(BlockBuilder &b, Value step) {
    Value first = firstKey(b, step);
    Value valid = b.max(b.sub(place.end, first), b.index(0));
    b.when(b.less(valid, b.index(tile.keys)), [&](BlockBuilder &b) {
      constexpr int64_t chunks = 8, rows = kGroup / chunks;
      auto vector = VectorType::get({8}, type);
      Value zero =
          arith::ConstantOp::create(b.b, b.loc, b.b.getZeroAttr(vector));
      Value member = b.rem(thread, kGroup), chunk = b.rem(member, chunks);
      Value stage =
          stageAt(b, valueRing, step, sharedValues, tile.valueBytes());
      b.forLoop(b.add(valid, b.div(member, chunks)), b.index(tile.keys), rows,
                {}, [&](KernelBuilder &k, Value row, ValueRange) {
                  BlockBuilder b(k);
                  for (int64_t box = 0; box < tile.boxes(tile.valueWidth);
                       ++box) {
                    Value start = b.add(stage, b.index(box * tile.keys * 128));
                    storeChunk(b, zero, chunkAt(b, start, row, chunk));
                  }
                  return KernelBuilder::Values();
                });
      publish(b);
    });
  }

  //===--------------------------------------------------------------------===//
  // Products
  //===--------------------------------------------------------------------===//

  /// The first key of a step.
  Value firstKey(BlockBuilder &b, Value step) {
    return b.add(place.begin, b.mul(step, tile.keys));
  }
  static Value stageAt(BlockBuilder &b, StageRing &ring, Value step,
                       Value shared, int64_t bytes) {
    return b.add(shared, b.mul(ring.stageOf(b, step), bytes));
  }
  /// A descriptor that begins `bytes` further on.
  static Value further(BlockBuilder &b, Value descriptor, int64_t bytes) {
    Value more = arith::ConstantOp::create(b.b, b.loc,
                                           b.b.getI64IntegerAttr(bytes >> 4));
    return bytes == 0
               ? descriptor
               : b.b.createOrFold<arith::AddIOp>(b.loc, descriptor, more);
  }

  /// Starts the scores of step `step`.
  Value startScores(BlockBuilder &b, Value step) {
    Value keys =
        descriptor(b, stageAt(b, keyRing, step, sharedKeys, tile.keyBytes()),
                   tile.rowDescriptor());
    Value sums = LLVM::PoisonOp::create(b.b, b.loc, sumsOf(b, tile.keys));
    for (int64_t i = 0; i < (tile.width + 15) / 16; ++i)
      sums =
          multiplyShared(b, sums, further(b, query, tile.queryStep(i)),
                         further(b, keys, tile.keyStep(i)), type,
                         /*add=*/i != 0, WarpgroupAttentionTile::kKeysAcross);
    NVVM::WgmmaGroupSyncAlignedOp::create(b.b, b.loc);
    return sums;
  }

  /// Starts adding the values of step `step`.
  Value startValues(BlockBuilder &b, Value step, Value sums,
                    ArrayRef<Value> weights) {
    Value values = descriptor(
        b, stageAt(b, valueRing, step, sharedValues, tile.valueBytes()),
        tile.valueDescriptor());
    // Used for the probabilities' registers, and for zeros that sums may begin
    // with.
    sums = fenceSums(b, sums);
    for (int64_t i = 0; i < tile.keys / 16; ++i)
      sums = multiplyHeld(b, sums, weights.slice(4 * i, 4),
                          further(b, values, tile.valueStep(i)), type,
                          i32(b, 1), WarpgroupAttentionTile::kValuesAcross);
    NVVM::WgmmaGroupSyncAlignedOp::create(b.b, b.loc);
    return sums;
  }

  static Value at(BlockBuilder &b, Value sums, int64_t n, int64_t half,
                  int64_t i) {
    return LLVM::ExtractValueOp::create(b.b, b.loc, sums, n * 4 + half * 2 + i);
  }

  /// Probabilities of the scores of step `step`, times the scales of its values
  /// if there are any, and the factors that rescale the sums so far.
  Scores weigh(BlockBuilder &b, Value step, Value sums, AttentionSums &state,
               std::array<Value, 2> &ratios) {
    Scores scores(tile.keys / 8);
    for (auto [n, four] : llvm::enumerate(scores))
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t i = 0; i < 2; ++i)
          four[half][i] = at(b, sums, int64_t(n), half, i);
    Value even = placeInSum(Computed(b, lane), 0).column;
    AttentionScores between(op, sizes, place.batch, place.rows,
                            {even, b.add(even, b.index(1))});
    Value first = firstKey(b, step);
    if (tile.scaled)
      scaleBy(b, step, 0, scores);
    between.adjust(b, first, scores);
    between.hide(b, place.onEdge(b, first), first, scores);
    ratios = between.weigh(b, scores, state);
    if (tile.scaled)
      scaleBy(b, step, 1, scores);
    return scores;
  }

  /// Weights as pairs of A, 16 keys after 16.
  SmallVector<Value> narrow(BlockBuilder &b, const Scores &weights) {
    auto narrow = VectorType::get({2}, type);
    auto word = VectorType::get({1}, b.b.getI32Type());
    SmallVector<Value> pairs;
    for (auto &four : weights)
      for (auto &two : four) {
        Value pair =
            vector::FromElementsOp::create(b.b, b.loc, b.vectorType(2), two);
        pair = arith::TruncFOp::create(b.b, b.loc, narrow, pair);
        pairs.push_back(element(b, bitCast(b, pair, word), 0));
      }
    return pairs;
  }

  /// Waits for this warpgroup's turn; a single one need not wait.
  void awaitTurn(BlockBuilder &b) {
    if (tile.consumers == 2)
      NVVM::BarrierOp::create(b.b, b.loc, TypeRange(),
                              toI32(b, b.add(consumer, b.index(1))),
                              i32(b, 2 * kGroup), {}, Value());
  }
  void endTurn(BlockBuilder &b) {
    if (tile.consumers == 2)
      NVVM::BarrierArriveOp::create(b.b, b.loc,
                                    toI32(b, b.sub(b.index(2), consumer)),
                                    i32(b, 2 * kGroup));
  }

  void multiply() {
    lane = b.rem(thread, 32);
    consumer = b.sub(b.div(thread, kGroup), b.index(1));
    place.enterWarp(b, b.sub(b.div(thread, 32), b.index(kGroup / 32)), lane);
    loadQuery();
    query = descriptor(b, b.add(sharedQuery, b.mul(consumer, 64 * 128)),
                       tile.rowDescriptor());
    int64_t held = tile.keys / 4;

    Value zero = b.index(0);
    keyRing.awaitFull(b, zero);
    NVVM::WgmmaFenceAlignedOp::create(b.b, b.loc);
    Value sums = awaitSums(b, 0, startScores(b, zero));
    keyRing.giveBack(b, lane, zero);
    AttentionSums state = {{b.f32(-INFINITY), b.f32(-INFINITY)},
                           {b.f32(0), b.f32(0)}};
    std::array<Value, 2> ratios;
    KernelBuilder::Values carried =
        narrow(b, weigh(b, zero, sums, state, ratios));
    carried.append({zeroSums(b, sizes.valueWidth), state.most[0], state.most[1],
                    state.sum[0], state.sum[1]});
    // The first turn is that of the first one.
    b.when(b.less(zero, consumer), [&](BlockBuilder &b) { endTurn(b); });
    carried = b.forLoop(b.index(1), count, 1, carried,
                        [&](KernelBuilder &k, Value i, ValueRange carried) {
                          BlockBuilder b(k);
                          return step(b, i, carried);
                        });
    // The first one consumes the second one's last arrival; nobody else does.
    b.when(b.less(consumer, b.index(1)),
           [&](BlockBuilder &b) { awaitTurn(b); });

    Value last = b.sub(count, b.index(1));
    valueRing.awaitFull(b, last);
    if (op.getLengths())
      clearHidden(b, last);
    SmallVector<Value> weights(carried.begin(), carried.begin() + held);
    sums = awaitSums(b, 0, startValues(b, last, carried[held], weights));
    AttentionResult result = {lane,
                              b.index(0),
                              0,
                              sizes.valueWidth / 8,
                              {{carried[held + 1], carried[held + 2]},
                               {carried[held + 3], carried[held + 4]}},
                              nullptr,
                              {}};
    storeResult(b, op, sizes, place, result,
                [&](BlockBuilder &b, int64_t n, int64_t half) -> Value {
                  return inUnits(b, op,
                                 vector::FromElementsOp::create(
                                     b.b, b.loc, b.vectorType(2),
                                     ValueRange{at(b, sums, n, half, 0),
                                                at(b, sums, n, half, 1)}));
                });
  }

  /// Scores of step `i`, values of the one before. Carried are probabilities as
  /// pairs, sums of values, maxima and sums of probabilities.
  KernelBuilder::Values step(BlockBuilder &b, Value i, ValueRange carried) {
    int64_t held = tile.keys / 4;
    Value before = b.sub(i, b.index(1));
    keyRing.awaitFull(b, i);
    awaitTurn(b);
    NVVM::WgmmaFenceAlignedOp::create(b.b, b.loc);
    Value products = startScores(b, i);
    valueRing.awaitFull(b, before);
    SmallVector<Value> weights(carried.begin(), carried.begin() + held);
    Value sums = startValues(b, before, carried[held], weights);
    endTurn(b);
    products = awaitSums(b, 1, products);
    keyRing.giveBack(b, lane, i);

    AttentionSums state = {{carried[held + 1], carried[held + 2]},
                           {carried[held + 3], carried[held + 4]}};
    std::array<Value, 2> ratios;
    Scores scores = weigh(b, i, products, state, ratios);
    sums = awaitSums(b, 0, sums);
    valueRing.giveBack(b, lane, before);
    KernelBuilder::Values next = narrow(b, scores);
    Value scaled =
        LLVM::PoisonOp::create(b.b, b.loc, sumsOf(b, sizes.valueWidth));
    for (int64_t n = 0; n < sizes.valueWidth / 8; ++n)
      for (int64_t half = 0; half < 2; ++half)
        for (int64_t i = 0; i < 2; ++i) {
          Value sum = arith::MulFOp::create(b.b, b.loc, at(b, sums, n, half, i),
                                            ratios[half]);
          scaled = LLVM::InsertValueOp::create(b.b, b.loc, scaled, sum,
                                               n * 4 + half * 2 + i);
        }
    next.append(
        {scaled, state.most[0], state.most[1], state.sum[0], state.sum[1]});
    return next;
  }

  AttentionIntoOp op;
  const AttentionSizes &sizes;
  const WarpgroupAttentionTile tile;
  BlockBuilder b;
  Type type;
  AttentionPlace place;
  Value thread, lane, consumer, count, query;
  Value sharedQuery, sharedKeys, sharedValues, sharedScales;
  StageRing keyRing, valueRing;
};

} // namespace

void emitWarpgroupAttention(KernelBuilder &k, AttentionIntoOp op,
                            const AttentionSizes &sizes,
                            const WarpgroupAttentionTile &tile) {
  WarpgroupAttention(op, sizes, k, tile).emit();
}

} // namespace attune
