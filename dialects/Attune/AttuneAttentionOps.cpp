//===- AttuneAttentionOps.cpp - Verifiers of the attention ladder -*- C++
//-*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneAttentionChecks.h"
#include "Attune/AttuneChecks.h"
#include "Attune/AttuneIndexOps.h"
#include "Attune/AttuneScores.h"
#include "Attune/AttuneShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"

#include <array>
#include <cmath>

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneAttentionOps.cpp.inc"

void AttuneDialect::registerAttentionOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneAttentionOps.cpp.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneIndexOps.cpp.inc"
      >();
}

LogicalResult attune::perHead(Operation *op, Value value, StringRef owner,
                              Value queries) {
  if (!value)
    return success();
  return sameSize(op, {value, 0, owner, "entries"},
                  {queries, 1, "query", "heads"});
}

LogicalResult attune::rowsOf(Operation *op, Value value, StringRef owner,
                             Value like, StringRef likeOwner) {
  StringRef what[] = {"batch size", "heads", "queries"};
  for (int64_t dim = 0; dim < 3; ++dim)
    if (failed(sameSize(op, {value, dim, owner, what[dim]},
                        {like, dim, likeOwner, what[dim]})))
      return failure();
  return success();
}

/// Diagonals have a row for each head, and as many columns as scores of
/// `queries` by `keys` have diagonals.
static LogicalResult diagonalsOf(Operation *op, Value value, NamedSize heads,
                                 std::optional<NamedSize> queries,
                                 std::optional<NamedSize> keys) {
  if (!value)
    return success();
  if (failed(sameSize(op, {value, 0, "diagonals", "heads"}, heads)))
    return failure();
  if (!queries || !keys || !queries->known() || !keys->known())
    return success();
  return sizeIs(op, {value, 1, "diagonals", "columns"},
                queries->get() + keys->get() - 1,
                Twine(queries->get()) + " queries and " + Twine(keys->get()) +
                    " keys need");
}

/// `value` is 1 or the given size in batch, heads and queries, and has the
/// given number of keys.
static LogicalResult broadcasts(Operation *op, Value value, StringRef owner,
                                std::array<NamedSize, 4> sizes) {
  if (!value)
    return success();
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    NamedSize own{value, static_cast<int64_t>(dim), owner, size.what};
    if (dim < 3 && own.get() == 1)
      continue;
    if (failed(sameSize(op, own, size)))
      return failure();
  }
  return success();
}

static std::array<NamedSize, 4> sizesOfScores(Value scores) {
  return {{{scores, 0, "scores", "batch size"},
           {scores, 1, "scores", "heads"},
           {scores, 2, "scores", "queries"},
           {scores, 3, "scores", "keys"}}};
}

static LogicalResult positive(Operation *op, std::optional<int64_t> window,
                              std::optional<APFloat> softcap) {
  if (window && *window < 1)
    return op->emitOpError("has a window of ")
           << *window << " keys, which hides every key";
  if (softcap && !(softcap->isFiniteNonZero() && !softcap->isNegative()))
    return op->emitOpError("has softcap ")
           << softcap->convertToDouble() << ", which is not a positive number";
  return success();
}

/// One length for each sequence of the batch.
static LogicalResult lengthsOf(Operation *op, Value lengths, NamedSize batch) {
  if (!lengths)
    return success();
  return sameSize(op, {lengths, 0, "lengths", "entries"}, batch);
}

/// M6, A10: queries stand at lengths only where there are some, and windows
/// have two sides only where there is one.
template <typename Op> static LogicalResult alignmentOf(Op op) {
  if (op.getCausal() == CausalAlign::Symmetric && !op.getWindow())
    return op->emitOpError("has the causal alignment symmetric, but no window");
  if (op.getCausal() != CausalAlign::Lengths)
    return success();
  if constexpr (std::is_same_v<Op, MaskScoresOp> ||
                std::is_same_v<Op, AttentionOp>)
    if (op.getLengths())
      return success();
  return op->emitOpError("has the causal alignment lengths, but no lengths");
}

