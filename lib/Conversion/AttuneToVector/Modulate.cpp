//===- Modulate.cpp - Channels scaled by a condition ------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerModulate final : OpRewritePattern<ModulateOp> {
  LowerModulate(MLIRContext *context, int64_t lanes)
      : OpRewritePattern(context), lanes(lanes) {}

  LogicalResult matchAndRewrite(ModulateOp op,
                                PatternRewriter &rewriter) const override {
    RankedTensorType type = op.getType();
    int64_t width = type.getDimSize(2);
    if (ShapedType::isDynamic(width))
      return rewriter.notifyMatchFailure(op, "the width is dynamic");
    KernelBuilder k(rewriter, op.getLoc());
    Value tokens = k.dim(op.getInput(), 1);
    Value input = asRows(k, op.getInput());
    // The residual's memory takes the result.
    Value dest = op.getResidual() ? asRows(k, op.getResidual())
                                  : emptyRows(k, op.getInput(), width,
                                              type.getElementType());
    Value rows =
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          Value batch = arith::DivUIOp::create(k.b, k.loc, row, tokens);
          auto column = [&](Value at, int64_t first, Value valid) {
            Value from = k.add(at, k.index(first));
            return k.load(op.getCondition(), {batch, from}, lanes, valid);
          };
          return forColumns(
              k, width, lanes, tile,
              [&](KernelBuilder &k, Value at, Value valid, ValueRange c) {
                Value x = k.load(input, {row, at}, lanes, valid);
                Value scale =
                    column(at, static_cast<int64_t>(op.getScale()), valid);
                double offset = op.getOffset().convertToDouble();
                if (offset != 0)
                  scale = arith::AddFOp::create(k.b, k.loc, scale,
                                                k.splat(offset, lanes));
                Value y = arith::MulFOp::create(k.b, k.loc, x, scale);
                if (auto shift = op.getShift())
                  y = arith::AddFOp::create(
                      k.b, k.loc, y,
                      column(at, static_cast<int64_t>(*shift), valid));
                if (op.getResidual())
                  y = arith::AddFOp::create(
                      k.b, k.loc, y,
                      k.load(c[0], {k.index(0), at}, lanes, valid));
                return KernelBuilder::Values{
                    k.store(y, c[0], {k.index(0), at}, valid)};
              })[0];
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }
  int64_t lanes;
};

} // namespace

void populateModulatePatterns(RewritePatternSet &patterns,
                              const VectorLowering &lowering) {
  patterns.add<LowerModulate>(patterns.getContext(), lowering.lanes);
}

} // namespace attune
