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
// The number of parts follows from the sizes alone; with many queries it is
// one. A sequence of its own length is cut as if it were alone, so that its
// sums do not depend on the others.

#include "AttentionInto.h"

#include "Attune/AttuneCachedRows.h"
#include "attune/Conversion/MatrixTiles.h"
#include "attune/Conversion/Passes.h"
#include "attune/Conversion/Schedule.h"
#include "attune/Conversion/ScoreKernels.h"
#include "attune/TargetInfo/CpuAttention.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

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

Value cut(KernelBuilder &k, Value whole, ArrayRef<OpFoldResult> offsets,
          ArrayRef<OpFoldResult> sizes) {
  SmallVector<OpFoldResult> strides(offsets.size(), k.b.getIndexAttr(1));
  return tensor::ExtractSliceOp::create(k.b, k.loc, whole, offsets, sizes,
                                        strides);
}

/// Scratch of `sizes`, at the front of some that has `capacity` instead of the
/// number of queries. alloc_tensor and not tensor.empty: CSE would merge the
/// scratch of two states.
Value stateScratch(KernelBuilder &k, ArrayRef<OpFoldResult> sizes,
                   int64_t capacity) {
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
  return scratch;
}

KernelBuilder::Values start(KernelBuilder &k, Value acc, Value max, Value sum) {
  Value dests[] = {acc, max, sum};
  return KernelBuilder::Values(
      OnlineStartOp::create(k.b, k.loc, ValueRange(dests).getTypes(), acc, max,
                            sum)
          .getResults());
}

/// A size of queries or keys, if it is known and not 0. The description may pin
/// the sizes of an entry's argument; the runtime checks them.
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
/// Lowers one attention op; the members are what its parts share.
class Tiling {
public:
  Tiling(AttentionOp op, PatternRewriter &rewriter, AttentionBudget budget)
      : op(op), k(rewriter, op.getLoc()), query(op.getQuery()),
        key(op.getKey()), value(op.getValue()),
        modifiers(ScoreModifiers::of(op)) {
    sizes.batch = knownSize(query, 0);
    sizes.queries = knownSize(query, 2);
    sizes.keys = knownSize(key, 2);
    sizes.heads = tensorType(query).getDimSize(1);
    sharing = sizes.group = sizes.heads / tensorType(key).getDimSize(1);
    // Heads that see different blocks cannot walk the keys together.
    if (op.getBlocks() && tensorType(op.getBlocks()).getDimSize(1) != 1)
      sizes.group = 1;
    sizes.width = tensorType(query).getDimSize(3);
    sizes.valueWidth = widthOfRows(tensorType(value));
    sizes.elementBytes =
        llvm::divideCeil(tensorType(key).getElementTypeBitWidth(), 8);
    sizes.cached = readsCache(op);
    if (auto block = op.getBlockSizes())
      sizes.maskBlock = {(*block)[0], (*block)[1]};
    // A schedule's number is final: the budget in bytes does not apply.
    if (op->hasAttr(kQueryBlock))
      budget.queryBytes = 0;
    if (op->hasAttr(kKeyBlock))
      budget.keyBytes = 0;
    budget.queryBlock = scheduled(op, kQueryBlock, budget.queryBlock);
    budget.keyBlock = scheduled(op, kKeyBlock, budget.keyBlock);
    auto isBf16 = [](Value heads) {
      return tensorType(heads).getElementType().isBF16();
    };
    if (budget.matrixRows > 0 && isBf16(query) && isBf16(key) &&
        isBf16(value) &&
        attendsInMatrixTiles(sizes.width, sizes.valueWidth,
                             kMatrixBlock * kMatrixColumns))
      budget.rows = budget.matrixRows;
    plan = planAttention(sizes, budget);
    remark::analysis(op.getLoc(), tilingRemark(op, "attention"))
        << remark::add("tiles of {0} queries of {1} heads, {2} keys at a time",
                       plan.range(), sizes.group, plan.keys)
        << remark::metric("Queries", plan.tileQueries)
        << remark::metric("Heads", sizes.group)
        << remark::metric("Keys", plan.keys);
  }

  /// Says how the attention is computed and why so.
  void explain() {
    emitRemark(op.getLoc()) << plan.explain(sizes) << "; " << plan.reason();
  }

