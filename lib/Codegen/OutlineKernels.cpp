//===- OutlineKernels.cpp - Parallel loops as functions ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/ParallelLoops.h"
#include "attune/Codegen/Passes.h"

#include "mlir/IR/Iterators.h"
#include "mlir/IR/SymbolTable.h"
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

/// By what a function computes, whatever it is called and wherever it comes
/// from.
llvm::hash_code hashBody(func::FuncOp func) {
  llvm::hash_code code = hash_value(Type(func.getFunctionType()));
  func.getBody().walk<WalkOrder::PreOrder>([&](Operation *op) {
    code =
        llvm::hash_combine(code, OperationEquivalence::computeHash(
                                     op, OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::ignoreHashValue,
                                     OperationEquivalence::IgnoreLocations));
  });
  return code;
}

bool computeTheSame(func::FuncOp a, func::FuncOp b) {
  return a.getFunctionType() == b.getFunctionType() &&
         OperationEquivalence::isRegionEquivalentTo(
             &a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
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
    kernels.clear();
    ModuleOp module = getOperation();
    SymbolTable symbols(module);
    for (auto func : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (func.isExternal() || func->hasAttr(kKernel))
        continue;
      for (Operation *loop : findParallelLoops(func))
        outline(loop, symbols);
      eraseUnused(func);
    }
  }

  void outline(Operation *loop, SymbolTable &symbols) {
    Captures captures(loop);
    OpBuilder b(loop);
    Location loc = loop->getLoc();
    SmallVector<Value> arguments(captures.arguments());
    auto type = b.getFunctionType(ValueRange(arguments).getTypes(), {});
    auto func = func::FuncOp::create(loc, nameOf(loop), type);
    func.setPrivate();
    func->setAttr(kKernel, b.getUnitAttr());
    // Else one that is called once would lose its name.
    func->setAttr("passthrough", b.getStrArrayAttr({"noinline"}));
    OpBuilder call(loop->getNextNode());
    fill(func, loop, captures);

    func::FuncOp kernel;
    auto &known = kernels[hashBody(func)];
    for (func::FuncOp other : known)
      if (computeTheSame(other, func))
        kernel = other;
    if (kernel) {
      func.erase();
    } else {
      func.setSymName(freeName(func.getSymName(), symbols));
      symbols.insert(func);
      known.push_back(func);
      kernel = func;
      ++numKernels;
    }
    func::CallOp::create(call, placeOfCall(loc), kernel, arguments);
    ++numCalls;
  }

  /// LLVM wants a place for each call of a function with debug info, also of
  /// layers that no file names.
  static Location placeOfCall(Location loc) {
    if (loc->findInstanceOf<FileLineColLoc>())
      return loc;
    return FileLineColLoc::get(loc.getContext(), "", 0, 0);
  }

  /// `name`, or with the first number behind it that makes it a new one.
  static std::string freeName(StringRef name, SymbolTable &symbols) {
    std::string free = name.str();
    for (unsigned number = 2; symbols.lookup(free); ++number)
      free = (name + "." + Twine(number)).str();
    return free;
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

  static constexpr StringLiteral kKernel = "attune.kernel";
  llvm::DenseMap<size_t, SmallVector<func::FuncOp, 1>> kernels;
};
} // namespace
} // namespace attune
