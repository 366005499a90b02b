//===- DestinationPassing.cpp - Results go where the caller says ----------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_DESTINATIONPASSING
#include "attune/Codegen/Passes.h.inc"

namespace {

constexpr StringLiteral kWritable = "bufferization.writable";

/// Whether `op`, or anything after it, reads `value`, a view of it, or what was
/// computed in its memory: an elementwise op on the residual stream updates it,
/// and may be the very thing that `op` reads.
bool isReadFrom(Operation *op, Value value) {
  return llvm::any_of(value.getUses(), [&](OpOperand &use) {
    Operation *user = use.getOwner();
    auto updates = dyn_cast<DestinationStyleOpInterface>(user);
    if (updates && user != op && updates.isDpsInit(&use) &&
        user->getNumResults() && isReadFrom(op, updates.getTiedOpResult(&use)))
      return true;
    if (isa<FlattenTokensOp, UnflattenTokensOp, tensor::CastOp,
            tensor::ExtractSliceOp, tensor::ExpandShapeOp,
            tensor::CollapseShapeOp>(user))
      return isReadFrom(op, user->getResult(0));
    Operation *there = op->getBlock()->findAncestorOpInBlock(*user);
    return !there || !there->isBeforeInBlock(op);
  });
}

/// What updates of `dest` in its place left there before `op`: memory belongs
/// to the last one. A sum over ranks updates the residual stream, and a norm
/// behind it may be what a function returns.
Value lastVersion(Value dest, Operation *op) {
  for (;;) {
    Value next;
    for (OpOperand &use : dest.getUses()) {
      auto updates = dyn_cast<DestinationStyleOpInterface>(use.getOwner());
      if (updates && updates.isDpsInit(&use) && updates->getNumResults() &&
          updates->getBlock() == op->getBlock() && updates->isBeforeInBlock(op))
        next = updates.getTiedOpResult(&use);
    }
    if (!next)
      return dest;
    dest = next;
  }
}

struct DestinationPassing final
    : impl::DestinationPassingBase<DestinationPassing> {
  using Base::Base;

  void runOnOperation() override {
    for (auto func : getOperation().getOps<func::FuncOp>()) {
      if (func.isExternal())
        continue;
      bool ok = func->hasAttr("attune.entry") ? convertEntry(func)
                                              : convertPrivate(func);
      if (!ok)
        return signalPassFailure();
      converted.insert(func);
    }
  }

  /// Makes `value` be computed in `dest`, an argument of the same type, and
  /// returns it.
  Value computeIn(OpBuilder &b, Value value, Value dest) {
    if (Value placed = place(b, value, dest))
      return placed;
    ++numCopies;
    return linalg::CopyOp::create(b, value.getLoc(), value, dest).getResult(0);
  }

  /// Redirects the uninitialised destination that `value` is written to.
  /// Readers of the old contents of `dest` must be done by then: a layer that
  /// is repeated on its own reads the very argument that its result replaces.
  Value place(OpBuilder &b, Value value, Value dest) {
    if (auto view = value.getDefiningOp<UnflattenTokensOp>()) {
      OpBuilder::InsertionGuard guard(b);
      dest = lastVersion(dest, view);
      b.setInsertionPointAfterValue(dest);
      Value rows = FlattenTokensOp::create(b, dest.getLoc(),
                                           view.getInput().getType(), dest);
      if (!place(b, view.getInput(), rows)) {
        rows.getDefiningOp()->erase();
        return {};
      }
      return value;
    }
    // An argument of a private function is read there, too: only a loop that
    // makes the result all at once may have it.
    bool entry = value.getParentBlock()->getParentOp()->hasAttr("attune.entry");
    OpOperand *start = nullptr;
    if (auto forall = value.getDefiningOp<scf::ForallOp>())
      start =
          &forall.getOutputsMutable()[cast<OpResult>(value).getResultNumber()];
    if (entry)
      start = findStart(value);
    if (!start || !start->get().getDefiningOp<tensor::EmptyOp>() ||
        start->get().getType() != dest.getType())
      return {};
    auto view = dest.getDefiningOp<FlattenTokensOp>();
    Value whole = view ? view.getInput() : dest;
    BlockArgument argument = updatedArgument(whole);
    if (auto forall = value.getDefiningOp<scf::ForallOp>())
      if (isReadFrom(forall, argument ? Value(argument) : whole))
        return {};
    start->set(dest);
    return value;
  }

  /// The operand that `value` is an updated version of, through loops and calls
  /// of functions that were converted before; null if there is none, or if
  /// something else needs one of the versions: bufferization would give one of
  /// the two other memory, and it might be this one.
  OpOperand *findStart(Value value) {
    OpOperand *start = nullptr;
    while (Operation *op = value.getDefiningOp()) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      OpOperand *from = nullptr;
      if (auto forall = dyn_cast<scf::ForallOp>(op))
        from = &forall.getOutputsMutable()[number];
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        from = &loop.getInitArgsMutable()[number];
      else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        from = &insert.getDestMutable();
      else if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
        from = destination.getDpsInitOperand(number);
      else if (auto call = dyn_cast<func::CallOp>(op))
        from = updatedOperand(call, number);
      if (!from)
        break;
      start = from;
      value = from->get();
      bool isEmpty = value.getDefiningOp<tensor::EmptyOp>();
      if (!isEmpty && llvm::count_if(value.getUsers(), [](Operation *user) {
                        return !isa<tensor::DimOp>(user);
                      }) > 1)
        return nullptr;
    }
    return start;
  }