/// `blocks` is 1 or the given size in batch and heads, and has a row (column)
/// for each block of queries (keys), the last of which may be smaller.
static LogicalResult blocksOf(Operation *op, Value blocks,
                              std::optional<ArrayRef<int64_t>> sizes,
                              std::array<NamedSize, 4> scores) {
  if (!blocks && !sizes)
    return success();
  if (!blocks || !sizes)
    return op->emitOpError("needs both blocks and block_sizes, or neither");
  if (sizes->size() != 2 || (*sizes)[0] < 1 || (*sizes)[1] < 1)
    return op->emitOpError("has block sizes [")
           << *sizes << "], but they must be two positive numbers";
  StringRef what[] = {"batch size", "heads", "rows", "columns"};
  for (int64_t dim = 0; dim < 4; ++dim) {
    NamedSize own{blocks, dim, "blocks", what[dim]};
    NamedSize all = scores[dim];
    if (dim < 2 ? own.get() == 1 : !all.known())
      continue;
    if (dim < 2) {
      if (failed(sameSize(op, own, all)))
        return failure();
      continue;
    }
    int64_t size = (*sizes)[dim - 2];
    if (failed(sizeIs(op, own, llvm::divideCeil(all.get(), size),
                      Twine(all.get()) + (dim == 2 ? " queries" : " keys") +
                          " in blocks of " + Twine(size) + " need")))
      return failure();
  }
  return success();
}

/// The rules on queries, keys and what changes scores that attention, its
/// online step and its weights share: A1 to A5, O1 to O5, W1 to W5.
template <typename Op> static LogicalResult verifyScores(Op op) {
  Value q = op.getQuery(), k = op.getKey();
  // A1, O1, W1
  if (failed(sameSize(op, {q, 0, "query", "batch size"},
                      {k, 0, "key", "batch size"})))
    return failure();
  // A2, O2, W2
  if (failed(headsShare(op, q, k, "key")))
    return failure();
  // A3, O3, W3
  if (failed(sameWidth(op, {q, 3, "query", "width"}, {k, 3, "key", "width"})))
    return failure();
  // A4, O4, W4
  std::array<NamedSize, 4> scores = {{{q, 0, "query", "batch size"},
                                      {q, 1, "query", "heads"},
                                      {q, 2, "query", "queries"},
                                      {k, 2, "key", "keys"}}};
  scores[2].what = scores[3].what = "length";
  if (failed(broadcasts(op, op.getMask(), "mask", scores)) ||
      failed(broadcasts(op, op.getBias(), "bias", scores)) ||
      failed(perHead(op, op.getSlopes(), "slopes", q)))
    return failure();
  // A7, O7, W7
  bool whole = !isa<OnlineAttentionOp>(op.getOperation());
  if (failed(diagonalsOf(op, op.getDiagonals(), scores[1],
                         whole ? std::optional(scores[2]) : std::nullopt,
                         whole ? std::optional(scores[3]) : std::nullopt)))
    return failure();
  if constexpr (std::is_same_v<Op, AttentionOp>) {
    // A8
    if (failed(lengthsOf(op, op.getLengths(), scores[0])))
      return failure();
    // A9
    if (failed(blocksOf(op, op.getBlocks(), op.getBlockSizes(), scores)))
      return failure();
  }
  if (failed(alignmentOf(op)))
    return failure();
  // A5, O5, W5
  return positive(op, op.getWindow(), op.getSoftcap());
}

/// The same with values.
template <typename Op> static LogicalResult verifyAttention(Op op) {
  Value q = op.getQuery(), k = op.getKey(), v = op.getValue();
  // A1, O1
  if (failed(sameSize(op, {q, 0, "query", "batch size"},
                      {v, 0, "value", "batch size"})))
    return failure();
  // A2, O2
  if (failed(sameSize(op, {k, 1, "key", "heads"}, {v, 1, "value", "heads"})))
    return failure();
  // A3, O3
  if (failed(sameSize(op, {k, 2, "key", "length"}, {v, 2, "value", "length"})))
    return failure();
  return verifyScores(op);
}

LogicalResult attune::verifyStep(OnlineAttentionOp op) {
  return verifyAttention(op);
}

