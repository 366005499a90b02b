//===- AttuneScores.cpp - What happens to a score of attention --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneScores.h"

using namespace mlir;

namespace attune {

void replaceWithLadder(RewriterBase &rewriter, AttentionOp op) {
  OpBuilder::InsertionGuard guard(rewriter);
  rewriter.setInsertionPoint(op);
  Location loc = op.getLoc();
  RankedTensorType query = op.getQuery().getType();
  auto scoresType = RankedTensorType::get(
      {query.getDimSize(0), query.getDimSize(1), query.getDimSize(2),
       op.getKey().getType().getDimSize(2)},
      rewriter.getF32Type());

  Value scores = SimilarityOp::create(rewriter, loc, scoresType, op.getQuery(),
                                      op.getKey(), op.getScaleAttr());
  if (!ScoreModifiers::of(op).onlyScales())
    scores = MaskScoresOp::create(
        rewriter, loc, scoresType, scores, op.getMask(), op.getBias(),
        op.getDiagonals(), op.getSlopes(), op.getLengths(), op.getBlocks(),
        op.getCausalAttr(), op.getWindowAttr(), op.getSoftcapAttr(),
        op.getBlockSizesAttr());
  Value probs =
      SoftmaxOp::create(rewriter, loc, scoresType, scores, op.getSinks());
  auto result = WeightedSumOp::create(rewriter, loc, op.getResult().getType(),
                                      probs, op.getValue());
  result->setDiscardableAttrs(op->getDiscardableAttrDictionary());
  SmallVector<Value> results = {result};
  if (op.getLse())
    results.push_back(LogSumExpOp::create(rewriter, loc, op.getLse().getType(),
                                          scores, op.getSinks()));
  rewriter.replaceOp(op, results);
}

} // namespace attune
