//===- AttuneToGPU.cpp - Launches of cooperating threads --------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attention.h"

#include "attune/Analysis/GpuTiles.h"
#include "attune/Conversion/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/NVGPU/IR/NVGPUDialect.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_CONVERTATTUNETOGPU
#include "attune/Conversion/Passes.h.inc"

namespace {
struct ConvertAttuneToGPU final
    : impl::ConvertAttuneToGPUBase<ConvertAttuneToGPU> {
  using Base::Base;

  void runOnOperation() override {
    SmallVector<LinearIntoOp> linears;
    getOperation().walk([&](LinearIntoOp op) { linears.push_back(op); });
    for (LinearIntoOp op : linears) {
      if (!isa<MemRefType>(op.getDest().getType())) {
        op.emitOpError("is not bufferized");
        return signalPassFailure();
      }
      lower(op);
    }
    SmallVector<AttentionIntoOp> attentions;
    getOperation().walk([&](AttentionIntoOp op) { attentions.push_back(op); });
    for (AttentionIntoOp op : attentions) {
      if (!isa<MemRefType>(op.getDest().getType())) {
        op.emitOpError("is not bufferized");
        return signalPassFailure();
      }
      if (failed(lowerAttention(op, multiprocessors)))
        return signalPassFailure();
    }
  }

  void lower(LinearIntoOp op) {
    OpBuilder builder(op);
    BlockBuilder b(builder, op.getLoc());
    LinearKernel kernel(op);
    Value rows = b.sizeOf(op.getDest(), 0);
    auto few = [&](BlockBuilder &b) {
      chooseBelow(
          b, rows, 2, [&](BlockBuilder &b) { kernel.emitForFewRows(b, 1); },
          [&](BlockBuilder &b) { kernel.emitForFewRows(b, 4); });
    };
    auto many = [&](BlockBuilder &b) {
      if (!kernel.fitsTensorCores())
        return kernel.emitForFewRows(b, 4);
      chooseBelow(
          b, rows,
          rowsForLargeTiles(kernel.width() * kernel.parts(), multiprocessors),
          [&](BlockBuilder &b) { kernel.emitTiles(b, kSmallTile); },
          [&](BlockBuilder &b) { kernel.emitTiles(b, kLargeTile); });
    };
    chooseBelow(b, rows, kFewRows + 1, few, many);
    op.erase();
  }
};
} // namespace
} // namespace attune