LogicalResult SimilarityOp::verify() {
  Value q = getQuery(), k = getKey(), e = getResult();
  // S1
  if (failed(sameSize(*this, {q, 0, "query", "batch size"},
                      {k, 0, "key", "batch size"})))
    return failure();
  // S2
  if (failed(headsShare(*this, q, k, "key")))
    return failure();
  // S3
  if (failed(
          sameWidth(*this, {q, 3, "query", "width"}, {k, 3, "key", "width"})))
    return failure();
  // S4
  if (failed(rowsOf(*this, e, "result", q, "query")))
    return failure();
  return sameSize(*this, {e, 3, "result", "keys"}, {k, 2, "key", "length"});
}

LogicalResult MaskScoresOp::verify() {
  // M1
  std::array<NamedSize, 4> scores = sizesOfScores(getScores());
  if (failed(broadcasts(*this, getMask(), "mask", scores)) ||
      failed(broadcasts(*this, getBias(), "bias", scores)))
    return failure();
  if (getSlopes() &&
      failed(sameSize(*this, {getSlopes(), 0, "slopes", "entries"}, scores[1])))
    return failure();
  // M3
  if (failed(
          diagonalsOf(*this, getDiagonals(), scores[1], scores[2], scores[3])))
    return failure();
  // M4
  if (failed(lengthsOf(*this, getLengths(), scores[0])))
    return failure();
  // M5
  if (failed(blocksOf(*this, getBlocks(), getBlockSizes(), scores)))
    return failure();
  if (failed(alignmentOf(*this)))
    return failure();
  // M2
  return positive(*this, getWindow(), getSoftcap());
}

LogicalResult SoftmaxOp::verify() {
  // T1
  return getSinks() ? sameSize(*this, {getSinks(), 0, "sinks", "entries"},
                               {getScores(), 1, "scores", "heads"})
                    : success();
}

LogicalResult LogSumExpOp::verify() {
  // X1
  if (failed(rowsOf(*this, getResult(), "result", getScores(), "scores")))
    return failure();
  // X2
  return getSinks() ? sameSize(*this, {getSinks(), 0, "sinks", "entries"},
                               {getScores(), 1, "scores", "heads"})
                    : success();
}

LogicalResult WeightedSumOp::verify() {
  Value a = getProbs(), v = getValue(), y = getResult();
  // Y1
  if (failed(sameSize(*this, {a, 0, "weights", "batch size"},
                      {v, 0, "value", "batch size"})))
    return failure();
  // Y2
  if (failed(headsShare(*this, a, v, "value")))
    return failure();
  // Y3
  if (failed(sameSize(*this, {a, 3, "weights", "keys"},
                      {v, 2, "value", "length"})))
    return failure();
  // Y4
  if (failed(rowsOf(*this, y, "result", a, "weights")))
    return failure();
  return sameWidth(*this, {y, 3, "result", "width"}, {v, 3, "value", "width"});
}

LogicalResult AttentionOp::verify() {
  if (failed(verifyAttention(*this)))
    return failure();
  // A4
  if (failed(perHead(*this, getSinks(), "sinks", getQuery())))
    return failure();
  // A6
  Value y = getResult();
  if (failed(rowsOf(*this, y, "result", getQuery(), "query")) ||
      failed(sameWidth(*this, {y, 3, "result", "width"},
                       {getValue(), 3, "value", "width"})))
    return failure();
  return getLse() ? rowsOf(*this, getLse(), "lse", getQuery(), "query")
                  : success();
}

LogicalResult AttentionWeightsOp::verify() {
  if (failed(verifyScores(*this)))
    return failure();
  // W6
  if (failed(rowsOf(*this, getLse(), "lse", getQuery(), "query")))
    return failure();
  // W8
  Value q = getQuery(), dest = getDest();
  if (failed(sameSize(*this, {dest, 0, "dest", "batch size"},
                      {q, 0, "query", "batch size"})) ||
      failed(sameSize(*this, {dest, 2, "dest", "queries"},
                      {q, 2, "query", "length"})) ||
      failed(sameSize(*this, {dest, 3, "dest", "keys"},
                      {getKey(), 2, "key", "length"})))
    return failure();
  NamedSize asked{dest, 1, "dest", "heads"}, heads{q, 1, "query", "heads"};
  int64_t first = getFromHead();
  if (first < 0 ||
      (asked.known() && heads.known() && first + asked.get() > heads.get()))
    return emitOpError("asks for ") << asked.get() << " heads from " << first
                                    << " on, but there are " << heads.get();
  return success();
}