  /// The argument that `value` is an updated version of, or null: follows the
  /// destinations of in-place updates back, and calls of functions that were
  /// converted before.
  BlockArgument updatedArgument(Value value) {
    while (Operation *op = value.getDefiningOp()) {
      unsigned number = cast<OpResult>(value).getResultNumber();
      if (isa<FlattenTokensOp, UnflattenTokensOp, tensor::CastOp>(op))
        value = op->getOperand(0);
      else if (auto forall = dyn_cast<scf::ForallOp>(op))
        value = forall.getOutputs()[number];
      else if (auto loop = dyn_cast<scf::ForOp>(op))
        value = loop.getInitArgs()[number];
      else if (auto insert = dyn_cast<tensor::InsertSliceOp>(op))
        value = insert.getDest();
      else if (auto destination = dyn_cast<DestinationStyleOpInterface>(op))
        value = destination.getDpsInits()[number];
      else if (auto call = dyn_cast<func::CallOp>(op)) {
        OpOperand *from = updatedOperand(call, number);
        if (!from)
          return {};
        value = from->get();
      } else
        return {};
    }
    auto argument = cast<BlockArgument>(value);
    return isa<func::FuncOp>(argument.getOwner()->getParentOp())
               ? argument
               : BlockArgument();
  }

  /// The operand that a function computes its result in.
  OpOperand *updatedOperand(func::CallOp call, unsigned number) {
    auto callee = getOperation().lookupSymbol<func::FuncOp>(call.getCallee());
    if (!callee || callee.isExternal() || !converted.contains(callee))
      return nullptr;
    auto result = cast<func::ReturnOp>(callee.getBody().back().getTerminator());
    BlockArgument argument = updatedArgument(result.getOperand(number));
    if (!argument || argument.getType() != call.getResult(number).getType())
      return nullptr;
    return &call->getOpOperand(argument.getArgNumber());
  }

  static bool isCache(BlockArgument argument) {
    if (!argument)
      return false;
    auto func = cast<func::FuncOp>(argument.getOwner()->getParentOp());
    auto kind = func.getArgAttrOfType<StringAttr>(argument.getArgNumber(),
                                                  "attune.kind");
    return kind && kind.getValue() == "cache";
  }

  bool convertEntry(func::FuncOp func) {
    OpBuilder b(func.getContext());
    auto returnOp = cast<func::ReturnOp>(func.getBody().back().getTerminator());
    for (BlockArgument argument : func.getArguments())
      if (isa<TensorType>(argument.getType())) {
        // An argument of handwritten IR may have no kind.
        unsigned number = argument.getArgNumber();
        auto kind = func.getArgAttrOfType<StringAttr>(number, "attune.kind");
        bool writable = kind && kind.getValue() == "cache";
        func.setArgAttr(number, kWritable, b.getBoolAttr(writable));
      }
    for (OpOperand &operand : returnOp->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      unsigned result = operand.getOperandNumber();
      auto kind = func.getResultAttrOfType<StringAttr>(result, "attune.kind");
      if (kind && kind.getValue() == "cache") {
        if (isCache(updatedArgument(operand.get())))
          continue;
        // Callers have no memory for it but the argument's.
        func.emitError("result ")
            << result << " of '@" << func.getSymName()
            << "' is a cache, but not what became of an argument that is one; "
               "write attune.kind = \"output\" for a tensor that is new";
        return false;
      }
      unsigned number = func.getNumArguments();
      NamedAttrList attrs(func.getResultAttrDict(result));
      attrs.set(kWritable, b.getBoolAttr(true));
      if (failed(func.insertArgument(number, operand.get().getType(),
                                     attrs.getDictionary(func.getContext()),
                                     operand.get().getLoc())))
        return false;
      b.setInsertionPoint(returnOp);
      operand.set(computeIn(b, operand.get(), func.getArgument(number)));
    }
    // The results are the arguments now; what they were called is said there.
    func.removeResAttrsAttr();
    return true;
  }

  bool convertPrivate(func::FuncOp func) {
    OpBuilder b(func.getContext());
    auto returnOp = cast<func::ReturnOp>(func.getBody().back().getTerminator());
    llvm::SmallDenseSet<BlockArgument> taken;
    for (OpOperand &operand : returnOp->getOpOperands()) {
      if (!isa<RankedTensorType>(operand.get().getType()))
        continue;
      BlockArgument updated = updatedArgument(operand.get());
      if (updated && updated.getType() == operand.get().getType() &&
          taken.insert(updated).second)
        continue;
      auto free = llvm::find_if(func.getArguments(), [&](BlockArgument arg) {
        return arg.getType() == operand.get().getType() && !taken.contains(arg);
      });
      if (free == func.getArguments().end()) {
        func.emitOpError("result ")
            << operand.getOperandNumber() << " of type "
            << operand.get().getType()
            << " has no argument of its type to be computed in";
        return false;
      }
      taken.insert(*free);
      b.setInsertionPoint(returnOp);
      operand.set(computeIn(b, operand.get(), *free));
    }
    return true;
  }

  llvm::SmallPtrSet<Operation *, 8> converted;
};
} // namespace
} // namespace attune
