//===- AttentionInto.cpp - Attention that stays one op ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// A block of a GPU's threads computes attention together, in memory that no
// tensor is: until there are buffers it stays one op. What its kernel does not
// know becomes loops of single threads like on a CPU.

#include "AttentionInto.h"

#include "attune/Analysis/GpuAttention.h"
#include "attune/Conversion/Schedule.h"

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

bool readsCache(AttentionOp op) {
  return op.getKey().getDefiningOp<CacheReadOp>() && !op.getBlocks();
}

namespace {

/// Not there if the blocks of a mask are too small.
std::optional<AttentionTile> tileFor(AttentionOp op) {
  RankedTensorType query = typeOf(op.getQuery());
  int64_t bytes = query.getElementTypeBitWidth() / 8,
          width = query.getDimSize(3),
          valueWidth = typeOf(op.getValue()).getDimSize(3);
  if (!op.getBlocks())
    return chooseAttentionTile(bytes, width, valueWidth, /*fewRows=*/false);
  ArrayRef<int64_t> blocks = *op.getBlockSizes();
  int64_t group = query.getDimSize(1) / typeOf(op.getKey()).getDimSize(1);
  return chooseTileOfBlocks(bytes, width, valueWidth, group, blocks[0],
                            blocks[1]);
}

/// Why tensor cores cannot take it, or nothing.
StringRef refusal(AttentionOp op) {
  RankedTensorType query = typeOf(op.getQuery()), key = typeOf(op.getKey()),
                   value = typeOf(op.getValue());
  for (RankedTensorType type : {query, key, value})
    if (type.isDynamicDim(1) || type.isDynamicDim(3))
      return "the number of heads or their width is not known";
  Type element = query.getElementType();
  if (key.getElementType() != element || value.getElementType() != element)
    return "queries, keys and values are of more than one type";
  if (query.getDimSize(3) > kWidestHead)
    return "heads are wider than 640";
  if (!op.getBlocks())
    return "";
  int64_t group = query.getDimSize(1) / key.getDimSize(1);
  if (group != 1 && typeOf(op.getBlocks()).getDimSize(1) != 1)
    return "heads that share keys have blocks of their own";
  if (!tileFor(op))
    return "blocks of the mask are no multiples of tiles";
  return "";
}

struct KeepAttention final : OpRewritePattern<AttentionOp> {
  KeepAttention(MLIRContext *context, bool explain)
      : OpRewritePattern(context, /*benefit=*/2), explain(explain) {}

  LogicalResult matchAndRewrite(AttentionOp op,
                                PatternRewriter &rewriter) const override {
    if (StringRef why = refusal(op); !why.empty()) {
      remark::missed(op.getLoc(), tilingRemark(op, "attention"))
          << "not on tensor cores, because " + why.str();
      if (explain)
        emitRemark(op.getLoc()) << "not on tensor cores: " << why;
      return rewriter.notifyMatchFailure(op, why);
    }
    AttentionTile tile = *tileFor(op);
    remark::analysis(op.getLoc(), tilingRemark(op, "attention"))
        << remark::add("blocks of {0} threads for {1} rows, {2} keys at a time",
                       tile.threads(), tile.rows(), tile.keys)
        << remark::metric("Rows", tile.rows())
        << remark::metric("Keys", tile.keys);
    if (explain)
      emitRemark(op.getLoc())
          << "flash attention on tensor cores: " << tile.rows() << " rows by "
          << tile.keys << " keys, no matrix of scores in memory"
          << (readsCache(op) ? "; few queries split the keys of a cache" : "");
    KernelBuilder k(rewriter, op.getLoc());
    SmallVector<Type> types(op->getResultTypes());
    Value dest = emptyResult(k, op, op.getResult()), lse;
    if (op.getLse())
      lse = emptyResult(k, op, op.getLse());
    auto into = AttentionIntoOp::create(
        rewriter, op.getLoc(), types, op.getQuery(), op.getKey(), op.getValue(),
        op.getMask(), op.getBias(), op.getDiagonals(), op.getSlopes(),
        op.getSinks(), op.getLengths(), op.getBlocks(), dest, lse,
        op.getScaleAttr(), op.getCausalAttr(), op.getWindowAttr(),
        op.getSoftcapAttr(), op.getBlockSizesAttr(),
        readsCache(op) ? rewriter.getUnitAttr() : UnitAttr());
    rewriter.replaceOp(op, into.getResults());
    return success();
  }
  bool explain;
};

} // namespace

void populateAttentionIntoPatterns(RewritePatternSet &patterns, bool explain) {
  patterns.add<KeepAttention>(patterns.getContext(), explain);
}

} // namespace attune
