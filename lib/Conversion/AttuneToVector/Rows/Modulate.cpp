//===- Modulate.cpp - Channels scaled by a condition ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Patterns.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerModulate final : OpRewritePattern<ModulateOp> {
  LowerModulate(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(ModulateOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    int64_t width = type.getDimSize(2), lanes = lowering.lanes;
    if (ShapedType::isDynamic(width))
      return rewriter.notifyMatchFailure(op, "the width is dynamic");
    KernelBuilder k(rewriter, op.getLoc());
    Value tokens = k.dim(op.getInput(), 1);
    Value input = asRows(k, op.getInput());
    // The residual's memory takes the result.
    Value dest = op.getResidual() ? asRows(k, op.getResidual())
                                  : emptyRows(k, op.getInput(), width,
                                              type.getElementType());
    Value rows = forallVectors(
        k, dest, lowering,
        [&](KernelBuilder &k, Value row, Value column, Value valid, Value tile,
            ValueRange at) {
          Value batch = arith::DivUIOp::create(k.b, k.loc, row, tokens);
          auto condition = [&](int64_t first) {
            Value from = k.add(column, k.index(first));
            return k.load(op.getCondition(), {batch, from}, lanes, valid);
          };
          Value scale = condition(static_cast<int64_t>(op.getScale()));
          double offset = op.getOffset().convertToDouble();
          if (offset != 0)
            scale = arith::AddFOp::create(k.b, k.loc, scale,
                                          k.splat(offset, lanes));
          Value y = arith::MulFOp::create(
              k.b, k.loc, k.load(input, {row, column}, lanes, valid), scale);
          if (auto shift = op.getShift())
            y = arith::AddFOp::create(k.b, k.loc, y,
                                      condition(static_cast<int64_t>(*shift)));
          if (op.getResidual())
            y = arith::AddFOp::create(k.b, k.loc, y,
                                      k.load(tile, at, lanes, valid));
          return k.store(y, tile, at, valid);
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }
  VectorLowering lowering;
};

} // namespace

void populateModulatePatterns(RewritePatternSet &patterns,
                              const VectorLowering &lowering) {
  patterns.add<LowerModulate>(patterns.getContext(), lowering);
}

} // namespace attune
