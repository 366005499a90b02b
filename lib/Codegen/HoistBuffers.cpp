//===- HoistBuffers.cpp - One buffer for all turns of a loop ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_HOISTBUFFERS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// The outermost scf.for around `op` if nothing but scf.for is around it up to
/// the function.
scf::ForOp outermostLoop(Operation *op) {
  scf::ForOp outermost;
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent);
       parent = parent->getParentOp()) {
    auto loop = dyn_cast<scf::ForOp>(parent);
    if (!loop)
      return {};
    outermost = loop;
  }
  return outermost;
}

/// Moves what computes `value` in front of `loop`, or says that it cannot.
bool moveBefore(Value value, scf::ForOp loop) {
  if (loop.isDefinedOutsideOfLoop(value))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return false;
  if (!llvm::all_of(op->getOperands(),
                    [&](Value operand) { return moveBefore(operand, loop); }))
    return false;
  op->moveBefore(loop);
  return true;
}

struct HoistBuffers final : impl::HoistBuffersBase<HoistBuffers> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      SmallVector<memref::AllocOp> allocs;
      func.walk([&](memref::AllocOp alloc) {
        if (outermostLoop(alloc))
          allocs.push_back(alloc);
      });
      if (allocs.empty())
        continue;
      BufferViewFlowAnalysis aliases(func);
      for (memref::AllocOp alloc : allocs) {
        scf::ForOp loop = outermostLoop(alloc);
        bool handedOn =
            llvm::any_of(aliases.resolve(alloc.getMemref()), [](Value alias) {
              return llvm::any_of(alias.getUsers(), [](Operation *user) {
                return isa<scf::YieldOp>(user) &&
                       isa<scf::ForOp>(user->getParentOp());
              });
            });
        if (handedOn || !llvm::all_of(alloc.getDynamicSizes(), [&](Value size) {
              return moveBefore(size, loop);
            }))
          continue;
        alloc->moveBefore(loop);
        ++numHoisted;
      }
    }
  }
};
} // namespace
} // namespace attune
