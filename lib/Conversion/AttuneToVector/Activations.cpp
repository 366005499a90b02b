//===- Activations.cpp - Activation functions on their own ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Patterns.h"

using namespace mlir;

namespace attune {
namespace {

struct LowerActivation final : OpRewritePattern<ActivationOp> {
  LowerActivation(MLIRContext *context, const VectorLowering &lowering)
      : OpRewritePattern(context), lanes(lowering.lanes) {}

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
        forallRows(k, dest, [&](KernelBuilder &k, Value row, Value tile) {
          return forColumns(k, width, lanes, tile,
                            [&](KernelBuilder &k, Value column, Value valid,
                                ValueRange carried) {
                              Value x =
                                  k.load(input, {row, column}, lanes, valid);
                              x = emitActivation(k, op.getFunction(), x);
                              return KernelBuilder::Values{k.store(
                                  x, carried[0], {k.index(0), column}, valid)};
                            })[0];
        });
    rewriter.replaceOp(op, fromRows(k, rows, type, op.getInput()));
    return success();
  }
  int64_t lanes;
};

} // namespace

void populateActivationPatterns(RewritePatternSet &patterns,
                                const VectorLowering &lowering) {
  patterns.add<LowerActivation>(patterns.getContext(), lowering);
}

} // namespace attune
