//===- AttentionToOnline.cpp - Attention as loops over blocks ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// attune.attention becomes a parallel loop over batches, key/value heads and
// blocks of queries. Each iteration owns a tile of the result: the queries of
// all heads of one group, so that keys and values are read once per group. It
// walks the keys that the tile can see at all, block by block, and folds them
// into running states that live in scratch of static size.
//
// Attention that reads a cache has few queries most of the time, and then fewer
// tiles than threads. It is split along the keys as well: one parallel loop
// leaves a state for each part of the cache, a second one merges them in order.
// How many parts there are follows from the sizes alone; of many queries there
// is one.

#include "AttentionInto.h"

#include "attune/Conversion/Passes.h"
#include "attune/Conversion/Schedule.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <cmath>

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEATTENTIONTOONLINE
#include "attune/Conversion/Passes.h.inc"

namespace {

RankedTensorType tensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value maximum(KernelBuilder &k, Value lhs, Value rhs) {
  return k.b.createOrFold<arith::MaxSIOp>(k.loc, lhs, rhs);
}

/// The part of a mask or bias that a block of scores needs; dimensions of size
/// one serve every batch, head or query.
Value cutBlock(KernelBuilder &k, Value whole, ArrayRef<OpFoldResult> offsets,
               ArrayRef<OpFoldResult> sizes) {
  if (!whole)
    return {};
  SmallVector<OpFoldResult> at(offsets), count(sizes);
  for (int64_t dim = 0; dim < 3; ++dim)
    if (tensorType(whole).getDimSize(dim) == 1) {
      at[dim] = k.b.getIndexAttr(0);
      count[dim] = k.b.getIndexAttr(1);
    }
  SmallVector<OpFoldResult> strides(at.size(), k.b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(k.b, k.loc, whole, at, count, strides);
}

Value cut(KernelBuilder &k, Value whole, ArrayRef<OpFoldResult> offsets,
          ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), k.b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(k.b, k.loc, whole, offsets, sizes,
                                        strides);
}

/// A state of `sizes` filled with `value`, at the front of scratch that has
/// `capacity` instead of the number of queries. alloc_tensor and not
/// tensor.empty: CSE would merge the scratch of two states.
Value startState(KernelBuilder &k, ArrayRef<OpFoldResult> sizes,
                 int64_t capacity, double value) {
  SmallVector<int64_t> shape;
  for (OpFoldResult size : sizes)
    shape.push_back(getConstantIntValue(size).value_or(capacity));
  Value scratch = bufferization::AllocTensorOp::create(
      k.b, k.loc, RankedTensorType::get(shape, k.b.getF32Type()), ValueRange{});
  if (!llvm::all_of(sizes, [](OpFoldResult size) {
        return getConstantIntValue(size).has_value();
      })) {
    SmallVector<OpFoldResult> zeros(sizes.size(), k.b.getIndexAttr(0));
    scratch = cut(k, scratch, zeros, sizes);
  }
  return linalg::FillOp::create(k.b, k.loc, k.f32(value), scratch).getResult(0);
}

/// A size of queries or keys, if it is known and not 0. Those of an entry's
/// argument may be pinned by the description; the runtime checks it.
std::optional<int64_t> knownSize(Value heads, int64_t dim) {
  int64_t size = tensorType(heads).getDimSize(dim);
  auto argument = dyn_cast<BlockArgument>(heads);
  if (auto func = argument ? dyn_cast<FunctionOpInterface>(
                                 argument.getOwner()->getParentOp())
                           : FunctionOpInterface()) {
    auto shape = func.getArgAttrOfType<ArrayAttr>(argument.getArgNumber(),
                                                  "attune.shape");
    if (auto pinned = dyn_cast_or_null<IntegerAttr>(
            shape && shape.size() == 4 ? shape[dim] : Attribute()))
      size = pinned.getInt();
  }
  return size > 0 ? std::optional(size) : std::nullopt;
}
std::optional<int64_t> knownRows(Value heads) { return knownSize(heads, 2); }

/// Queries times parts of the keys; a part of fewer keys is not worth merging.
constexpr int64_t kMostParts = 16, kLeastKeys = 512;
/// Fewer keys at a time are not worth the rescaling of sums.
constexpr int64_t kFewKeys = 64;
/// Fills the rows of any register tile but for a few.
constexpr int64_t kEven = 12;
/// A row of queries and one of sums take at least so much scratch.
constexpr int64_t kLeastRowBytes = 256;

/// Tiles that keep any number of threads busy, as far as there are queries.
constexpr int64_t kManyTiles = 64;

/// What a tile of queries and a block of keys may be.
struct Blocks {
  int64_t queries, queryBytes, keys, keyBytes;
};

/// Lowers one attention op; the members are what its parts share.
class Tiling {
public:
  Tiling(AttentionOp op, PatternRewriter &rewriter, const Blocks &blocks)
      : op(op), k(rewriter, op.getLoc()), query(op.getQuery()),
        key(op.getKey()), value(op.getValue()) {
    int64_t channelBytes =
        (tensorType(query).getDimSize(3) + tensorType(value).getDimSize(3)) * 4;
    keyBlock = blocks.keys;
    if (blocks.keyBytes > 0) {
      // A multiple of any register tile's columns, and of few such tiles.
      int64_t fit = blocks.keyBytes / channelBytes / kFewKeys * kFewKeys;
      keyBlock = std::min(keyBlock, std::max(fit, kFewKeys));
    }
    keyBlock = scheduled(op, kKeyBlock, keyBlock);
    int64_t kvHeads = tensorType(key).getDimSize(1);
    sharing = group = tensorType(query).getDimSize(1) / kvHeads;
    // Heads that see different blocks cannot walk the keys together.
    if (op.getBlocks() && tensorType(op.getBlocks()).getDimSize(1) != 1)
      group = 1;
    int64_t rows = scheduled(op, kQueryBlock, blocks.queries);
    tileQueries = fewQueries = std::max<int64_t>(1, rows / group);
    if (!op->hasAttr(kQueryBlock) && !op.getBlocks() &&
        fewQueries % kEven == 0) {
      // However narrow heads are, their rows fill registers.
      int64_t rowBytes = std::max(channelBytes, kLeastRowBytes);
      tileQueries = std::max(fewQueries, blocks.queryBytes / rowBytes / group /
                                             kEven * kEven);
    }
    if (auto known = knownRows(query))
      tileQueries = std::min(tileQueries, *known);
    if (auto known = knownRows(key))
      this->keyBlock = std::min(this->keyBlock, *known);
    // A tile lies in one block of the mask.
    if (auto sizes = op.getBlockSizes()) {
      tileQueries = largestDivisor((*sizes)[0], tileQueries);
      this->keyBlock = largestDivisor((*sizes)[1], this->keyBlock);
    }
    remark::analysis(op.getLoc(), tilingRemark(op, "attention"))
        << remark::add("tiles of {0} queries of {1} heads, {2} keys at a time",
                       range(), group, this->keyBlock)
        << remark::metric("Queries", tileQueries)
        << remark::metric("Heads", group)
        << remark::metric("Keys", this->keyBlock);
  }

