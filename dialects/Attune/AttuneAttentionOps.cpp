//===- AttuneAttentionOps.cpp - Verifiers of the attention ladder -*- C++
//-*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneShapes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace attune;

#define GET_OP_CLASSES
#include "Attune/AttuneAttentionOps.cpp.inc"

void AttuneDialect::registerAttentionOps() {
  addOperations<
#define GET_OP_LIST
#include "Attune/AttuneAttentionOps.cpp.inc"
      >();
}

LogicalResult SimilarityOp::verify() { return success(); }
LogicalResult MaskScoresOp::verify() { return success(); }
LogicalResult SoftmaxOp::verify() { return success(); }
LogicalResult LogSumExpOp::verify() { return success(); }
LogicalResult WeightedSumOp::verify() { return success(); }
LogicalResult AttentionOp::verify() { return success(); }
LogicalResult OnlineAttentionOp::verify() { return success(); }
LogicalResult SplitHeadsOp::verify() { return success(); }
LogicalResult MergeHeadsOp::verify() { return success(); }

MutableOperandRange OnlineAttentionOp::getDpsInitsMutable() {
  return MutableOperandRange(*this, getAccMutable().getOperandNumber(), 3);
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
OnlineAttentionOp::reifyResultShapes(OpBuilder &builder,
                                     ReifiedRankedShapedTypeDims &shapes) {
  return success(
      succeeded(reifyAs(builder, getLoc(), getNewAcc(), getAcc(), shapes)) &&
      succeeded(reifyAs(builder, getLoc(), getNewMax(), getMax(), shapes)) &&
      succeeded(reifyAs(builder, getLoc(), getNewSum(), getSum(), shapes)));
}

LogicalResult
OnlineMergeOp::reifyResultShapes(OpBuilder &builder,
                                 ReifiedRankedShapedTypeDims &shapes) {
  return success(
      succeeded(reifyAs(builder, getLoc(), getAcc(), getAcc0(), shapes)) &&
      succeeded(reifyAs(builder, getLoc(), getMax(), getMax0(), shapes)) &&
      succeeded(reifyAs(builder, getLoc(), getSum(), getSum0(), shapes)));
}

LogicalResult
OnlineFinishOp::reifyResultShapes(OpBuilder &builder,
                                  ReifiedRankedShapedTypeDims &shapes) {
  if (failed(reifyAs(builder, getLoc(), getResult(), getAcc(), shapes)))
    return failure();
  return getLse() ? reifyAs(builder, getLoc(), getLse(), getMax(), shapes)
                  : success();
}

LogicalResult
SplitHeadsOp::reifyResultShapes(OpBuilder &builder,
                                ReifiedRankedShapedTypeDims &shapes) {
  // How the width splits into heads is in the type alone.
  return reifySizes(builder, getLoc(), getResult(),
                    {{getInput(), 0}, {}, {getInput(), 1}, {}}, shapes);
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
