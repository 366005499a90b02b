//===- PrefetchPanels.cpp - Fetch the next panel ----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_PREFETCHPANELS
#include "attune/Codegen/Passes.h.inc"

namespace {
struct PrefetchPanels final : impl::PrefetchPanelsBase<PrefetchPanels> {
  using Base::Base;

  void runOnOperation() override {
    getOperation()->walk([&](scf::ForOp loop) {
      if (loop->removeAttr("attune.prefetch"))
        loop.getBody()->walk(
            [&](vector::TransferReadOp read) { prefetch(loop, read); });
    });
  }

  /// If `read` is the row of a panel [..., panels, K, R] that the loop over K
  /// is at.
  void prefetch(scf::ForOp loop, vector::TransferReadOp read) {
    auto type = dyn_cast<MemRefType>(read.getBase().getType());
    SmallVector<Value> indices(read.getIndices());
    size_t rank = indices.size();
    if (!type || rank < 3 || type.isDynamicDim(rank - 3) ||
        indices[rank - 2] != loop.getInductionVar() ||
        !loop.isDefinedOutsideOfLoop(read.getBase()) ||
        !loop.isDefinedOutsideOfLoop(indices[rank - 3]))
      return;
    OpBuilder b(loop);
    Location loc = read.getLoc();
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    Value last =
        arith::ConstantIndexOp::create(b, loc, type.getDimSize(rank - 3) - 1);
    Value next = arith::AddIOp::create(b, loc, indices[rank - 3], one);
    indices[rank - 3] = arith::MinUIOp::create(b, loc, next, last);
    b.setInsertionPoint(read);
    memref::PrefetchOp::create(b, loc, read.getBase(), indices,
                               /*isWrite=*/false, /*localityHint=*/2,
                               /*isDataCache=*/true);
    ++numPrefetches;
  }
};
} // namespace
} // namespace attune