  /// Says how the attention is computed, why so, and what it depends on.
  void explain() {
    InFlightDiagnostic text = emitRemark(op.getLoc());
    if (auto keys = knownRows(key); keys && *keys <= keyBlock)
      text << "attention in one pass: tiles of " << range()
           << " queries by all " << *keys
           << " keys, whose scores stay in the cache";
    else
      text << "flash attention: tiles of " << range() << " queries by "
           << keyBlock << " keys, no matrix of scores in memory";
    if (!splits())
      return;
    text << "; few queries split the keys"
         << (readsCache(op) ? " of a cache" : "") << " into up to "
         << kMostParts << " parts of at least " << kLeastKeys;
  }

  SmallVector<Value> run() {
    numQueries = k.dim(query, 2);
    numKeys = k.dim(key, 2);
    batches = k.dim(query, 0);
    tilesOfHeads = tensorType(query).getDimSize(1) / group;
    chooseTiles();
    if (splits())
      splitKeys();
    SmallVector<Value> outs = {emptyResult(k, op, op.getResult())};
    if (op.getLse())
      outs.push_back(emptyResult(k, op, op.getLse()));
    auto loop = scf::ForallOp::create(
        k.b, k.loc,
        ArrayRef<OpFoldResult>{getAsOpFoldResult(batches),
                               k.b.getIndexAttr(tilesOfHeads),
                               getAsOpFoldResult(tiles)},
        outs, std::nullopt);

    OpBuilder::InsertionGuard guard(k.b);
    k.b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> ivs = loop.getInductionVars();
    OpFoldResult zero = k.b.getIndexAttr(0);
    Value kvHead = enterTile(ivs);
    OnlineFinishOp finish =
        finishTile(partStates.empty() ? foldTile(ivs[0], kvHead, startStates())
                                      : mergeParts(startStates(), ivs[0]));
    k.b.setInsertionPointToStart(loop.getTerminator().getBody());
    insert(finish.getResult(), loop.getRegionIterArgs()[0], with(rowAt, zero),
           with(rowSizes, width(op.getResult())));
    if (op.getLse())
      insert(finish.getLse(), loop.getRegionIterArgs()[1], rowAt, rowSizes);
    return SmallVector<Value>(loop.getResults());
  }

private:
  /// Whether threads share the keys of a tile, too: where queries come one by
  /// one, there are fewer tiles than threads. A batch of unknown size is taken
  /// to have enough.
  bool splits() {
    auto batch = knownSize(query, 0), queries = knownRows(query),
         keys = knownRows(key);
    // Divided, not multiplied: descriptions may pin any number.
    int64_t tilesOfOne = tensorType(query).getDimSize(1) / group;
    bool few = !op.getBlocks() && batch && queries &&
               *queries <= kMostParts / 2 &&
               *batch <= kManyTiles / 2 / tilesOfOne;
    return (few || readsCache(op)) && (!keys || *keys > kLeastKeys);
  }

