//===- HeadShards.cpp - Which rank has which heads --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "HeadShards.h"

#include "StateShards.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {

RankedTensorType HeadShards::shareOf(Value value, unsigned) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || type.getRank() < 3 || type.getRank() > 5) {
    emitError(value.getLoc(), "what heads gave cannot be cut among ranks");
    return {};
  }
  int64_t dim = headDim(type), size = type.getDimSize(dim);
  SmallVector<int64_t> shape(type.getShape());
  if (!ShapedType::isDynamic(size) && size % ranks == 0)
    shape[dim] = size / ranks;
  else if (type.getRank() > 3 && !ShapedType::isDynamic(size) &&
           ranks % size == 0)
    shape[dim] = 1; // several ranks have a copy of each
  else {
    emitError(value.getLoc())
        << size << (type.getRank() > 3 ? " heads" : " channels of heads")
        << " cannot be cut in " << ranks
        << " equal parts; --mesh=tp=N takes an N that divides them";
    return {};
  }
  return type.clone(shape);
}

LogicalResult HeadShards::sliceHeads(OpOperand &operand, int64_t dim,
                                     int64_t heads) {
  auto type = cast<RankedTensorType>(operand.get().getType());
  if (marked.contains(operand.get()) || type.getDimSize(dim) == 1)
    return success();
  Operation *op = operand.getOwner();
  if (type.getDimSize(dim) != heads || heads % ranks != 0)
    return op->emitError("cannot cut ")
           << type << " among ranks, which belongs to " << heads << " heads";
  OpBuilder b(op);
  Location loc = op->getLoc();
  Value first = arith::MulIOp::create(
      b, loc, RankOp::create(b, loc),
      arith::ConstantIndexOp::create(b, loc, heads / ranks).getResult());
  SmallVector<OpFoldResult> offsets(type.getRank(), b.getIndexAttr(0)), sizes,
      strides(type.getRank(), b.getIndexAttr(1));
  SmallVector<int64_t> shape(type.getShape());
  offsets[dim] = first;
  shape[dim] = heads / ranks;
  for (int64_t i = 0; i < type.getRank(); ++i)
    sizes.push_back(
        ShapedType::isDynamic(shape[i])
            ? OpFoldResult(
                  tensor::DimOp::create(b, loc, operand.get(), i).getResult())
            : b.getIndexAttr(shape[i]));
  operand.set(tensor::ExtractSliceOp::create(
      b, loc, type.clone(shape), operand.get(), offsets, sizes, strides));
  return success();
}

/// Queries, keys and values by rows, each in the order of its heads.
LogicalResult HeadShards::cutProjection(LinearOp linear) {
  FailureOr<SmallVector<SplitHeadsOp>> splits = splitsOf(linear);
  if (failed(splits))
    return failure();
  std::vector<WeightShards::Range> ranges;
  int64_t next = 0, local = 0;
  for (SplitHeadsOp split : *splits) {
    auto type = cast<RankedTensorType>(split.getType());
    int64_t width = type.getDimSize(3), share = type.getDimSize(1);
    int64_t heads = wholeHeads.lookup(split.getResult());
    // Two readers of the same heads, or columns that nobody reads.
    if (int64_t(split.getOffset()) != next)
      return refuse(split);
    int64_t repeat = std::max<int64_t>(ranks / heads, 1);
    ranges.push_back({next, share * width, share * width, repeat});
    next += heads * width;
    split.setOffset(local);
    local += share * width;
  }
  auto type = cast<RankedTensorType>(linear.getType());
  if (next != type.getDimSize(2))
    return refuse(linear);
  if (failed(weights.cutRows(linear.getWeight(), ranges)) ||
      (linear.getBias() && failed(weights.cutRows(linear.getBias(), ranges))))
    return failure();
  SmallVector<int64_t> shape(type.getShape());
  shape.back() = local;
  linear.getResult().setType(type.clone(shape));
  return success();
}

/// The projection of merged heads by columns, then a sum over all ranks.
LogicalResult HeadShards::cutOutput(LinearOp linear) {
  auto activation = linear.getActivation();
  if (linear.getGated() || activation != Activation::Identity ||
      linear.getRmsEps())
    return refuse(linear);
  if (failed(weights.cutColumns(linear.getWeight())) ||
      (linear.getBias() && failed(weights.keepOnFirst(linear.getBias()))))
    return failure();
  Value residual = linear.getResidual();
  linear.getResidualMutable().clear();
  OpBuilder b(linear);
  b.setInsertionPointAfter(linear);
  Location loc = linear.getLoc();
  Value partial = linear.getResult(), dest = residual;
  auto type = cast<RankedTensorType>(partial.getType());
  if (!dest) {
    SmallVector<Value> sizes;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        sizes.push_back(tensor::DimOp::create(b, loc, partial, dim));
    dest = tensor::EmptyOp::create(b, loc, type, sizes);
  }
  auto sum = AllReduceOp::create(b, loc, type, partial, dest, bool(residual));
  partial.replaceUsesWithIf(sum.getResult(), [&](OpOperand &use) {
    return use.getOwner() != sum && !isa<tensor::DimOp>(use.getOwner());
  });
  return success();
}

LogicalResult HeadShards::cutGate(LinearOp linear) {
  if (linear.getResidual() || linear.getGated())
    return refuse(linear);
  int64_t share = cast<RankedTensorType>(linear.getType()).getDimSize(2);
  WeightShards::Range rows = {0, share, share};
  return success(succeeded(weights.cutRows(linear.getWeight(), {rows})) &&
                 (!linear.getBias() ||
                  succeeded(weights.cutRows(linear.getBias(), {rows}))));
}

LogicalResult HeadShards::run() {
  StateShards states(module, weights);
  WalkResult rules = module.walk([&](DeltaRuleOp rule) -> WalkResult {
    if (failed(states.addRule(rule)))
      return failure();
    return mark(rule.getResult(), 0);
  });
  if (rules.wasInterrupted() || failed(states.follow()))
    return failure();
  WalkResult walked = module.walk([&](SplitHeadsOp split) -> WalkResult {
    return mark(split.getResult(), 0);
  });
  if (walked.wasInterrupted() || failed(follow()))
    return failure();
  for (Operation *op : perHead) {
    // Keys and values may be copied; a copy of queries would count twice.
    int64_t queries = wholeHeads.lookup(op->getOperand(0));
    if (isa<SimilarityOp, AttentionOp>(op) && queries % ranks != 0)
      return op->emitError() << queries << " heads cannot be cut in " << ranks
                             << " equal parts; --mesh=tp=N takes an N that "
                                "divides them";
    int64_t heads = wholeHeads.lookup(op->getOperand(0));
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (!type || marked.contains(operand.get()))
        continue;
      bool scores = isa<MaskScoresOp, SoftmaxOp, AttentionOp>(op);
      bool gains = isa<LayerNormOp, RMSNormOp>(op) && type.getRank() == 2;
      bool vector =
          scores && type.getRank() == 1 && type.getElementType().isF32();
      bool matrix = scores && type.getRank() == 4;
      if ((gains || vector || matrix) &&
          failed(sliceHeads(operand, matrix ? 1 : 0, heads)))
        return failure();
    }
  }
  for (Operation *linear : projections)
    if (failed(cutProjection(cast<LinearOp>(linear))))
      return failure();
  for (Operation *linear : gates)
    if (failed(cutGate(cast<LinearOp>(linear))))
      return failure();
  for (Operation *linear : outputs)
    if (failed(cutOutput(cast<LinearOp>(linear))))
      return failure();
  updateCaches();
  states.updateCaches();
  updateFunctions();
  return success();
}

} // namespace attune
