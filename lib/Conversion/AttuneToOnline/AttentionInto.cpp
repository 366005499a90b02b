//===- AttentionInto.cpp - Attention that stays one op ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block of a GPU's threads computes attention together, in memory that no
// tensor is: until there are buffers it stays one op. Attention that no kernel
// takes becomes loops of single threads as on a CPU.

#include "AttentionInto.h"

#include "Attune/AttuneCachedRows.h"
#include "Attune/AttuneScores.h"
#include "attune/Conversion/Schedule.h"
#include "attune/TargetInfo/GpuSchedule.h"

using namespace mlir;

namespace attune {

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value emptyResult(KernelBuilder &k, AttentionOp op, Value result) {
  RankedTensorType type = typeOf(result);
  SmallVector<OpFoldResult> sizes;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!type.isDynamicDim(dim))
      sizes.push_back(k.b.getIndexAttr(type.getDimSize(dim)));
    else // Only batch and queries may be dynamic.
      sizes.push_back(getAsOpFoldResult(k.dim(op.getQuery(), dim)));
  }
  return tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
}

/// The same of a result whose heads are merged.
static Value emptyMerged(KernelBuilder &k, AttentionOp op,
                         RankedTensorType type) {
  auto sizeOf = [&](int64_t dim, int64_t ofQuery) -> OpFoldResult {
    if (!type.isDynamicDim(dim))
      return k.b.getIndexAttr(type.getDimSize(dim));
    return getAsOpFoldResult(k.dim(op.getQuery(), ofQuery));
  };
  SmallVector<OpFoldResult> sizes = {sizeOf(0, 0), sizeOf(1, 2),
                                     k.b.getIndexAttr(type.getDimSize(2))};
  return tensor::EmptyOp::create(k.b, k.loc, sizes, type.getElementType());
}

bool readsCache(AttentionOp op) {
  return op.getKey().getDefiningOp<CacheReadOp>() && !op.getBlocks();
}

