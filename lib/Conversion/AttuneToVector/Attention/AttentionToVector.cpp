//===- AttentionToVector.cpp - The pass for rung 5 --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNEONLINETOVECTOR
#include "attune/Conversion/Passes.h.inc"

namespace {
struct ConvertAttuneOnlineToVector final
    : impl::ConvertAttuneOnlineToVectorBase<ConvertAttuneOnlineToVector> {
  using Base::Base;

  void runOnOperation() override {
    if (lanes < 8 || lanes % 8 != 0 || rows < 1 || valueBytes < 1 ||
        fetchBytes < 0 || nearBytes < 0 || unrolled < 0) {
      getOperation().emitError(
          "lanes must be a positive multiple of 8, rows and value-bytes "
          "positive, fetch-bytes, near-bytes and unrolled 0 or positive");
      return signalPassFailure();
    }
    RewritePatternSet patterns(&getContext());
    populateOnlineAttentionPatterns(patterns,
                                    {lanes, rows, pairs, matrix, valueBytes,
                                     fetchBytes, nearBytes, unrolled});
    populateOnlineStatePatterns(patterns, {lanes, rows});
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    getOperation().walk([&](OnlineAttentionOp op) {
      op.emitOpError("needs static heads and widths, and numbers of queries "
                     "and keys bounded by constants");
      signalPassFailure();
    });
  }
};
} // namespace
} // namespace attune