  /// Sets what the tile at `ivs` (batch, heads, queries) is; gives its
  /// key/value head.
  Value enterTile(ValueRange ivs) {
    Value tile = ivs[2];
    // Later tiles see more keys and take longer: the long ones go first, so
    // that threads, which claim tiles one by one, end at about the same time.
    if (op.getCausal() != CausalAlign::None)
      tile = k.sub(k.sub(tiles, k.index(1)), tile);
    firstQuery = k.mul(tile, tileSize);
    queries = k.min(tileSize, k.sub(numQueries, firstQuery));
    Value head = k.mul(ivs[1], group);
    rowAt = {ivs[0], head, firstQuery};
    rowSizes = {k.b.getIndexAttr(1), k.b.getIndexAttr(group),
                getAsOpFoldResult(queries)};
    if (group == sharing)
      return ivs[1];
    return arith::DivUIOp::create(k.b, k.loc, ivs[1], k.index(sharing / group));
  }

  void insert(Value tile, Value dest, ArrayRef<OpFoldResult> at,
              ArrayRef<OpFoldResult> sizes) {
    SmallVector<OpFoldResult> strides(at.size(), k.b.getIndexAttr(1));
    tensor::ParallelInsertSliceOp::create(k.b, k.loc, tile, dest, at, sizes,
                                          strides);
  }

