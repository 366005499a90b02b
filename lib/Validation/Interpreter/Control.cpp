//===- Control.cpp - Loops, branches, calls ---------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include "mlir/Dialect/ControlFlow/IR/ControlFlowOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

#include "Slices.h"

using namespace attune;
using namespace attune::validation;
using namespace mlir;

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

static bool runFor(Step &step) {
  auto loop = cast<scf::ForOp>(step.op);
  int64_t end = step.in[1].integer(), by = step.in[2].integer();
  if (by <= 0)
    return step.machine.illegal(step, "steps by " + llvm::Twine(by));
  llvm::SmallVector<Datum> args{Datum()};
  for (Datum &init : step.in.drop_front(3))
    args.push_back(std::move(init));
  llvm::SmallVector<Datum> next;
  for (int64_t i = step.in[0].integer(); i < end; i += by) {
    args[0] = whole(i);
    if (!step.machine.runBlock(*loop.getBody(), args, next))
      return false;
    for (size_t r = 0; r < next.size(); ++r)
      args[r + 1] = std::move(next[r]);
  }
  for (Datum &value : llvm::MutableArrayRef(args).drop_front())
    step.give(std::move(value));
  return true;
}

/// Runs `body` for every index of the loops.
template <typename Body>
static bool overIndices(const Shape &lower, const Shape &upper, const Shape &by,
                        Body body) {
  Shape index = lower;
  for (size_t d = 0; d < lower.size(); ++d)
    if (lower[d] >= upper[d])
      return true;
  while (true) {
    if (!body(index))
      return false;
    size_t d = index.size();
    while (d-- > 0) {
      if ((index[d] += by[d]) < upper[d])
        break;
      index[d] = lower[d];
    }
    if (d == size_t(-1))
      return true;
  }
}

static bool runForall(Step &step) {
  auto loop = cast<scf::ForallOp>(step.op);
  size_t at = 0;
  Shape lower = mixed(loop.getStaticLowerBound(), step.in, at);
  Shape upper = mixed(loop.getStaticUpperBound(), step.in, at);
  Shape by = mixed(loop.getStaticStep(), step.in, at);
  llvm::SmallVector<Datum> outputs(
      std::make_move_iterator(step.in.begin() + at),
      std::make_move_iterator(step.in.end()));
  // Iterations write to disjoint places of one array.
  for (Datum &output : outputs)
    output.ownArray();
  bool ok = overIndices(lower, upper, by, [&](const Shape &index) {
    llvm::SmallVector<Datum> args, none;
    for (int64_t i : index)
      args.push_back(whole(i));
    args.append(outputs.begin(), outputs.end());
    if (!step.machine.runBlock(*loop.getBody(), args, none))
      return false;
    for (Operation &op : loop.getTerminator().getBody()->getOperations()) {
      auto insert = dyn_cast<tensor::ParallelInsertSliceOp>(op);
      if (!insert)
        return step.machine.fail(&op, Failure::Unsupported,
                                 "'" + op.getName().getStringRef() +
                                     "' is no op that validation knows");
      llvm::SmallVector<Datum> numbers;
      for (Value operand : op.getOperands().drop_front(2))
        numbers.push_back(step.machine.valueOf(operand));
      Slice slice = readSlice(insert, numbers);
      auto argument = cast<BlockArgument>(insert.getDest());
      Datum &dest = outputs[argument.getArgNumber() - index.size()];
      Datum source = step.machine.valueOf(insert.getSource());
      if (!insertSlice(step, source.array(), dest.array(), slice))
        return false;
    }
    return true;
  });
  for (Datum &output : outputs)
    step.give(std::move(output));
  return ok;
}

static bool runParallel(Step &step) {
  auto loop = cast<scf::ParallelOp>(step.op);
  size_t n = loop.getNumLoops();
  Shape bounds[3];
  for (size_t i = 0; i < 3 * n; ++i)
    bounds[i / n].push_back(step.in[i].integer());
  llvm::SmallVector<Datum> state(step.in.begin() + 3 * n, step.in.end());
  bool ok = overIndices(bounds[0], bounds[1], bounds[2], [&](const Shape &at) {
    llvm::SmallVector<Datum> args, values;
    for (int64_t i : at)
      args.push_back(whole(i));
    if (!step.machine.runBlock(*loop.getBody(), args, values))
      return false;
    auto reduce = dyn_cast<scf::ReduceOp>(loop.getBody()->getTerminator());
    for (size_t r = 0; reduce && r < state.size(); ++r) {
      llvm::SmallVector<Datum> merged;
      Datum pair[] = {state[r], values[r]};
      if (!step.machine.runBlock(reduce.getReductions()[r].front(), pair,
                                 merged))
        return false;
      state[r] = merged[0];
    }
    return true;
  });
  for (Datum &value : state)
    step.give(std::move(value));
  return ok;
}

