//===- OutlineKernels.cpp - Parallel loops as functions ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "SharedFunctions.h"

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/ParallelLoops.h"
#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/Iterators.h"
#include "mlir/Interfaces/LoopLikeInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_OUTLINEKERNELS
#include "attune/Codegen/Passes.h.inc"

namespace {

/// The values that a loop captures from the function around it, in the order in
/// which it asks: values that become arguments, and ops that move along, each
/// behind those that it reads.
class Captures {
public:
  explicit Captures(Operation *loop)
      : around(loop->getParentOfType<LoopLikeOpInterface>()) {
    loop->walk<WalkOrder::PreOrder>([&](Operation *op) {
      for (Value operand : op->getOperands())
        if (!loop->isAncestor(operand.getParentRegion()->getParentOp()))
          capture(operand);
    });
  }

  ArrayRef<Value> arguments() const { return values.getArrayRef(); }
  ArrayRef<Operation *> ops() const { return moved.getArrayRef(); }

private:
  void capture(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || !movesAlong(op)) {
      values.insert(value);
      return;
    }
    if (moved.contains(op))
      return;
    for (Value operand : op->getOperands())
      capture(operand);
    moved.insert(op);
  }

  /// Arithmetic moves along, unless it would be repeated by a loop that it
  /// stands before.
  bool movesAlong(Operation *op) const {
    if (op->hasTrait<OpTrait::ConstantLike>())
      return true;
    auto isMemory = [](Type type) { return isa<BaseMemRefType>(type); };
    return op->getNumRegions() == 0 && isMemoryEffectFree(op) &&
           llvm::none_of(op->getOperandTypes(), isMemory) &&
           llvm::none_of(op->getResultTypes(), isMemory) &&
           (!around || around->isProperAncestor(op));
  }

  LoopLikeOpInterface around;
  llvm::SetVector<Value> values;
  llvm::SetVector<Operation *> moved;
};

/// Memory as a kernel may see it: with any number of layers in a stack, and
/// beginning anywhere: a layer of a stack of one is a view without an offset.
/// Where all sizes are known they are a weight's, and tiles go by them.
MemRefType widen(MemRefType type) {
  SmallVector<int64_t> shape(type.getShape());
  if (!type.hasStaticShape())
    shape.front() = ShapedType::kDynamic;
  MemRefLayoutAttrInterface layout = type.getLayout();
  auto strided = dyn_cast<StridedLayoutAttr>(layout);
  if (strided && llvm::is_contained(strided.getStrides(), ShapedType::kDynamic))
    layout = StridedLayoutAttr::get(type.getContext(), ShapedType::kDynamic,
                                    strided.getStrides());
  // A stride of the first dimension does not depend on its size.
  return MemRefType::get(shape, type.getElementType(), layout,
                         type.getMemorySpace());
}

/// A value and the type that it can have.
using NewType = std::pair<Value, MemRefType>;

/// Collects what has another type if `value` has this one: views of it, too.
/// False if some op would have to be another one.
bool canBe(Value value, MemRefType type, SmallVectorImpl<NewType> &changes) {
  auto old = cast<MemRefType>(value.getType());
  if (old == type)
    return true;
  changes.emplace_back(value, type);
  auto isMemory = [](Type type) { return isa<BaseMemRefType>(type); };
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (auto view = dyn_cast<memref::SubViewOp>(user))
      return canBe(view,
                   memref::SubViewOp::inferRankReducedResultType(
                       view.getType().getShape(), type, view.getMixedOffsets(),
                       view.getMixedSizes(), view.getMixedStrides()),
                   changes);
    // Others may read sizes, or have results of the same type.
    return old.getShape() == type.getShape() && !isa<CallOpInterface>(user) &&
           llvm::none_of(user->getResultTypes(), isMemory);
  });
}

/// Gives arguments wider types where that is all there is to do, so that layers
/// of several stacks share a kernel.
void widenArguments(func::FuncOp func) {
  for (BlockArgument argument : func.getArguments()) {
    auto type = dyn_cast<MemRefType>(argument.getType());
    SmallVector<NewType> changes;
    if (!type || type.getRank() == 0 || !canBe(argument, widen(type), changes))
      continue;
    for (auto [value, wider] : changes)
      value.setType(wider);
  }
  func.setType(FunctionType::get(func.getContext(),
                                 func.getBody().getArgumentTypes(), {}));
}

/// The name in the location of a loop.
StringRef nameOf(Operation *loop) {
  auto named = dyn_cast<NameLoc>(loop->getLoc());
  StringRef name = named ? named.getName().getValue() : "";
  auto belongs = [](char c) {
    return llvm::isAlnum(c) || c == '_' || c == '.';
  };
  bool usable =
      !name.empty() && llvm::isAlpha(name[0]) && llvm::all_of(name, belongs);
  return usable ? name : "loop";
}

struct OutlineKernels final : impl::OutlineKernelsBase<OutlineKernels> {
  using Base::Base;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    SharedFunctions kernels(module);
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (func.isExternal() || func->hasAttr("attune.kernel"))
        continue;
      for (Operation *loop : findParallelLoops(func))
        outline(loop, kernels);
      eraseUnused(func);
    }
  }

  void outline(Operation *loop, SharedFunctions &kernels) {
    Captures captures(loop);
    Location loc = loop->getLoc();
    SmallVector<Value> arguments(captures.arguments());
    func::FuncOp func = SharedFunctions::create(loc, nameOf(loop), arguments);
    OpBuilder call(loop->getNextNode());
    fill(func, loop, captures);
    widenArguments(func);

    auto [kernel, isNew] = kernels.add(func);
    numKernels += isNew;
    for (auto [value, type] : llvm::zip(arguments, kernel.getArgumentTypes()))
      if (value.getType() != type)
        value = memref::CastOp::create(call, loc, type, value);
    func::CallOp::create(call, placeOfCall(loc), kernel, arguments);
    ++numCalls;
  }

  static void fill(func::FuncOp func, Operation *loop,
                   const Captures &captures) {
    IRMapping mapping;
    Block *body = func.addEntryBlock();
    mapping.map(captures.arguments(), body->getArguments());
    auto b = OpBuilder::atBlockEnd(body);
    // Other loops may have asked for the same, at places of their own.
    for (Operation *op : captures.ops())
      b.clone(*op, mapping)->setLoc(func.getLoc());
    loop->remove();
    b.insert(loop);
    loop->walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands())
        operand.set(mapping.lookupOrDefault(operand.get()));
    });
    func::ReturnOp::create(b, func.getLoc());
  }

  /// Erases ops that moved along with loops, unless something else reads them.
  static void eraseUnused(func::FuncOp func) {
    func.walk<WalkOrder::PostOrder, mlir::ReverseIterator>([](Operation *op) {
      if (isOpTriviallyDead(op))
        op->erase();
    });
  }
};
} // namespace
} // namespace attune