  SmallVector<Value> run() {
    numQueries = k.dim(query, 2);
    numKeys = k.dim(key, 2);
    batches = k.dim(query, 0);
    tilesOfHeads = sizes.heads / sizes.group;
    chooseTiles();
    SmallVector<Value> outs = {emptyResult(k, op, op.getResult())};
    if (op.getLse())
      outs.push_back(emptyResult(k, op, op.getLse()));
    if (plan.way == AttentionWay::SplitKeys)
      outs = splitKeys(outs);
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
                                      : mergeParts(startStates(), ivs[0]),
                   loop.getRegionIterArgs());
    k.b.setInsertionPointToStart(loop.getTerminator().getBody());
    insertFinished(finish, loop.getRegionIterArgs());
    return SmallVector<Value>(loop.getResults());
  }

private:
  /// Sets what the tile at `ivs` (batch, heads, queries) is; gives its
  /// key/value head.
  Value enterTile(ValueRange ivs) {
    Value tile = ivs[2];
    // Later tiles see more keys and take longer: the long ones go first, so
    // that threads, which claim tiles one by one, end at about the same time.
    if (modifiers.isCausal())
      tile = k.sub(k.sub(tiles, k.index(1)), tile);
    firstQuery = k.mul(tile, tileSize);
    queries = k.min(tileSize, k.sub(numQueries, firstQuery));
    Value head = k.mul(ivs[1], sizes.group);
    rowAt = {ivs[0], head, firstQuery};
    rowSizes = {k.b.getIndexAttr(1), k.b.getIndexAttr(sizes.group),
                getAsOpFoldResult(queries)};
    if (sizes.group == sharing)
      return ivs[1];
    return arith::DivUIOp::create(k.b, k.loc, ivs[1],
                                  k.index(sharing / sizes.group));
  }

  void insert(Value tile, Value dest, ArrayRef<OpFoldResult> at,
              ArrayRef<OpFoldResult> sizes) {
    SmallVector<OpFoldResult> strides(at.size(), k.b.getIndexAttr(1));
    tensor::ParallelInsertSliceOp::create(k.b, k.loc, tile, dest, at, sizes,
                                          strides);
  }

  void insertFinished(OnlineFinishOp finish, ValueRange dests) {
    insert(finish.getResult(0), dests[0], with(rowAt, k.b.getIndexAttr(0)),
           with(rowSizes, width(op.getResult())));
    if (op.getLse())
      insert(finish.getResult(1), dests[1], rowAt, rowSizes);
  }

  /// Leaves the states of all parts of the keys in `partStates`. If there is
  /// one part, its tiles are finished at once, and none is left.
  SmallVector<Value> splitKeys(ArrayRef<Value> outs) {
    parts = countParts(numKeys);
    OpFoldResult zero = k.b.getIndexAttr(0);
    SmallVector<OpFoldResult> sizes = {
        getAsOpFoldResult(k.mul(batches, parts)),
        k.b.getIndexAttr(tensorType(query).getDimSize(1)),
        getAsOpFoldResult(numQueries)};
    Value alone = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::eq,
                                        parts, k.index(1));
    auto ifAlone = [&](Value yes, Value no) -> Value {
      return arith::SelectOp::create(k.b, k.loc, alone, yes, no);
    };
    auto empty = [&](ArrayRef<OpFoldResult> of) -> Value {
      return tensor::EmptyOp::create(k.b, k.loc, of, k.b.getF32Type());
    };
    auto loop = scf::ForallOp::create(
        k.b, k.loc,
        ArrayRef<OpFoldResult>{
            getAsOpFoldResult(batches), k.b.getIndexAttr(tilesOfHeads),
            getAsOpFoldResult(tiles), getAsOpFoldResult(parts)},
        llvm::to_vector(llvm::concat<const Value>(
            ArrayRef<Value>{empty(with(sizes, width(value))), empty(sizes),
                            empty(sizes)},
            outs)),
        std::nullopt);
    {
      OpBuilder::InsertionGuard guard(k.b);
      k.b.setInsertionPointToStart(loop.getBody());
      SmallVector<Value> ivs = loop.getInductionVars();
      Value kvHead = enterTile(ArrayRef(ivs).take_front(3));
      SmallVector<OpFoldResult> at = partAt(k, ivs[0], ivs[3]);
      // Folded where they stay: nothing is copied.
      auto home = [&](unsigned i) {
        return cut(k, loop.getRegionIterArgs()[i], i == 0 ? with(at, zero) : at,
                   i == 0 ? with(rowSizes, width(value)) : rowSizes);
      };
      KernelBuilder::Values states =
          foldTile(ivs[0], kvHead, start(k, home(0), home(1), home(2)), ivs[3]);
      // With several parts no row is finished yet.
      SmallVector<OpFoldResult> stateSizes(rowSizes);
      rowSizes[2] = getAsOpFoldResult(ifAlone(queries, k.index(0)));
      SmallVector<OpFoldResult> front(3, zero);
      OnlineFinishOp finish = finishTile(
          {cut(k, states[0], with(front, zero), with(rowSizes, width(value))),
           cut(k, states[1], front, rowSizes),
           cut(k, states[2], front, rowSizes)},
          loop.getRegionIterArgs().drop_front(3));
      k.b.setInsertionPointToStart(loop.getTerminator().getBody());
      insertFinished(finish, loop.getRegionIterArgs().drop_front(3));
      rowSizes = stateSizes;
      for (auto [i, state] : llvm::enumerate(states))
        insert(state, loop.getRegionIterArgs()[i], i == 0 ? with(at, zero) : at,
               i == 0 ? with(rowSizes, width(value)) : rowSizes);
    }
    ValueRange results = loop.getResults();
    partStates.assign(results.begin(), results.begin() + 3);
    tiles = ifAlone(k.index(0), tiles);
    return SmallVector<Value>(results.drop_front(3));
  }

  Value countParts(Value keys) {
    Value many = arith::DivUIOp::create(k.b, k.loc, k.index(plan.mostParts),
                                        maximum(k, numQueries, k.index(1)));
    return maximum(k, k.index(1), k.min(k.ceilDiv(keys, plan.leastKeys), many));
  }

  /// The keys that a sequence has.
  Value keysOf(Value batch) {
    return keysOfBatch(k, modifiers, numKeys, batch);
  }

  /// Where the tile's states of one part are.
  SmallVector<OpFoldResult> partAt(KernelBuilder &k, Value batch, Value part) {
    SmallVector<OpFoldResult> at(rowAt);
    at[0] = k.add(k.mul(batch, parts), part);
    return at;
  }

  KernelBuilder::Values mergeParts(KernelBuilder::Values states, Value batch) {
    // A sequence has no more parts than the longest.
    Value own = op.getLengths() ? countParts(keysOf(batch)) : parts;
    return k.forLoop(k.index(0), own, 1, states,
                     [&](KernelBuilder &k, Value part, ValueRange carried) {
                       SmallVector<OpFoldResult> at = partAt(k, batch, part);
                       OpFoldResult zero = k.b.getIndexAttr(0);
                       auto merge = OnlineMergeOp::create(
                           k.b, k.loc, carried.getTypes(),
                           cut(k, partStates[0], with(at, zero),
                               with(rowSizes, width(value))),
                           cut(k, partStates[1], at, rowSizes),
                           cut(k, partStates[2], at, rowSizes), carried[0],
                           carried[1], carried[2]);
                       return KernelBuilder::Values(merge.getResults());
                     });
  }

  static SmallVector<OpFoldResult> with(ArrayRef<OpFoldResult> head,
                                        OpFoldResult last) {
    SmallVector<OpFoldResult> all(head);
    all.push_back(last);
    return all;
  }
  /// Numbers of a row, and elements that it has in memory.
  OpFoldResult width(Value heads) {
    return k.b.getIndexAttr(widthOfRows(tensorType(heads)));
  }
  OpFoldResult elements(Value heads) {
    return k.b.getIndexAttr(tensorType(heads).getDimSize(3));
  }

  /// Each tile packs all keys for itself, so fewer tiles are better, unless
  /// threads lack work. All get about as many queries, as the plan has it.
  void chooseTiles() {
    tiles = k.ceilDiv(numQueries, plan.tileQueries);
    tileSize = k.index(plan.tileQueries);
    auto known = getConstantIntValue(numQueries);
    if (plan.even == 0 || (known && *known <= plan.fewQueries))
      return;
    auto ceilDiv = [&](Value a, Value b) -> Value {
      Value one = k.index(1);
      return k.b.createOrFold<arith::DivUIOp>(k.loc, k.add(a, k.sub(b, one)),
                                              b);
    };
    auto atLeastOne = [&](Value a) { return maximum(k, a, k.index(1)); };
    if (plan.adapts()) {
      Value others = atLeastOne(k.mul(batches, tilesOfHeads));
      Value threads = NumThreadsOp::create(k.b, k.loc, k.b.getIndexType());
      Value many = k.mul(threads, kTilesOfThread);
      Value wanted =
          k.min(ceilDiv(many, others), k.ceilDiv(numQueries, plan.fewQueries));
      tiles = maximum(k, tiles, wanted);
    }
    Value each = ceilDiv(numQueries, atLeastOne(tiles));
    // The smaller one last: a constant bounds the tile's scratch.
    tileSize = k.min(tileSize,
                     atLeastOne(k.mul(k.ceilDiv(each, plan.even), plan.even)));
    tiles = ceilDiv(numQueries, tileSize);
  }

  /// The keys that some query of the tile sees.
  KeyRange visibleKeys(Value batch) {
    KeysInReach reach(k, modifiers, numQueries,
                      keysUpToLast(k, modifiers, numKeys, batch));
    // Steps begin where a block of the mask may.
    KeyRange range = keysOfTile(k, reach, keysOf(batch), firstQuery, queries,
                                op.getBlocks() ? plan.keys : 1);
    if (modifiers.isCausal())
      range.end = maximum(k, k.index(0), range.end);
    return range;
  }

  KernelBuilder::Values startStates() {
    return start(
        k, stateScratch(k, with(rowSizes, width(value)), plan.tileQueries),
        stateScratch(k, rowSizes, plan.tileQueries),
        stateScratch(k, rowSizes, plan.tileQueries));
  }

  /// The tile's states after the keys of `part`, or after all if it is null.
  KernelBuilder::Values foldTile(Value batch, Value kvHead,
                                 KernelBuilder::Values states,
                                 Value part = {}) {
    OpFoldResult zero = k.b.getIndexAttr(0), one = k.b.getIndexAttr(1);
    Value q = cut(k, query, with(rowAt, zero), with(rowSizes, width(query)));
    Value slopes = perHead(op.getSlopes());
    // The keys up to the place of the last query, of which a step sees some.
    Value upToLast = keysUpToLast(k, modifiers, numKeys, batch);
    CausalAlignAttr causal = op.getCausalAttr();
    if (op.getCausal() == CausalAlign::Lengths)
      causal = CausalAlignAttr::get(k.b.getContext(), CausalAlign::BottomRight);
    Value diagonals = op.getDiagonals();
    if (diagonals) {
      Value unused = maximum(k, k.index(0), k.sub(numKeys, upToLast));
      Value used = k.sub(k.dim(diagonals, 1), unused);
      diagonals = cut(k, diagonals, {rowAt[1], getAsOpFoldResult(unused)},
                      {rowSizes[1], getAsOpFoldResult(used)});
    }
    auto [begin, end] = visibleKeys(batch);
    if (part) {
      Value keys = keysOf(batch);
      Value partKeys = keysOfPart(
          k, keys, op.getLengths() ? countParts(keys) : parts, plan.keys);
      Value first = k.mul(part, partKeys);
      end = k.min(end, k.add(first, partKeys));
      begin = maximum(k, begin, first);
    }
    auto fold = [&, end = end](KernelBuilder &k, Value first,
                               ValueRange carried) {
      OpFoldResult keys =
          getAsOpFoldResult(k.min(k.index(plan.keys), k.sub(end, first)));
      SmallVector<OpFoldResult> at = {batch, kvHead, first, zero};
      Value kBlock = cut(k, key, at, {one, one, keys, elements(key)});
      Value vBlock = cut(k, value, at, {one, one, keys, elements(value)});
      Value mask =
          cutScores(k, op.getMask(), with(rowAt, first), with(rowSizes, keys));
      Value bias =
          cutScores(k, op.getBias(), with(rowAt, first), with(rowSizes, keys));
      auto step = OnlineAttentionOp::create(
          k.b, k.loc, carried.getTypes(), q, kBlock, vBlock, mask, bias,
          diagonals, slopes, firstQuery, first, numQueries, upToLast,
          /*next_key=*/Value(), /*next_value=*/Value(), carried[0], carried[1],
          carried[2], op.getScaleAttr(), causal, op.getWindowAttr(),
          op.getSoftcapAttr(),
          k.b.getDenseI64ArrayAttr({plan.tileQueries, plan.keys}));
      if (Attribute rows = op->getDiscardableAttr(kTileRows))
        step->setAttr(kTileRows, rows);
      return KernelBuilder::Values(step.getResults());
    };
    auto foldPresent = [&](KernelBuilder &k, Value first, ValueRange carried) {
      Value head = getValueOrCreateConstantIndexOp(k.b, k.loc, rowAt[1]);
      auto choice = scf::IfOp::create(
          k.b, k.loc, isBlockSeen(k, modifiers, batch, head, firstQuery, first),
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
      return k.forLoop(begin, end, plan.keys, states, foldPresent);
    return k.forLoop(begin, end, plan.keys, states, fold);
  }

  /// Writes the tile of `results`.
  OnlineFinishOp finishTile(KernelBuilder::Values states, ValueRange results) {
    SmallVector<Value> dests = {cut(k, results[0],
                                    with(rowAt, k.b.getIndexAttr(0)),
                                    with(rowSizes, width(op.getResult())))};
    if (op.getLse())
      dests.push_back(cut(k, results[1], rowAt, rowSizes));
    return OnlineFinishOp::create(k.b, k.loc, ValueRange(dests).getTypes(),
                                  states[0], states[1], states[2],
                                  perHead(op.getSinks()), dests[0],
                                  op.getLse() ? dests[1] : Value());
  }

  Value perHead(Value whole) {
    if (!whole)
      return {};
    return cut(k, whole, {rowAt[1]}, {rowSizes[1]});
  }

  AttentionOp op;
  KernelBuilder k;
  Value query, key, value;
  ScoreModifiers modifiers;
  CpuAttentionSizes sizes;
  AttentionPlan plan;
  /// Query heads that share keys, of which a tile may have fewer.
  int64_t sharing;
  Value batches, numQueries, numKeys;
  // Tiles of queries and the size of one; tiles of heads.
  Value tiles, tileSize;
  int64_t tilesOfHeads;
  // Parts of the keys, of the longest sequence; their states, if there are any.
  Value parts;
  SmallVector<Value> partStates;
  // The current tile: where its rows start in [B, Hq, M], and how many.
  Value firstQuery, queries;
  SmallVector<OpFoldResult> rowAt, rowSizes;
};

struct TileAttention final : OpRewritePattern<AttentionOp> {
  TileAttention(MLIRContext *context, const AttentionBudget &budget,
                bool explain)
      : OpRewritePattern(context), budget(budget), explain(explain) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    auto fixed = [](Value heads) {
      auto type = tensorType(heads);
      return !type.isDynamicDim(1) && !type.isDynamicDim(3);
    };
    if (!fixed(op.getQuery()) || !fixed(op.getKey()) || !fixed(op.getValue()) ||
        !fixed(op.getResult()))
      return rewriter.notifyMatchFailure(op, "heads and widths must be static");
    Tiling tiling(op, rewriter, budget);
    if (explain)
      tiling.explain();
    rewriter.replaceOp(op, tiling.run());
    return success();
  }
  AttentionBudget budget;
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
    if (queryBytes < 0 || keyBytes < 0 || matrixRows < 0) {
      getOperation().emitError(
          "query-bytes, key-bytes and matrix-rows must be 0 or positive");
      return signalPassFailure();
    }
    if (rows < 1 || threads < 1 || partBytes < 1 || cacheBytes < 1 ||
        lineCycles < 1 || multiplyAdds < 1) {
      getOperation().emitError("rows, threads, part-bytes, cache-bytes, "
                               "line-cycles and multiply-adds must be "
                               "positive");
      return signalPassFailure();
    }
    if (failed(checkSchedule(getOperation(), cooperative)) ||
        (cooperative &&
         failed(checkAttentionTiles(getOperation(), warpgroups))))
      return signalPassFailure();
    RewritePatternSet patterns(&getContext());
    AttentionBudget budget;
    budget.queryBlock = queryBlock;
    budget.queryBytes = queryBytes;
    budget.keyBlock = keyBlock;
    budget.keyBytes = keyBytes;
    budget.rows = rows;
    budget.matrixRows = matrixRows;
    budget.threads = threads;
    budget.partBytes = partBytes;
    budget.cacheBytes = cacheBytes;
    budget.lineCycles = lineCycles;
    budget.multiplyAdds = multiplyAdds;
    if (cooperative)
      populateAttentionIntoPatterns(patterns, warpgroups, explainFusion);
    else
      patterns.add<TileAttention>(&getContext(), budget, explainFusion);
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
