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

/// The outermost scf.for or scf.if around `op` if there is nothing else around
/// it up to the function.
Operation *outermostAround(Operation *op) {
  Operation *outermost = nullptr;
  for (Operation *parent = op->getParentOp(); !isa<func::FuncOp>(parent);
       parent = parent->getParentOp()) {
    if (!isa<scf::ForOp, scf::IfOp>(parent))
      return nullptr;
    outermost = parent;
  }
  return outermost;
}

/// Moves what computes `value` in front of `around`, or says that it cannot. A
/// size divides by what is never zero, whether the branch is taken or not.
bool moveBefore(Value value, Operation *around) {
  if (!around->isAncestor(value.getParentBlock()->getParentOp()))
    return true;
  Operation *op = value.getDefiningOp();
  if (!op || !isMemoryEffectFree(op) || op->getNumRegions() != 0)
    return false;
  if (!llvm::all_of(op->getOperands(),
                    [&](Value operand) { return moveBefore(operand, around); }))
    return false;
  op->moveBefore(around);
  return true;
}

struct HoistBuffers final : impl::HoistBuffersBase<HoistBuffers> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      SmallVector<memref::AllocOp> allocs;
      func.walk([&](memref::AllocOp alloc) {
        if (outermostAround(alloc))
          allocs.push_back(alloc);
      });
      if (allocs.empty())
        continue;
      BufferViewFlowAnalysis aliases(func);
      for (memref::AllocOp alloc : allocs) {
        Operation *around = outermostAround(alloc);
        bool handedOn =
            llvm::any_of(aliases.resolve(alloc.getMemref()), [](Value alias) {
              return llvm::any_of(alias.getUsers(), [](Operation *user) {
                return isa<scf::YieldOp>(user) &&
                       isa<scf::ForOp>(user->getParentOp());
              });
            });
        if (handedOn || !llvm::all_of(alloc.getDynamicSizes(), [&](Value size) {
              return moveBefore(size, around);
            }))
          continue;
        alloc->moveBefore(around);
        ++numHoisted;
      }
    }
  }
};
} // namespace
} // namespace attune
