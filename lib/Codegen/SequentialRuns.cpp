//===- SequentialRuns.cpp - Code between parallel loops ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/SequentialRuns.h"

#include "Attune/AttuneMeshOps.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attune {

static bool isParallelStep(Operation *op) {
  return isa<scf::ForallOp, scf::ParallelOp, gpu::LaunchOp, func::CallOp,
             AllReduceOp, AllGatherOp, AllMergeOp>(op);
}
static bool holdsParallelStep(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isParallelStep(inner) ? WalkResult::interrupt()
                                     : WalkResult::advance();
      })
      .wasInterrupted();
}
static bool writes(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        auto effects = dyn_cast<MemoryEffectOpInterface>(inner);
        bool write = effects && effects.hasEffect<MemoryEffects::Write>();
        return write ? WalkResult::interrupt() : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Moves sizes and the like in front of the run if code behind it reads them:
/// they must be there on every thread.
static LogicalResult shareResults(SequentialRun &run) {
  SmallPtrSet<Operation *, 16> inside(run.ops.begin(), run.ops.end());
  SmallPtrSet<Operation *, 16> shared;
  SmallVector<Operation *> kept;
  auto usedBehind = [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      Operation *above = op->getBlock()->findAncestorOpInBlock(*user);
      return !inside.contains(above) || shared.contains(above);
    });
  };
  for (Operation *op : llvm::reverse(run.ops)) {
    if (!usedBehind(op) && !isa<memref::AllocaOp>(op)) {
      kept.push_back(op);
      continue;
    }
    if (!isMemoryEffectFree(op) && !isa<memref::AllocaOp>(op))
      return op->emitOpError("writes outside a parallel loop");
    shared.insert(op);
  }
  // The writers at least are kept.
  Operation *front = kept.back();
  for (Operation *op : run.ops)
    if (shared.contains(op) && front->isBeforeInBlock(op))
      op->moveBefore(front);
  run.ops.assign(kept.rbegin(), kept.rend());
  return success();
}

static LogicalResult findRuns(Block &block,
                              SmallVectorImpl<SequentialRun> &runs) {
  SmallVector<Operation *> sinceStep;
  auto close = [&]() -> LogicalResult {
    auto begin = llvm::find_if(sinceStep, writes);
    auto end = llvm::find_if(llvm::reverse(sinceStep), writes).base();
    if (begin != sinceStep.end()) {
      SequentialRun run;
      run.ops.assign(begin, end);
      if (failed(shareResults(run)))
        return failure();
      runs.push_back(std::move(run));
    }
    sinceStep.clear();
    return success();
  };
  for (Operation &op : block.without_terminator()) {
    if (!holdsParallelStep(&op)) {
      sinceStep.push_back(&op);
      continue;
    }
    if (failed(close()))
      return failure();
    if (isParallelStep(&op))
      continue;
    for (Region &region : op.getRegions())
      for (Block &inner : region)
        if (failed(findRuns(inner, runs)))
          return failure();
  }
  return close();
}

LogicalResult findSequentialRuns(func::FuncOp func,
                                 SmallVectorImpl<SequentialRun> &runs) {
  return findRuns(func.getBody().front(), runs);
}

} // namespace attune
