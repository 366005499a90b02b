//===- DependentLaunch.cpp - Kernels that start before the last one ends --===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// Programmatic dependent launch (CUDA C++ Programming Guide): blocks of the
// next kernel take what room the ones of this kernel leave, and wait inside for
// what it writes. So the time between two kernels is not lost, and a kernel
// that says itself where it waits can fetch weights before.

#include "attune/Target/PTX/Passes.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_DEPENDENTLAUNCH
#include "attune/Target/PTX/Passes.h.inc"

namespace {
struct DependentLaunch final : impl::DependentLaunchBase<DependentLaunch> {
  using Base::Base;
  void runOnOperation() override {
    for (auto kernel : getOperation().getOps<gpu::GPUFuncOp>()) {
      // A step's kernel waits for its own parts.
      if (!kernel.isKernel() || isPersistent(kernel))
        continue;
      NVVM::GriddepcontrolOp wait;
      kernel.walk([&](NVVM::GriddepcontrolOp op) { wait = op; });
      if (!wait) {
        auto b = OpBuilder::atBlockBegin(&kernel.getBody().front());
        wait = NVVM::GriddepcontrolOp::create(b, kernel.getLoc(),
                                              NVVM::GridDepActionKind::wait);
      }
      // Not before: kernels would start one after the other, as far ahead as
      // there is room, and what they fetch would not find any in the cache.
      OpBuilder b(&getContext());
      b.setInsertionPointAfter(wait);
      NVVM::GriddepcontrolOp::create(
          b, wait.getLoc(), NVVM::GridDepActionKind::launch_dependents);
    }
  }
};
} // namespace
} // namespace attune