static bool runIf(Step &step) {
  auto branch = cast<scf::IfOp>(step.op);
  Region &region =
      step.in[0].integer() ? branch.getThenRegion() : branch.getElseRegion();
  if (region.empty())
    return true;
  return step.machine.runBlock(region.front(), {}, step.out);
}

static bool runIndexSwitch(Step &step) {
  auto branch = cast<scf::IndexSwitchOp>(step.op);
  int64_t value = step.in[0].integer();
  Region *region = &branch.getDefaultRegion();
  for (auto [i, match] : llvm::enumerate(branch.getCases()))
    if (match == value)
      region = &branch.getCaseRegions()[i];
  return step.machine.runBlock(region->front(), {}, step.out);
}

static bool runWhile(Step &step) {
  auto loop = cast<scf::WhileOp>(step.op);
  llvm::SmallVector<Datum> state(step.in.begin(), step.in.end());
  while (true) {
    llvm::SmallVector<Datum> condition;
    if (!step.machine.runBlock(*loop.getBeforeBody(), state, condition))
      return false;
    auto passed = llvm::MutableArrayRef(condition).drop_front();
    if (!condition[0].integer()) {
      step.out.append(passed.begin(), passed.end());
      return true;
    }
    if (!step.machine.runBlock(*loop.getAfterBody(), passed, state))
      return false;
  }
}

static bool runRegionOnce(Step &step) {
  return step.machine.runRegion(step.op->getRegion(0), {}, step.out);
}

//===----------------------------------------------------------------------===//
// Branches and calls
//===----------------------------------------------------------------------===//

/// Goes on in successor `number`, with the operands that are meant for it.
static bool branchTo(Step &step, unsigned number) {
  auto branch = cast<BranchOpInterface>(step.op);
  OperandRange passed =
      branch.getSuccessorOperands(number).getForwardedOperands();
  step.machine.nextBlock = step.op->getSuccessor(number);
  if (passed.empty())
    return true;
  auto values = step.in.slice(passed.getBeginOperandIndex(), passed.size());
  step.out.append(values.begin(), values.end());
  return true;
}

static bool runBranch(Step &step) { return branchTo(step, 0); }

static bool runCondBranch(Step &step) {
  return branchTo(step, step.in[0].integer() ? 0 : 1);
}

template <typename SwitchOp> static bool runSwitch(Step &step) {
  unsigned successor = 0; // the default
  if (auto values = cast<SwitchOp>(step.op).getCaseValues())
    for (auto [i, value] :
         llvm::enumerate(values->template getValues<llvm::APInt>()))
      if (value.getSExtValue() == step.in[0].integer())
        successor = i + 1;
  return branchTo(step, successor);
}

static bool runCall(Step &step) {
  auto call = cast<func::CallOp>(step.op);
  Operation *callee = step.machine.getModule().lookupSymbol(call.getCallee());
  auto func = dyn_cast_or_null<FunctionOpInterface>(callee);
  if (func && !func.isExternal())
    return step.machine.call(func, step.in, step.out);
  // One thread is a team: it waits for nobody and claims all iterations.
  llvm::StringRef name = call.getCallee();
  if (name == "attune_rt_barrier") {
    step.machine.claimed = 0;
    return true;
  }
  if (name == "attune_rt_claim") {
    int64_t total = step.in[0].integer();
    step.give(
        whole(step.machine.claimed < total ? step.machine.claimed++ : total));
    return true;
  }
  if (name == "attune_rt_thread" || name == "attune_rt_num_threads") {
    step.give(whole(name == "attune_rt_thread" ? 0 : 1));
    return true;
  }
  if (std::optional<bool> done = callMesh(step, name))
    return *done;
  return step.machine.fail(step.op, Failure::Unsupported,
                           "calls '" + name + "', which has no body");
}

static bool runAssert(Step &step) {
  return step.in[0].integer() ||
         step.machine.illegal(step, cast<cf::AssertOp>(step.op).getMsg());
}

void validation::addControl(Handlers &handlers) {
  handlers["scf.for"] = runFor;
  handlers["scf.forall"] = runForall;
  handlers["scf.parallel"] = runParallel;
  handlers["scf.if"] = runIf;
  handlers["scf.index_switch"] = runIndexSwitch;
  handlers["scf.while"] = runWhile;
  handlers["scf.execute_region"] = runRegionOnce;
  handlers["memref.alloca_scope"] = runRegionOnce;
  handlers["cf.br"] = runBranch;
  handlers["cf.cond_br"] = runCondBranch;
  handlers["cf.switch"] = runSwitch<cf::SwitchOp>;
  handlers["llvm.br"] = runBranch;
  handlers["llvm.cond_br"] = runCondBranch;
  handlers["llvm.switch"] = runSwitch<LLVM::SwitchOp>;
  handlers["cf.assert"] = runAssert;
  handlers["func.call"] = runCall;
}