  /// Leaves the states of all parts of the keys in `partStates`.
  void splitKeys() {
    Value many = arith::DivUIOp::create(k.b, k.loc, k.index(kMostParts),
                                        maximum(k, numQueries, k.index(1)));
    parts = maximum(k, k.index(1), k.min(k.ceilDiv(numKeys, kLeastKeys), many));
    Value each = arith::DivUIOp::create(
        k.b, k.loc, k.add(numKeys, k.sub(parts, k.index(1))), parts);
    partKeys = k.mul(k.ceilDiv(each, keyBlock), keyBlock);

    OpFoldResult zero = k.b.getIndexAttr(0);
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(k.mul(batches, parts)),
        k.b.getIndexAttr(tensorType(query).getDimSize(1)),
        getAsOpFoldResult(numQueries)};
    auto empty = [&](ArrayRef<OpFoldResult> of) -> Value {
      return tensor::EmptyOp::create(k.b, k.loc, of, k.b.getF32Type());
    };
    auto loop = scf::ForallOp::create(
        k.b, k.loc,
        ArrayRef<OpFoldResult>{
            getAsOpFoldResult(batches), k.b.getIndexAttr(tilesOfHeads),
            getAsOpFoldResult(tiles), getAsOpFoldResult(parts)},
        ValueRange{empty(with(sizes, width(value))), empty(sizes),
                   empty(sizes)},
        std::nullopt);
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> ivs = loop.getInductionVars();
      Value kvHead = enterTile(ArrayRef(ivs).take_front(3));
      SmallVector<OpFoldResult> at = partAt(k, ivs[0], ivs[3]);
      // Folded where they stay: nothing is copied.
      auto home = [&](unsigned i, double start) -> Value {
        Value part =
            cut(k, loop.getRegionIterArgs()[i], i == 0 ? with(at, zero) : at,
                i == 0 ? with(rowSizes, width(value)) : rowSizes);
        return linalg::FillOp::create(k.b, k.loc, k.f32(start), part)
            .getResult(0);
      };
      KernelBuilder::Values states =
          foldTile(ivs[0], kvHead,
                   {home(0, 0.0), home(1, -INFINITY), home(2, 0.0)}, ivs[3]);
      k.b.setInsertionPointToStart(loop.getTerminator().getBody());
      for (auto [i, state] : llvm::enumerate(states))
        insert(state, loop.getRegionIterArgs()[i], i == 0 ? with(at, zero) : at,
               i == 0 ? with(rowSizes, width(value)) : rowSizes);
    }
    partStates.assign(loop.getResults().begin(), loop.getResults().end());
  }

  /// Where the tile's states of one part are.
  SmallVector<OpFoldResult> partAt(KernelBuilder &k, Value batch, Value part) {
    SmallVector<OpFoldResult> at(rowAt);
    at[0] = k.add(k.mul(batch, parts), part);
    return at;
  }

  KernelBuilder::Values mergeParts(KernelBuilder::Values states, Value batch) {
    return k.forLoop(k.index(0), parts, 1, states,
                     [&](KernelBuilder &k, Value part, ValueRange carried) {
                       SmallVector<OpFoldResult> at = partAt(k, batch, part);
                       OpFoldResult zero = k.b.getIndexAttr(0);
                       auto merge = OnlineMergeOp::create(
                           k.b, k.loc, carried[0].getType(),
                           carried[1].getType(), carried[2].getType(),
                           carried[0], carried[1], carried[2],
                           cut(k, partStates[0], with(at, zero),
                               with(rowSizes, width(value))),
                           cut(k, partStates[1], at, rowSizes),
                           cut(k, partStates[2], at, rowSizes));
                       return KernelBuilder::Values(merge.getResults());
                     });
  }

  static SmallVector<OpFoldResult> with(ArrayRef<OpFoldResult> head,
                                        OpFoldResult last) {
    SmallVector<OpFoldResult> all(head);
    all.push_back(last);
    return all;
  }
  OpFoldResult width(Value heads) {
    return k.b.getIndexAttr(tensorType(heads).getDimSize(3));
  }

  /// How many queries a tile has, for messages.
  std::string range() const {
    return (tileQueries > fewQueries ? std::to_string(fewQueries) + " to "
                                     : "") +
           std::to_string(tileQueries);
  }

  /// Each tile packs all keys for itself: the fewer tiles the better, if only
  /// there are many. All get about as many queries, a multiple of kEven, unless
  /// a block of the mask says how many.
  void chooseTiles() {
    tiles = k.ceilDiv(numQueries, tileQueries);
    tileSize = k.index(tileQueries);
    auto known = getConstantIntValue(numQueries);
    if (op.getBlocks() || tileQueries % kEven != 0 ||
        (known && *known <= fewQueries))
      return;
    auto ceilDiv = [&](Value a, Value b) -> Value {
      Value one = k.index(1);
      return k.b.createOrFold<arith::DivUIOp>(k.loc, k.add(a, k.sub(b, one)),
                                              b);
    };
    auto atLeastOne = [&](Value a) { return maximum(k, a, k.index(1)); };
    if (tileQueries > fewQueries) {
      Value others = atLeastOne(k.mul(batches, tilesOfHeads));
      Value wanted = k.min(ceilDiv(k.index(kManyTiles), others),
                           k.ceilDiv(numQueries, fewQueries));
      tiles = maximum(k, tiles, wanted);
    }
    Value each = ceilDiv(numQueries, atLeastOne(tiles));
    // The smaller one last: a constant bounds the tile's scratch.
    tileSize =
        k.min(tileSize, atLeastOne(k.mul(k.ceilDiv(each, kEven), kEven)));
    tiles = ceilDiv(numQueries, tileSize);
  }

  static int64_t largestDivisor(int64_t number, int64_t most) {
    int64_t divisor = std::min(number, most);
    while (number % divisor != 0)
      --divisor;
    return divisor;
  }

  /// The keys that some query of the tile sees: [begin, end).
  std::pair<Value, Value> visibleKeys(Value batch) {
    Value begin = k.index(0), end = numKeys;
    if (op.getLengths()) {
      Value length =
          arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(),
                                     k.loadScalar(op.getLengths(), {batch}));
      end = k.min(end, length);
    }
    bool causal = op.getCausal() != CausalAlign::None;
    if (!causal && !op.getWindow())
      return {begin, end};
    // The key position of the tile's first query.
    Value position = firstQuery;
    if (op.getCausal() != CausalAlign::TopLeft)
      position = k.add(firstQuery, k.sub(numKeys, numQueries));
    if (causal)
      end = maximum(k, begin, k.min(end, k.add(position, queries)));
    if (op.getWindow())
      begin = maximum(k, begin, k.sub(position, k.index(*op.getWindow() - 1)));
    // Steps begin where a block of the mask may.
    if (op.getBlocks() && op.getWindow())
      begin = k.sub(
          begin, arith::RemUIOp::create(k.b, k.loc, begin, k.index(keyBlock)));
    return {begin, end};
  }

  /// Whether the mask of blocks has the tile's keys from `first` on.
  Value hasBlock(KernelBuilder &k, Value batch, Value first) {
    Value blocks = op.getBlocks();
    ArrayRef<int64_t> sizes = *op.getBlockSizes();
    auto blockOf = [&](Value position, int64_t size) -> Value {
      return arith::DivUIOp::create(k.b, k.loc, position, k.index(size));
    };
    Value head = getValueOrCreateConstantIndexOp(k.b, k.loc, rowAt[1]);
    SmallVector<Value> at = {batch, head, blockOf(firstQuery, sizes[0]),
                             blockOf(first, sizes[1])};
    for (int64_t dim = 0; dim < 2; ++dim)
      if (tensorType(blocks).getDimSize(dim) == 1)
        at[dim] = k.index(0);
    return k.loadScalar(blocks, at);
  }

  KernelBuilder::Values startStates() {
    return {startState(k, with(rowSizes, width(value)), tileQueries, 0.0),
            startState(k, rowSizes, tileQueries, -INFINITY),
            startState(k, rowSizes, tileQueries, 0.0)};
  }

  /// The tile's states after the keys of `part`, or after all if it is null.
  KernelBuilder::Values foldTile(Value batch, Value kvHead,
                                 KernelBuilder::Values states,
                                 Value part = {}) {
    OpFoldResult zero = k.b.getIndexAttr(0), one = k.b.getIndexAttr(1);
    Value q = cut(k, query, with(rowAt, zero), with(rowSizes, width(query)));
    Value slopes = perHead(op.getSlopes());
    Value diagonals = op.getDiagonals();
    if (diagonals)
      diagonals = cut(k, diagonals, {rowAt[1], zero},
                      {rowSizes[1], getAsOpFoldResult(k.dim(diagonals, 1))});
    auto [begin, end] = visibleKeys(batch);
    if (part) {
      Value first = k.mul(part, partKeys);
      end = k.min(end, k.add(first, partKeys));
      begin = maximum(k, begin, first);
    }
    auto fold = [&, end = end](KernelBuilder &k, Value first,
                               ValueRange carried) {
      OpFoldResult keys =
          getAsOpFoldResult(k.min(k.index(keyBlock), k.sub(end, first)));
      SmallVector<OpFoldResult> at = {batch, kvHead, first, zero};
      Value kBlock = cut(k, key, at, {one, one, keys, width(key)});
      Value vBlock = cut(k, value, at, {one, one, keys, width(value)});
      Value mask =
          cutBlock(k, op.getMask(), with(rowAt, first), with(rowSizes, keys));
      Value bias =
          cutBlock(k, op.getBias(), with(rowAt, first), with(rowSizes, keys));
      auto step = OnlineAttentionOp::create(
          k.b, k.loc, carried[0].getType(), carried[1].getType(),
          carried[2].getType(), q, kBlock, vBlock, mask, bias, diagonals,
          slopes, firstQuery, first, numQueries, numKeys, carried[0],
          carried[1], carried[2], op.getScaleAttr(), op.getCausalAttr(),
          op.getWindowAttr(), op.getSoftcapAttr());
      if (Attribute rows = op->getDiscardableAttr(kTileRows))
        step->setAttr(kTileRows, rows);
      return KernelBuilder::Values(step.getResults());
    };
    auto foldPresent = [&](KernelBuilder &k, Value first, ValueRange carried) {
      auto choice = scf::IfOp::create(
          k.b, k.loc, hasBlock(k, batch, first),
          [&](OpBuilder &builder, Location loc) {
            KernelBuilder inner(builder, loc);
            scf::YieldOp::create(builder, loc, fold(inner, first, carried));
          },
          [&](OpBuilder &builder, Location loc) {
            scf::YieldOp::create(builder, loc, carried);
          });
      return KernelBuilder::Values(choice.getResults());
    };
    if (op.getBlocks())
      return k.forLoop(begin, end, keyBlock, states, foldPresent);
    return k.forLoop(begin, end, keyBlock, states, fold);
  }

  OnlineFinishOp finishTile(KernelBuilder::Values states) {
    auto rowType = tensorType(states[1]);
    SmallVector<int64_t> shape(rowType.getShape());
    shape.push_back(tensorType(value).getDimSize(3));
    auto type = RankedTensorType::get(
        shape, tensorType(op.getResult()).getElementType());
    return OnlineFinishOp::create(
        k.b, k.loc, type, op.getLse() ? Type(rowType) : Type(), states[0],
        states[1], states[2], perHead(op.getSinks()));
  }

  Value perHead(Value whole) {
    if (!whole)
      return {};
    return cut(k, whole, {rowAt[1]}, {rowSizes[1]});
  }

  AttentionOp op;
  KernelBuilder k;
  int64_t keyBlock;
  Value query, key, value;
  /// Query heads that share keys, and those of them that a tile has.
  int64_t sharing, group;
  /// Queries of a tile: at most, and if there are not many tiles.
  int64_t tileQueries, fewQueries;
  Value batches, numQueries, numKeys;
  // Tiles of queries and the size of one; tiles of heads.
  Value tiles, tileSize;
  int64_t tilesOfHeads;
  // Parts of the keys and the size of one; their states, if there are any.
  Value parts, partKeys;
  SmallVector<Value> partStates;
  // Of the current tile: where its rows start in [B, Hq, M], and how many.
  Value firstQuery, queries;
  SmallVector<OpFoldResult> rowAt, rowSizes;
};

