//===- OutlineMicrokernels.cpp - Sums of few rows as functions --*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedFunctions.h"

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_OUTLINEMICROKERNELS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// Ops that follow each other in a block.
using Run = SmallVector<Operation *>;

/// What a run reads from before: values that become arguments, and ops that the
/// function repeats. Only constants, offsets from a row to others and flat
/// views move along: these are parts of addresses, and LLVM sees that what is
/// fetched and what is read lie in one matrix. All else differs between the
/// products that share a microkernel.
class Captures {
public:
  explicit Captures(const Run &run) {
    llvm::SetVector<Value> all;
    for (Operation *op : run)
      op->walk<WalkOrder::PreOrder>([&](Operation *inner) {
        for (Value operand : inner->getOperands())
          if (!isOf(run, operand))
            all.insert(operand);
      });
    for (Value value : all)
      capture(value, all);
  }

  ArrayRef<Value> arguments() const { return values.getArrayRef(); }
  ArrayRef<Operation *> ops() const { return moved.getArrayRef(); }

  /// Repeats the ops in a function whose arguments `mapping` has.
  void repeat(OpBuilder &b, Location loc, IRMapping &mapping) const {
    for (Operation *op : moved) {
      // A matrix has lost its first size, and so has a view of it.
      if (auto view = dyn_cast<memref::CollapseShapeOp>(op))
        mapping.map(view.getResult(), memref::CollapseShapeOp::create(
                                          b, loc, mapping.lookup(view.getSrc()),
                                          view.getReassociationIndices())
                                          .getResult());
      else
        b.clone(*op, mapping)->setLoc(loc);
    }
  }

private:
  /// Whether the value is computed in the run, or in a region of it.
  static bool isOf(const Run &run, Value value) {
    Operation *op = value.getDefiningOp();
    if (!op)
      op = value.getParentBlock()->getParentOp();
    return llvm::any_of(run,
                        [&](Operation *own) { return own->isAncestor(op); });
  }

  void capture(Value value, const llvm::SetVector<Value> &all) {
    Operation *op = value.getDefiningOp();
    if (op && op->hasTrait<OpTrait::ConstantLike>()) {
      moved.insert(op);
      return;
    }
    auto view = dyn_cast_or_null<memref::CollapseShapeOp>(op);
    if (view && all.contains(view.getSrc())) {
      capture(view.getSrc(), all);
      moved.insert(view);
      return;
    }
    // Canonical form has the constant on the right.
    auto sum = dyn_cast_or_null<arith::AddIOp>(op);
    Operation *offset = sum ? sum.getRhs().getDefiningOp() : nullptr;
    if (!offset || !offset->hasTrait<OpTrait::ConstantLike>() ||
        !all.contains(sum.getLhs())) {
      values.insert(value);
      return;
    }
    capture(sum.getLhs(), all);
    moved.insert(offset);
    moved.insert(sum);
  }

  llvm::SetVector<Value> values;
  llvm::SetVector<Operation *> moved;
};

/// The type of an argument: a microkernel does not know how many panels a
/// matrix has, or how many rows an input.
Type argumentType(Type type) {
  auto memory = dyn_cast<MemRefType>(type);
  if (!memory || memory.getRank() < 2 || memory.isDynamicDim(0))
    return type;
  // A stride of the first dimension does not depend on its size.
  SmallVector<int64_t> shape(memory.getShape());
  shape[0] = ShapedType::kDynamic;
  return MemRefType::get(shape, memory.getElementType(), memory.getLayout(),
                         memory.getMemorySpace());
}

bool isOfVectors(Operation *op) {
  auto isVector = [](Type type) { return isa<VectorType>(type); };
  return isa<scf::ForOp>(op) || llvm::any_of(op->getOperandTypes(), isVector) ||
         llvm::any_of(op->getResultTypes(), isVector);
}

/// The runs of ops on vectors in a block that have a loop among them and leave
/// their results in memory.
SmallVector<Run> findRuns(Block &block) {
  SmallVector<Run> runs(1);
  for (Operation &op : block.without_terminator()) {
    if (op.hasTrait<OpTrait::ConstantLike>())
      continue;
    if (isOfVectors(&op))
      runs.back().push_back(&op);
    else if (!runs.back().empty())
      runs.emplace_back();
  }
  llvm::erase_if(runs, [](const Run &run) {
    return llvm::none_of(run,
                         [](Operation *op) { return isa<scf::ForOp>(op); }) ||
           llvm::any_of(run, [&](Operation *op) {
             return llvm::any_of(op->getUsers(), [&](Operation *user) {
               Operation *own = op->getBlock()->findAncestorOpInBlock(*user);
               return !llvm::is_contained(run, own);
             });
           });
  });
  return runs;
}

struct OutlineMicrokernels final
    : impl::OutlineMicrokernelsBase<OutlineMicrokernels> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SharedFunctions functions(module);
    SmallVector<std::pair<Run, int64_t>> runs;
    for (auto func : module.getOps<func::FuncOp>())
      if (func->hasAttr("attune.kernel"))
        func.walk([&](scf::IndexSwitchOp choice) {
          for (auto [rows, region] :
               llvm::zip(choice.getCases(), choice.getCaseRegions()))
            for (Run &run : findRuns(region.front()))
              runs.emplace_back(std::move(run), rows);
        });
    for (const auto &[run, rows] : runs)
      outline(run, rows, functions);
  }

private:
  void outline(const Run &run, int64_t rows, SharedFunctions &functions) {
    Captures captures(run);
    OpBuilder b(run.front());
    Location loc = run.front()->getLoc();
    SmallVector<Value> arguments;
    for (Value value : captures.arguments()) {
      Type type = argumentType(value.getType());
      if (type != value.getType())
        value = memref::CastOp::create(b, loc, type, value);
      arguments.push_back(value);
    }
    func::FuncOp func = SharedFunctions::create(
        loc, ("microkernel." + Twine(rows)).str(), arguments);
    Block *body = func.addEntryBlock();
    IRMapping mapping;
    mapping.map(captures.arguments(), body->getArguments());
    auto inside = OpBuilder::atBlockEnd(body);
    captures.repeat(inside, loc, mapping);
    for (Operation *op : run)
      inside.clone(*op, mapping);
    func::ReturnOp::create(inside, loc);

    auto [shared, isNew] = functions.add(func);
    numMicrokernels += isNew;
    ++numCalls;
    func::CallOp::create(b, placeOfCall(loc), shared, arguments);
    for (Operation *op : llvm::reverse(run))
      op->erase();
    for (Operation *op : llvm::reverse(captures.ops()))
      if (isOpTriviallyDead(op))
        op->erase();
  }
};
} // namespace

} // namespace attune
