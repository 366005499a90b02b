//===- GroupedProducts.cpp - Stacks of matrices for blocks of threads -----===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Mixtures of experts and layers with a matrix for each head are products that
// a block of threads computes together: this file only says which rows take
// which matrix. As in Experts.cpp rows come through the sorted order, and each
// token sums what its slots gave in the order the router named them; but the
// host does not read the number of tasks: a block whose task has no rows
// returns.

#include "../Matmul/PanelProduct.h"

#include "Attune/AttuneGroupOps.h"
#include "attune/TargetInfo/GpuTiles.h"

using namespace mlir;

namespace attune {
namespace {

RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

Value emptyLike(KernelBuilder &k, ArrayRef<OpFoldResult> sizes, Type type) {
  return tensor::EmptyOp::create(k.b, k.loc, sizes, type);
}

/// A matrix for each expert or head, of few bits if there are scales.
struct Stack {
  Value matrices, scales;
  bool zeros = false;
};

/// A product of `layer`, which may have a schedule.
Value intoStack(KernelBuilder &k, Operation *layer, Value input, Stack stack,
                Value tasks, Value from, Value bias, Value dest,
                Activation activation = Activation::Identity,
                bool gated = false, FloatAttr limit = {},
                const APFloat &upOffset = APFloat(0.0f)) {
  auto into = GroupedLinearIntoOp::create(
      k.b, k.loc, dest.getType(), input, stack.matrices, stack.scales, tasks,
      from, bias, dest, activation, gated, limit, upOffset, stack.zeros);
  keepSchedule(layer, into);
  return into.getResult();
}

/// Both stacks of a mixture, in panels, and the width between them.
struct Stacks {
  Stack up, down;
  int64_t hidden;
};

Stacks stacksOf(KernelBuilder &k, MoEOp op, int64_t lanes) {
  Value up = op.getUp(), down = op.getDown();
  if (typeOf(up).getRank() == 3)
    up = packMatrix(k, up, lanes, op.getGated());
  if (typeOf(down).getRank() == 3)
    down = packMatrix(k, down, lanes, /*gated=*/false);
  return {{up, Value()}, {down, Value()}, typeOf(down).getDimSize(2)};
}

Stacks stacksOf(KernelBuilder &, QuantizedMoEOp op, int64_t) {
  return {{op.getUp(), op.getUpScales(), op.getUpZeros()},
          {op.getDown(), op.getDownScales(), op.getDownZeros()},
          static_cast<int64_t>(op.getHidden())};
}

bool takesRows(MoEOp) { return true; }
/// Numbers in panels, not rounded to bytes.
bool takesRows(QuantizedMoEOp op) {
  return !op.getInputScales() && typeOf(op.getUp()).getRank() == 4;
}

/// Lowers MoEOp and QuantizedMoEOp.
template <typename Op> struct LowerExperts final : OpRewritePattern<Op> {
  LowerExperts(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern<Op>(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(Op op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    int64_t active = typeOf(op.getExperts()).getShape().back();
    if (type.getRank() > 3 || type.getRank() < 2)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    if (typeOf(op.getUp()).isDynamicDim(0) || active < 1)
      return rewriter.notifyMatchFailure(op, "needs numbers of experts");
    if (!takesRows(op))
      return rewriter.notifyMatchFailure(op, "multiplies rows of floats only");
    KernelBuilder k(rewriter, op.getLoc());
    Stacks stacks = stacksOf(k, op, lowering.lanes);
    Value up = stacks.up.matrices, down = stacks.down.matrices;
    int64_t experts = typeOf(up).getDimSize(0);
    int64_t width = stacks.hidden, out = type.getShape().back();

    Type i64 = rewriter.getI64Type(), f32 = rewriter.getF32Type();
    Value slots = k.mul(countRows(k, op.getInput()), active);
    OpFoldResult numSlots = getAsOpFoldResult(slots);
    Value numTasks =
        k.add(arith::DivUIOp::create(k.b, k.loc, slots, k.index(kTaskRows)),
              k.index(experts));
    Value tasks =
        emptyLike(k, {getAsOpFoldResult(numTasks), k.b.getIndexAttr(3)}, i64);
    Value from = emptyLike(k, {numSlots}, i64);
    Value places = emptyLike(k, {numSlots}, i64);
    auto order = ExpertTasksIntoOp::create(
        k.b, k.loc,
        TypeRange{tasks.getType(), from.getType(), places.getType()},
        asRows(k, op.getExperts()), tasks, from, places, experts, kTaskRows);
    tasks = order->getResult(0);

    // Tensor cores multiply bf16 by bf16, which few bits become; f16 might have
    // no room for it.
    auto isBF16 = [](Value v) { return typeOf(v).getElementType().isBF16(); };
    bool narrow = isBF16(op.getInput()) && (stacks.up.scales || isBF16(up)) &&
                  (stacks.down.scales || isBF16(down));
    Type hiddenType =
        narrow && width % 2 == 0 ? Type(rewriter.getBF16Type()) : f32;
    // Slot by slot in sorted order: the hidden layer, then the result.
    Value hidden = intoStack(
        k, op, asRows(k, op.getInput()), stacks.up, tasks, order->getResult(1),
        op.getUpBias(),
        emptyLike(k, {numSlots, k.b.getIndexAttr(width)}, hiddenType),
        op.getActivation(), op.getGated(), op.getLimitAttr(), op.getUpOffset());
    Value results = intoStack(
        k, op, hidden, stacks.down, tasks, /*from=*/Value(), op.getDownBias(),
        emptyLike(k, {numSlots, k.b.getIndexAttr(out)}, f32));

    // A slot of another rank's expert has no place, and gives nothing here.
    Value chosen;
    if (op->template getParentOfType<ModuleOp>()->hasAttr("attune.ranks"))
      chosen = asRows(k, op.getExperts());
    Value weights = asRows(k, op.getWeights());
    Value dest = op.getResidual()
                     ? asRows(k, op.getResidual())
                     : emptyRows(k, op.getInput(), out, type.getElementType());
    auto part = [&](KernelBuilder &k, Value token, Value a, Value column,
                    Value valid) -> Value {
      Value place =
          tensor::ExtractOp::create(k.b, k.loc, order->getResult(2),
                                    ValueRange{k.add(k.mul(token, active), a)});
      place = arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), place);
      Value here;
      if (chosen) {
        Value expert =
            tensor::ExtractOp::create(k.b, k.loc, chosen, ValueRange{token, a});
        expert =
            arith::IndexCastOp::create(k.b, k.loc, k.b.getIndexType(), expert);
        here = arith::CmpIOp::create(k.b, k.loc, arith::CmpIPredicate::ult,
                                     expert, k.index(experts));
        place = arith::SelectOp::create(k.b, k.loc, here, place, k.index(0));
      }
      Value weight = k.splat(k.loadScalar(weights, {token, a}), lowering.lanes);
      Value given = arith::MulFOp::create(
          k.b, k.loc, k.load(results, {place, column}, lowering.lanes, valid),
          weight);
      if (chosen)
        given = arith::SelectOp::create(k.b, k.loc, here, given,
                                        k.splat(k.f32(0), lowering.lanes));
      return given;
    };
    Value rows =
        sumSlots(k, dest, lowering, active, bool(op.getResidual()), part);
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }

  VectorLowering lowering;
};

struct LowerHeadLinear final : OpRewritePattern<HeadLinearOp> {
  LowerHeadLinear(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(HeadLinearOp op,
                                PatternRewriter &rewriter) const override {
    KernelBuilder k(rewriter, op.getLoc());
    auto type = cast<RankedTensorType>(op.getType());
    Value weight = op.getWeight();
    if (typeOf(weight).getRank() == 3)
      weight = packMatrix(k, weight, lowering.lanes, /*gated=*/false);
    SmallVector<OpFoldResult> sizes;
    for (int64_t dim = 0; dim < 3; ++dim)
      sizes.push_back(getAsOpFoldResult(k.dim(op.getInput(), dim)));
    sizes.push_back(k.b.getIndexAttr(type.getDimSize(3)));
    Value dest = emptyLike(k, sizes, type.getElementType());
    // Samples and heads are the batches: the head is the batch's remainder.
    SmallVector<ReassociationIndices> groups = {{0, 1}, {2}, {3}};
    auto batches = [&](Value heads) -> Value {
      return tensor::CollapseShapeOp::create(k.b, k.loc, heads, groups);
    };
    Value made = intoStack(k, op, batches(op.getInput()), {weight, Value()},
                           /*tasks=*/Value(), /*from=*/Value(),
                           /*bias=*/Value(), batches(dest));
    Value result = tensor::ExpandShapeOp::create(k.b, k.loc, dest.getType(),
                                                 made, groups, sizes);
    if (result.getType() != type)
      result = tensor::CastOp::create(k.b, k.loc, type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

  VectorLowering lowering;
};

} // namespace

void populateGroupedProductPatterns(RewritePatternSet &patterns,
                                    const VectorLowering &lowering) {
  patterns
      .add<LowerExperts<MoEOp>, LowerExperts<QuantizedMoEOp>, LowerHeadLinear>(
          patterns.getContext(), lowering);
}

} // namespace attune