struct TileAttention final : OpRewritePattern<AttentionOp> {
  TileAttention(MLIRContext *context, const Blocks &blocks, bool explain)
      : OpRewritePattern(context), blocks(blocks), explain(explain) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto fixed = [](Value heads) {
      auto type = tensorType(heads);
      return !type.isDynamicDim(1) && !type.isDynamicDim(3);
    };
    if (!fixed(op.getQuery()) || !fixed(op.getKey()) || !fixed(op.getValue()) ||
        !fixed(op.getResult()))
      return rewriter.notifyMatchFailure(op, "heads and widths must be static");
    Tiling tiling(op, rewriter, blocks);
    if (explain)
      tiling.explain();
    rewriter.replaceOp(op, tiling.run());
    return success();
  }
  Blocks blocks;
  bool explain;
};

struct ConvertAttuneAttentionToOnline final
    : impl::ConvertAttuneAttentionToOnlineBase<ConvertAttuneAttentionToOnline> {
  using Base::Base;

  void runOnOperation() override {
    if (queryBlock < 1 || keyBlock < 1) {
      getOperation().emitError("query-block and key-block must be positive");
      return signalPassFailure();
    }
    if (queryBytes < 0 || keyBytes < 0) {
      getOperation().emitError(
          "query-bytes and key-bytes must be 0 or positive");
      return signalPassFailure();
    }
    if (failed(checkSchedule(getOperation())))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    Blocks blocks = {queryBlock, queryBytes, keyBlock, keyBytes};
    patterns.add<TileAttention>(&getContext(), blocks, explainFusion);
    if (cooperative)
      populateAttentionIntoPatterns(patterns, explainFusion);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](AttentionOp op) {
      op.emitOpError("needs static head counts and widths to become loops");
      signalPassFailure();
    });
  }
};

} // namespace
} // namespace attune
