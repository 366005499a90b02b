//===- DistributeThreads.cpp - Parallel loops as each thread's share ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/ParallelLoops.h"
#include "attune/Codegen/Passes.h"
#include "attune/Codegen/SequentialRuns.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_DISTRIBUTETHREADS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// Whether threads should claim the iterations of a loop one by one: where each
/// is long, a loop in a loop, a claim costs nothing beside it. Iterations that
/// fetch what the one behind them reads must stay with one thread.
bool takesLong(Block &body) {
  bool nested = false, inOrder = false;
  body.walk([&](Operation *op) {
    inOrder |= isa<SuccessorOp>(op);
    if (!isa<LoopLikeOpInterface>(op))
      return;
    for (Operation *up = op->getParentOp(); up != body.getParentOp();
         up = up->getParentOp())
      nested |= isa<LoopLikeOpInterface>(up);
  });
  return nested && !inOrder;
}

/// Whether parallel loops of functions that `func` calls may be cut by a number
/// of threads that it asks for.
bool handsOnThreads(func::FuncOp func) {
  bool asks = false, calls = false;
  func.walk([&](Operation *op) {
    asks |= isa<NumThreadsOp>(op);
    calls |= isa<func::CallOp>(op);
  });
  return asks && calls;
}

struct DistributeThreads final
    : impl::DistributeThreadsBase<DistributeThreads> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    for (auto func : module.getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      SmallVector<Operation *> loops = findParallelLoops(func);
      SmallVector<SequentialRun> runs;
      if (failed(findSequentialRuns(func, runs)))
        return signalPassFailure();
      if (loops.empty() && runs.empty() && !handsOnThreads(func))
        continue;
      OpBuilder b = OpBuilder::atBlockBegin(&func.getBody().front());
      thread = call(b, func.getLoc(), "attune_rt_thread");
      numThreads = call(b, func.getLoc(), "attune_rt_num_threads");
      func.walk([&](NumThreadsOp op) {
        op.replaceAllUsesWith(numThreads);
        op.erase();
      });
      callQuotients(func, loops);
      for (SequentialRun &run : runs)
        giveToFirstThread(run);
      for (Operation *loop : loops)
        if (failed(distribute(loop)))
          return signalPassFailure();
    }
    module.walk([](Operation *op) {
      if (!isa<SuccessorOp, NumThreadsOp>(op))
        return;
      OpBuilder b(op);
      // Functions without parallel loops run on one thread.
      Value value = arith::ConstantIndexOp::create(b, op->getLoc(), 1);
      if (auto next = dyn_cast<SuccessorOp>(op))
        value =
            arith::AddIOp::create(b, op->getLoc(), next.getIteration(), value);
      op->replaceAllUsesWith(ValueRange(value));
      op->erase();
    });
  }

  void giveToFirstThread(SequentialRun &run) {
    Operation *front = run.ops.front();
    Location loc = front->getLoc();
    OpBuilder b(front);
    Value zero = arith::ConstantIndexOp::create(b, loc, 0);
    Value first =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::eq, thread, zero);
    auto only = scf::IfOp::create(b, loc, first, /*withElseRegion=*/false);
    for (Operation *op : run.ops)
      op->moveBefore(only.thenYield());
    b.setInsertionPointAfter(only);
    auto barrier = declare("attune_rt_barrier", b.getFunctionType({}, {}));
    func::CallOp::create(b, loc, barrier, ValueRange{});
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

  /// `number / by`, in a function that is not inlined: to all loops inside, it
  /// is a number as any other then. Where LLVM's loop strength reduction sees a
  /// division in an address, it does not simplify that, and kernels run out of
  /// registers.
  Value quotient(OpBuilder &b, Location loc, Value number, Value by) {
    ModuleOp module = getOperation();
    Type index = b.getIndexType();
    StringRef name = "attune_quotient";
    auto func = module.lookupSymbol<func::FuncOp>(name);
    if (!func) {
      func = declare(name, b.getFunctionType({index, index}, index));
      func->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
      OpBuilder body = OpBuilder::atBlockBegin(func.addEntryBlock());
      Value result = arith::DivUIOp::create(
          body, func.getLoc(), func.getArgument(0), func.getArgument(1));
      func::ReturnOp::create(body, func.getLoc(), result);
    }
    return func::CallOp::create(b, loc, func, ValueRange{number, by})
        .getResult(0);
  }

  /// The same with quotients that places in claimed iterations may depend on:
  /// of numbers that are known only when the program runs, where no other loop
  /// is around them.
  void callQuotients(func::FuncOp func, ArrayRef<Operation *> loops) {
    SmallVector<arith::DivUIOp> found;
    func.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<LoopLikeOpInterface>(op) &&
          !(llvm::is_contained(loops, op) &&
            takesLong(op->getRegion(0).front())))
        return WalkResult::skip();
      auto division = dyn_cast<arith::DivUIOp>(op);
      if (division && division.getType().isIndex() &&
          !getConstantIntValue(division.getRhs()))
        found.push_back(division);
      return WalkResult::advance();
    });
    for (arith::DivUIOp op : found) {
      OpBuilder b(op);
      op.replaceAllUsesWith(quotient(b, op.getLoc(), op.getLhs(), op.getRhs()));
      op.erase();
    }
  }

  Value claim(OpBuilder &b, Value total) {
    Location loc = total.getLoc();
    Type i64 = b.getI64Type();
    auto func = declare("attune_rt_claim", b.getFunctionType(i64, i64));
    Value number = arith::IndexCastOp::create(b, loc, i64, total);
    Value claimed = func::CallOp::create(b, loc, func, number).getResult(0);
    return arith::IndexCastOp::create(b, loc, b.getIndexType(), claimed);
  }

  LogicalResult distribute(Operation *op) {
    auto forall = dyn_cast<scf::ForallOp>(op);
    if (forall && (!forall.getResults().empty() || !forall.isNormalized()))
      return forall.emitOpError(
          "is not bufferized or does not count from zero");
    FailureOr<ParallelLoop> loop = ParallelLoop::get(op);
    if (failed(loop))
      return failure();
    OpBuilder b(op);
    Location loc = op->getLoc();
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    SmallVector<Value> counts;
    Value total = one;
    unsigned rank = loop->ivs.size(), shared = rank;
    // Loops over single elements: a thread takes whole rows of them, which
    // LLVM vectorises, rather than finding each element's place by division.
    if (!forall && shared > 1)
      --shared;
    for (unsigned i = 0; i < shared; ++i) {
      counts.push_back(loop->count(b, loc, i));
      total = arith::MulIOp::create(b, loc, total, counts.back());
    }
    Value rest;
    bool claimed = takesLong(*loop->body);
    OpBuilder inner =
        claimed ? claims(b, total, rest) : shares(b, loc, total, rest);
    auto divide = [&](OpBuilder &b, Value number, Value by) -> Value {
      return claimed ? quotient(b, loc, number, by)
                     : arith::DivUIOp::create(b, loc, number, by).getResult();
    };
    IRMapping mapping;
    // The last dimension varies fastest.
    for (int64_t i = shared - 1; i >= 0; --i) {
      Value iv = rest;
      if (i > 0) {
        rest = divide(inner, iv, counts[i]);
        Value whole = arith::MulIOp::create(inner, loc, rest, counts[i]);
        iv = arith::SubIOp::create(inner, loc, iv, whole);
      }
      mapping.map(loop->ivs[i], loop->at(inner, loc, i, iv));
    }
    if (shared < rank) {
      auto value = [&](OpFoldResult size) {
        return getValueOrCreateConstantIndexOp(inner, loc, size);
      };
      auto row = scf::ForOp::create(inner, loc, value(loop->lower.back()),
                                    value(loop->upper.back()),
                                    value(loop->step.back()));
      mapping.map(loop->ivs.back(), row.getInductionVar());
      inner.setInsertionPointToStart(row.getBody());
    }
    for (Operation &inside : loop->body->without_terminator())
      inner.clone(inside, mapping);
    auto barrier = declare("attune_rt_barrier", b.getFunctionType({}, {}));
    func::CallOp::create(b, loc, barrier, ValueRange{});
    op->erase();
    return success();
  }

  /// A loop over the thread's share of [0, total), in which `number` counts.
  OpBuilder shares(OpBuilder &b, Location loc, Value total, Value &number) {
    Value one = arith::ConstantIndexOp::create(b, loc, 1);
    auto share = [&](Value part) -> Value {
      Value product = arith::MulIOp::create(b, loc, total, part);
      return arith::DivUIOp::create(b, loc, product, numThreads);
    };
    Value begin = share(thread);
    Value end = share(arith::AddIOp::create(b, loc, thread, one));
    auto serial = scf::ForOp::create(b, loc, begin, end, one);
    number = serial.getInductionVar();
    return OpBuilder::atBlockBegin(serial.getBody());
  }

  /// A loop over those of [0, total) that no other thread was faster to claim.
  OpBuilder claims(OpBuilder &b, Value total, Value &number) {
    Location loc = total.getLoc();
    auto loop = scf::WhileOp::create(
        b, loc, b.getIndexType(), claim(b, total),
        [&](OpBuilder &b, Location loc, ValueRange claimed) {
          Value open = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult,
                                             claimed[0], total);
          scf::ConditionOp::create(b, loc, open, claimed);
        },
        [&](OpBuilder &b, Location loc, ValueRange) {
          scf::YieldOp::create(b, loc, claim(b, total));
        });
    number = loop.getAfterArguments()[0];
    return OpBuilder::atBlockBegin(loop.getAfterBody());
  }

  Value thread, numThreads;
};
} // namespace
} // namespace attune
