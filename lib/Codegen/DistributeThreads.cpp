//===- DistributeThreads.cpp - Parallel loops as each thread's share ----*- C++
//-*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_DISTRIBUTETHREADS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// Loops of at least this many dimensions are dealt out in turn.
constexpr unsigned kDealtRank = 3;

struct DistributeThreads final
    : impl::DistributeThreadsBase<DistributeThreads> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      SmallVector<Operation *> loops;
      WalkResult result = func.walk<WalkOrder::PreOrder>([&](Operation *op) {
        if (isa<scf::ForallOp, scf::ParallelOp>(op)) {
          loops.push_back(op);
          return WalkResult::skip();
        }
        // Every thread runs what is outside parallel loops; a write there would
        // race with a faster thread's next step.
        auto effects = dyn_cast<MemoryEffectOpInterface>(op);
        if (effects && effects.hasEffect<MemoryEffects::Write>() &&
            !op->hasTrait<OpTrait::HasRecursiveMemoryEffects>()) {
          op->emitOpError("writes outside a parallel loop");
          return WalkResult::interrupt();
        }
        return WalkResult::advance();
      });
      if (result.wasInterrupted())
        return signalPassFailure();
      if (loops.empty())
        continue;
      OpBuilder b = OpBuilder::atBlockBegin(&func.getBody().front());
      thread = call(b, func.getLoc(), "attune_rt_thread");
      numThreads = call(b, func.getLoc(), "attune_rt_num_threads");
      for (Operation *loop : loops) {
        if (auto forall = dyn_cast<scf::ForallOp>(loop)) {
          if (!forall.getResults().empty() || !forall.isNormalized()) {
            forall.emitOpError("is not bufferized or does not count from zero");
            return signalPassFailure();
          }
          distribute(forall, forall.getInductionVars(),
                     forall.getMixedLowerBound(), forall.getMixedUpperBound(),
                     forall.getMixedStep(), forall.getBody());
        } else {
          auto parallel = cast<scf::ParallelOp>(loop);
          if (!parallel.getResults().empty()) {
            parallel.emitOpError("reduces across threads");
            return signalPassFailure();
          }
          distribute(parallel, parallel.getInductionVars(),
                     getAsOpFoldResult(parallel.getLowerBound()),
                     getAsOpFoldResult(parallel.getUpperBound()),
                     getAsOpFoldResult(parallel.getStep()), parallel.getBody());
        }
      }
    }
  }

  func::FuncOp declare(StringRef name, FunctionType type) {
    ModuleOp module = getOperation();
    if (auto known = module.lookupSymbol<func::FuncOp>(name))
      return known;
    OpBuilder b = OpBuilder::atBlockBegin(module.getBody());
    auto func = func::FuncOp::create(b, module.getLoc(), name, type);
    func.setPrivate();
    return func;
  }

  Value call(OpBuilder &b, Location loc, StringRef name) {
    auto func = declare(name, b.getFunctionType({}, b.getI64Type()));
    Value value = func::CallOp::create(b, loc, func).getResult(0);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), value);
  }

  void distribute(Operation *loop, ValueRange ivs, ArrayRef<OpFoldResult> lower,
                  ArrayRef<OpFoldResult> upper, ArrayRef<OpFoldResult> step,
                  Block *body) {
    OpBuilder b(loop);
    Location loc = loop->getLoc();
    auto value = [&](OpFoldResult size) {
      return getValueOrCreateConstantIndexOp(b, loc, size);
    };
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    SmallVector<Value> counts;
    Value total = one;
    for (auto [lb, ub, st] : llvm::zip(lower, upper, step)) {
      Value count = value(ub);
      if (!isZeroInteger(lb))
        count = arith::SubIOp::create(b, loc, count, value(lb));
      if (!isOneInteger(st))
        count = arith::CeilDivSIOp::create(b, loc, count, value(st));
      counts.push_back(count);
      total = arith::MulIOp::create(b, loc, total, count);
    }
    Value begin = thread, end = total, stride = numThreads;
    if (ivs.size() < kDealtRank) {
      auto share = [&](Value number) -> Value {
        Value product = arith::MulIOp::create(b, loc, total, number);
        return arith::DivUIOp::create(b, loc, product, numThreads);
      };
      begin = share(thread);
      end = share(arith::AddIOp::create(b, loc, thread, one));
      stride = one;
    }
    auto serial = scf::ForOp::create(b, loc, begin, end, stride);
    OpBuilder inner = OpBuilder::atBlockBegin(serial.getBody());
    IRMapping mapping;
    // The last dimension varies fastest.
    Value rest = serial.getInductionVar();
    for (int64_t i = ivs.size() - 1; i >= 0; --i) {
      Value iv = rest;
      if (i > 0) {
        iv = arith::RemUIOp::create(inner, loc, rest, counts[i]);
        rest = arith::DivUIOp::create(inner, loc, rest, counts[i]);
      }
      auto valueInside = [&](OpFoldResult size) {
        return getValueOrCreateConstantIndexOp(inner, loc, size);
      };
      if (!isOneInteger(step[i]))
        iv = arith::MulIOp::create(inner, loc, iv, valueInside(step[i]));
      if (!isZeroInteger(lower[i]))
        iv = arith::AddIOp::create(inner, loc, iv, valueInside(lower[i]));
      mapping.map(ivs[i], iv);
    }
    for (Operation &op : body->without_terminator())
      inner.clone(op, mapping);
    auto barrier = declare("attune_rt_barrier", b.getFunctionType({}, {}));
    func::CallOp::create(b, loc, barrier, ValueRange{});
    loop->erase();
  }

  Value thread, numThreads;
};
} // namespace
} // namespace attune