namespace {

AttentionShape shapeOf(AttentionOp op, bool warpgroups) {
  RankedTensorType query = typeOf(op.getQuery());
  AttentionShape shape = {
      query.getElementTypeBitWidth() / 8, query.getDimSize(3),
      widthOfRows(typeOf(op.getValue())),
      query.getDimSize(1) / typeOf(op.getKey()).getDimSize(1)};
  if (auto blocks = op.getBlockSizes()) {
    shape.blockRows = (*blocks)[0];
    shape.blockKeys = (*blocks)[1];
  }
  shape.scaled = isInBytes(typeOf(op.getKey()).getElementType());
  shape.warpgroups =
      warpgroups && shape.elementBytes == 2 &&
      typeOf(op.getResult()).getElementType() == query.getElementType();
  shape.readsScores = ScoreModifiers::of(op).readsScores();
  return shape;
}

/// Why tensor cores cannot take it, or nothing.
StringRef refusal(AttentionOp op) {
  RankedTensorType query = typeOf(op.getQuery()), key = typeOf(op.getKey()),
                   value = typeOf(op.getValue());
  for (RankedTensorType type : {query, key, value})
    if (type.isDynamicDim(1) || type.isDynamicDim(3))
      return "the number of heads or their width is not known";
  Type element = query.getElementType(), stored = key.getElementType();
  bool scaled = isInBytes(stored);
  if ((stored != element && !scaled) || value.getElementType() != stored)
    return "queries, keys and values are of more than one type";
  if (query.getDimSize(3) > kWidestHead)
    return "heads are wider than 640";
  if (scaled && query.getDimSize(3) > kWidestScaledHead)
    return "heads whose keys are bytes are wider than 608";
  if (!op.getBlocks())
    return "";
  if (scaled)
    return "keys in bytes have a mask of blocks";
  int64_t group = query.getDimSize(1) / key.getDimSize(1);
  if (group != 1 && typeOf(op.getBlocks()).getDimSize(1) != 1)
    return "heads that share keys have blocks of their own";
  if (!chooseAttentionTile(shapeOf(op, /*warpgroups=*/false)))
    return "blocks of the mask are no multiples of tiles";
  return "";
}

struct KeepAttention final : OpRewritePattern<AttentionOp> {
  KeepAttention(MLIRContext *context, bool warpgroups, bool explain)
      : OpRewritePattern(context, /*benefit=*/2), warpgroups(warpgroups),
        explain(explain) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (StringRef why = refusal(op); !why.empty()) {
      remark::missed(op.getLoc(), tilingRemark(op, "attention"))
          << "not on tensor cores, because " + why.str();
      if (explain)
        emitRemark(op.getLoc()) << "not on tensor cores, and with every score "
                                   "in memory, because "
                                << why;
      replaceWithLadder(rewriter, op);
      return success();
    }
    auto choice =
        scheduleAttention(attentionNumbers(op), shapeOf(op, warpgroups));
    auto *tiles = std::get_if<AttentionTiles>(&choice);
    if (!tiles)
      return rewriter.notifyMatchFailure(op, "no such tile");
    if (tiles->groups)
      remarkTile(op, *tiles->groups);
    remarkTile(op, tiles->warps);
    if (explain)
      explainTiles(op, *tiles);
    KernelBuilder k(rewriter, op.getLoc());
    // Heads that are merged next are written where they belong.
    auto merge = op.getResult().hasOneUse()
                     ? dyn_cast<MergeHeadsOp>(*op.getResult().user_begin())
                     : MergeHeadsOp();
    if (merge && merge.getType().getElementType() !=
                     typeOf(op.getResult()).getElementType())
      merge = {};
    SmallVector<Type> types(op->getResultTypes());
    Value dest, lse;
    if (merge) {
      types[0] = merge.getType();
      dest = emptyMerged(k, op, merge.getType());
    } else {
      dest = emptyResult(k, op, op.getResult());
    }
    if (op.getLse())
      lse = emptyResult(k, op, op.getLse());
    auto into = AttentionIntoOp::create(
        rewriter, op.getLoc(), types, op.getQuery(), op.getKey(), op.getValue(),
        op.getMask(), op.getBias(), op.getDiagonals(), op.getSlopes(),
        op.getSinks(), op.getLengths(), op.getBlocks(), dest, lse,
        op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
        op.getSoftcapAttr(), op.getBlockSizesAttr(),
        readsCache(op) ? rewriter.getUnitAttr() : UnitAttr());
    keepSchedule(op, into);
    if (!merge) {
      rewriter.replaceOp(op, into.getResults());
      return success();
    }
    rewriter.replaceOp(merge, into.getResult(0));
    if (op.getLse())
      rewriter.replaceAllUsesWith(op.getLse(), into.getResult(1));
    rewriter.eraseOp(op);
    return success();
  }

private:
  template <typename Tile>
  static void remarkTile(AttentionOp op, const Tile &tile) {
    remark::analysis(op.getLoc(), tilingRemark(op, "attention"))
        << remark::add("blocks of {0} threads for {1} rows, {2} keys at a "
                       "time, {3} stages",
                       tile.threads(), tile.rows(), tile.keys, tile.stages)
        << remark::metric("Rows", tile.rows())
        << remark::metric("Keys", tile.keys)
        << remark::metric("Stages", tile.stages);
  }
  static void explainTiles(AttentionOp op, const AttentionTiles &tiles) {
    InFlightDiagnostic text = emitRemark(op.getLoc());
    text << "flash attention on tensor cores: ";
    if (tiles.groups)
      text << tiles.groups->rows() << " rows by " << tiles.groups->keys
           << " keys of warpgroups; where either are fewer than "
           << kFewestWarpgroupRows << ", ";
    text << tiles.warps.rows() << " rows by " << tiles.warps.keys
         << " keys, no matrix of scores in memory";
    if (readsCache(op))
      text << "; few queries split the keys of a cache";
  }

  bool warpgroups, explain;
};

} // namespace

LogicalResult checkAttentionTiles(Operation *root, bool warpgroups) {
  auto result = root->walk([&](AttentionOp op) {
    if (!attentionNumbers(op).any())
      return WalkResult::advance();
    if (StringRef why = refusal(op); !why.empty()) {
      StringRef number = op->hasAttr(kStages)       ? kStages
                         : op->hasAttr(kQueryBlock) ? kQueryBlock
                                                    : kKeyBlock;
      op.emitError("'") << number
                        << "' is a number of kernels on tensor cores, which do "
                           "not take this attention: "
                        << why;
      return WalkResult::interrupt();
    }
    auto choice =
        scheduleAttention(attentionNumbers(op), shapeOf(op, warpgroups));
    auto *refused = std::get_if<TileRefusal>(&choice);
    if (!refused)
      return WalkResult::advance();
    op.emitError() << refused->why;
    return WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

void populateAttentionIntoPatterns(RewritePatternSet &patterns, bool warpgroups,
                                   bool explain) {
  patterns.add<KeepAttention>(patterns.getContext(), warpgroups, explain);
}

} // namespace attune
