//===- KernelIntrinsics.cpp - Intrinsics that PTX has -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_KERNELINTRINSICS
#include "attune/Target/PTX/Passes.h.inc"

namespace {
struct KernelIntrinsics final : impl::KernelIntrinsicsBase<KernelIntrinsics> {
  using Base::Base;
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa<LLVM::SqrtOp, LLVM::FAbsOp, LLVM::FCeilOp, LLVM::FFloorOp,
               LLVM::FTruncOp, LLVM::RoundEvenOp, LLVM::FMAOp,
               LLVM::CopySignOp>(op))
        return;
      OpBuilder b(op);
      // llvm.intr.sqrt is the op of the intrinsic llvm.sqrt.
      StringRef name = op->getName().stripDialect();
      name.consume_front("intr.");
      auto call = LLVM::CallIntrinsicOp::create(
          b, op->getLoc(), op->getResult(0).getType(),
          b.getStringAttr("llvm." + name), op->getOperands());
      op->getResult(0).replaceAllUsesWith(call->getResult(0));
      op->erase();
    });
  }
};
} // namespace
} // namespace attune
