//===- ExpectStage.cpp - Which pipeline has to come before ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Pipelines/Passes.h"

#include "mlir/Dialect/Bufferization/IR/BufferizableOpInterface.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_EXPECTSTAGE
#include "attune/Pipelines/Passes.h.inc"

namespace {

bool hasTensor(Operation *op) {
  auto isTensor = llvm::IsaPred<TensorType>;
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
         llvm::any_of(op->getResultTypes(), isTensor);
}

bool isOurs(Operation *op) { return isa<AttuneDialect>(op->getDialect()); }

/// Weights become memory by themselves.
bool staysOnTensors(Operation *op) {
  return op->getDialect() && isOurs(op) && hasTensor(op) &&
         !isa<WeightGetOp, bufferization::BufferizableOpInterface>(op);
}

bool isParallelOrOurs(Operation *op) {
  return op->getDialect() && (isOurs(op) || hasTensor(op) ||
                              isa<scf::ForallOp, scf::ParallelOp>(op));
}

struct ExpectStage final : impl::ExpectStageBase<ExpectStage> {
  using Base::Base;

  void runOnOperation() override {
    bool (*isLeft)(Operation *) = from == "attune-to-tensor" ? staysOnTensors
                                  : from == "attune-to-loops"
                                      ? hasTensor
                                      : isParallelOrOurs;
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      WalkResult result = func.walk([&](Operation *op) {
        if (!isLeft(op))
          return WalkResult::advance();
        op->emitError("the pipeline begins with what --")
            << from << " gives, which leaves no '" << op->getName()
            << "' like this: run that before";
        return WalkResult::interrupt();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
    }
  }
};
} // namespace
} // namespace attune
