//===- ParallelLoops.cpp - scf.forall and scf.parallel as one ---*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/ParallelLoops.h"

#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attune {

FailureOr<ParallelLoop> ParallelLoop::get(Operation *loop) {
  if (auto forall = dyn_cast<scf::ForallOp>(loop)) {
    if (!forall.getResults().empty())
      return forall.emitOpError("is not bufferized");
    return ParallelLoop{SmallVector<Value>(forall.getInductionVars()),
                        forall.getMixedLowerBound(),
                        forall.getMixedUpperBound(), forall.getMixedStep(),
                        forall.getBody()};
  }
  auto parallel = cast<scf::ParallelOp>(loop);
  if (!parallel.getResults().empty())
    return parallel.emitOpError("reduces across threads");
  return ParallelLoop{SmallVector<Value>(parallel.getInductionVars()),
                      getAsOpFoldResult(parallel.getLowerBound()),
                      getAsOpFoldResult(parallel.getUpperBound()),
                      getAsOpFoldResult(parallel.getStep()),
                      parallel.getBody()};
}

Value ParallelLoop::count(OpBuilder &b, Location loc, unsigned i) const {
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  Value count = value(upper[i]);
  if (!isZeroInteger(lower[i]))
    count = arith::SubIOp::create(b, loc, count, value(lower[i]));
  if (!isOneInteger(step[i]))
    count = arith::CeilDivSIOp::create(b, loc, count, value(step[i]));
  return count;
}

Value ParallelLoop::at(OpBuilder &b, Location loc, unsigned i,
                       Value number) const {
  auto value = [&](OpFoldResult size) {
    return getValueOrCreateConstantIndexOp(b, loc, size);
  };
  if (!isOneInteger(step[i]))
    number = arith::MulIOp::create(b, loc, number, value(step[i]));
  if (!isZeroInteger(lower[i]))
    number = arith::AddIOp::create(b, loc, number, value(lower[i]));
  return number;
}

SmallVector<Operation *> findParallelLoops(func::FuncOp func) {
  SmallVector<Operation *> loops;
  func.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<scf::ForallOp, scf::ParallelOp>(op))
      return WalkResult::advance();
    loops.push_back(op);
    return WalkResult::skip();
  });
  return loops;
}

} // namespace attune