int64_t RelativeBiasOp::getBuckets() {
  int64_t all = getTable().getType().getDimSize(0);
  return getBidirectional() ? all / 2 : all;
}

SmallVector<int32_t> RelativeBiasOp::computeBuckets() {
  auto size = static_cast<int32_t>(getBuckets()), exact = size / 2;
  int64_t most = getMaxDistance();
  // In f32 as published: a distance right at a boundary falls on the side that
  // the rounding of the logarithm puts it on.
  float range = static_cast<float>(
      std::log(static_cast<double>(most) / static_cast<double>(exact)));
  SmallVector<int32_t> buckets;
  for (int64_t distance = 0; distance <= most; ++distance) {
    if (distance < exact) {
      buckets.push_back(static_cast<int32_t>(distance));
      continue;
    }
    float ratio = static_cast<float>(distance) / static_cast<float>(exact);
    float share = std::log(ratio) / range * static_cast<float>(size - exact);
    buckets.push_back(std::min(exact + static_cast<int32_t>(share), size - 1));
  }
  return buckets;
}

LogicalResult RelativeBiasOp::verify() {
  // B1
  RankedTensorType table = getTable().getType();
  int64_t least = getBidirectional() ? 4 : 2;
  if (table.isDynamicDim(0) || table.getDimSize(0) < least)
    return emitOpError("needs a table of ")
           << least << " buckets or more, not " << table;
  if (failed(sameSize(*this, {getResult(), 0, "result", "heads"},
                      {getTable(), 1, "table", "heads"})))
    return failure();
  // B2
  int64_t exact = getBuckets() / 2, most = getMaxDistance();
  if (most <= exact || most > 1 << 24)
    return emitOpError("has max_distance ")
           << most << ", but it must be from " << exact + 1 << " to 16777216";
  return success();
}

LogicalResult SplitHeadsOp::verify() {
  Value x = getInput(), y = getResult();
  int64_t heads = getType().getDimSize(1), width = getType().getDimSize(3);
  // H2
  if (ShapedType::isDynamic(heads) || ShapedType::isDynamic(width))
    return emitOpError("needs static heads and width, but its result is ")
           << getType();
  // H1
  int64_t begin = getOffset();
  NamedSize columns{x, 2, "input", "width"};
  if (begin < 0 ||
      (columns.known() &&
       (begin > columns.get() || heads * width > columns.get() - begin))) {
    InFlightDiagnostic diag = emitOpError("takes ")
                              << heads << " heads of " << width
                              << " columns from column " << begin
                              << ", but the input";
    if (columns.known())
      diag << " has " << columns.get() << " columns";
    else
      diag << " begins at column 0";
    diag.attachNote(x.getLoc()) << "input comes from here";
    return diag;
  }
  // H3
  if (failed(sameSize(*this, {y, 0, "result", "batch size"},
                      {x, 0, "input", "batch size"})) ||
      failed(sameSize(*this, {y, 2, "result", "length"},
                      {x, 1, "input", "length"})))
    return failure();
  return success();
}

LogicalResult MergeHeadsOp::verify() {
  // J1
  Value x = getInput(), y = getResult();
  if (failed(sameSize(*this, {y, 0, "result", "batch size"},
                      {x, 0, "input", "batch size"})) ||
      failed(sameSize(*this, {y, 1, "result", "length"},
                      {x, 2, "input", "length"})))
    return failure();
  NamedSize heads{x, 1, "input", "heads"}, width{x, 3, "input", "width"};
  if (heads.known() && width.known() &&
      failed(sizeIs(*this, {y, 2, "result", "width"}, heads.get() * width.get(),
                    Twine(heads.get()) + " heads of " + Twine(width.get()) +
                        " make")))
    return failure();
  if (getInput().getType().getElementType() != getType().getElementType())
    return emitOpError("has an input of ")
           << getInput().getType().getElementType() << ", but a result of "
           << getType().getElementType();
  return success();
}

/// The same columns taken apart and put together again.
static bool undoes(SplitHeadsOp split, MergeHeadsOp merge) {
  RankedTensorType heads = split.getType();
  int64_t columns = split.getInput().getType().getDimSize(2);
  return split.getOffset() == 0 && heads == merge.getInput().getType() &&
         heads.getElementType() ==
             split.getInput().getType().getElementType() &&
         heads.getDimSize(1) * heads.getDimSize(3) == columns;
}

