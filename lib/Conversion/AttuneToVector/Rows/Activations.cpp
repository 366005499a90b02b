//===- Activations.cpp - Activation functions on their own ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "../Patterns.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerActivation final : OpRewritePattern<ActivationOp> {
  LowerActivation(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lowering(lowering) {}

  LogicalResult matchAndRewrite(ActivationOp op,
                                PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getType());
    if (type.getRank() < 2 || type.getRank() > 3)
      return rewriter.notifyMatchFailure(op, "rank 2 or 3 only");
    int64_t width = type.getShape().back();
    KernelBuilder k(rewriter, op.getLoc());
    Value input = asRows(k, op.getInput());
    Value dest = emptyRows(k, op.getInput(), width, type.getElementType());
    Value rows =
        forallVectors(k, dest, lowering,
                      [&](KernelBuilder &k, Value row, Value column,
                          Value valid, Value tile, ValueRange at) {
                        Value x =
                            k.load(input, {row, column}, lowering.lanes, valid);
                        return k.store(emitActivation(k, op.getFunction(), x),
                                       tile, at, valid);
                      });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }
  VectorLowering lowering;
};

} // namespace

void populateActivationPatterns(RewritePatternSet &patterns,
                                const VectorLowering &lowering) {
  patterns.add<LowerActivation>(patterns.getContext(), lowering);
}

} // namespace attune