OpFoldResult SplitHeadsOp::fold(FoldAdaptor) {
  auto merge = getInput().getDefiningOp<MergeHeadsOp>();
  return merge && undoes(*this, merge) ? merge.getInput() : OpFoldResult();
}

OpFoldResult MergeHeadsOp::fold(FoldAdaptor) {
  auto split = getInput().getDefiningOp<SplitHeadsOp>();
  bool whole =
      split && undoes(split, *this) && split.getInput().getType() == getType();
  return whole ? split.getInput() : OpFoldResult();
}

/// Attention widens 16 bits itself, so that heads need not be wider in memory.
static LogicalResult dropWidening(Operation *op, unsigned numHeads,
                                  PatternRewriter &rewriter) {
  LogicalResult dropped = failure();
  for (OpOperand &heads : op->getOpOperands().take_front(numHeads))
    if (auto wide = heads.get().getDefiningOp<arith::ExtFOp>()) {
      rewriter.modifyOpInPlace(op, [&] { heads.set(wide.getIn()); });
      dropped = success();
    }
  return dropped;
}

LogicalResult AttentionOp::canonicalize(AttentionOp op,
                                        PatternRewriter &rewriter) {
  return dropWidening(op, 3, rewriter);
}

LogicalResult AttentionWeightsOp::canonicalize(AttentionWeightsOp op,
                                               PatternRewriter &rewriter) {
  return dropWidening(op, 2, rewriter);
}

OpFoldResult MaskScoresOp::fold(FoldAdaptor) {
  bool idle = ScoreModifiers::of(*this).onlyScales();
  return idle ? getScores() : OpFoldResult();
}

LogicalResult
AttentionWeightsOp::reifyResultShapes(OpBuilder &builder,
                                      ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getDest(), shapes);
}

LogicalResult
SimilarityOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(
      builder, getLoc(), getResult(),
      {{getQuery(), 0}, {getQuery(), 1}, {getQuery(), 2}, {getKey(), 2}},
      shapes);
}

LogicalResult
MaskScoresOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getScores(), shapes);
}

LogicalResult
SoftmaxOp::reifyResultShapes(OpBuilder &builder,
                             ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getScores(), shapes);
}

LogicalResult
WeightedSumOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return reifySizes(
      builder, getLoc(), getResult(),
      {{getProbs(), 0}, {getProbs(), 1}, {getProbs(), 2}, {getValue(), 3}},
      shapes);
}

LogicalResult
AttentionOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reifySizes(
          builder, getLoc(), getResult(),
          {{getQuery(), 0}, {getQuery(), 1}, {getQuery(), 2}, {getValue(), 3}},
          shapes)))
    return failure();
  return getLse() ? reifyAs(builder, getLoc(), getLse(), getQuery(), shapes)
                  : success();
}

LogicalResult
SplitHeadsOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  // Only the type says how the width splits into heads.
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, {}, {getInput(), 1}, {}}, shapes);
}

LogicalResult
RelativeBiasOp::reifyResultShapes(OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  OpFoldResult diagonals;
  if (getType().isDynamicDim(1)) {
    Value one = arith::ConstantIndexOp::create(builder, getLoc(), 1);
    Value sum =
        builder.createOrFold<arith::AddIOp>(getLoc(), getQueries(), getKeys());
    diagonals = builder.createOrFold<arith::SubIOp>(getLoc(), sum, one);
  }
  return reifySizes(builder, getLoc(), getResult(),
                    {{getTable(), 1}, diagonals}, shapes);
}

LogicalResult
MergeHeadsOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  OpFoldResult width;
  if (getType().isDynamicDim(2)) {
    auto size = [&](int64_t dim) {
      return getValueOrCreateConstantIndexOp(
          builder, getLoc(),
          tensor::getMixedSize(builder, getLoc(), getInput(), dim));
    };
    width = builder.createOrFold<arith::MulIOp>(getLoc(), size(1), size(3));
  }
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, {getInput(), 2}, width}, shapes);
}

LogicalResult
LogSumExpOp::reifyResultShapes(OpBuilder &builder,
                               ReifiedRankedShapedTypeDims &shapes) {
  return reifyAs(builder, getLoc(), getResult(), getScores(), shapes);
}
