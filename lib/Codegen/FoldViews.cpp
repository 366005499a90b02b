//===- FoldViews.cpp - Tokens as rows and back is the same memory ---------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Codegen/Passes.h"

#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_FOLDVIEWS
#include "attune/Codegen/Passes.h.inc"

namespace {
struct FoldViews final : impl::FoldViewsBase<FoldViews> {
  using Base::Base;
  /// An entry is public, so drop-equivalent-buffer-results leaves it alone, but
  /// nobody uses what it returns: its outputs are arguments.
  static void dropReturnedArguments(func::FuncOp func) {
    auto returnOp = cast<func::ReturnOp>(func.getBody().back().getTerminator());
    llvm::BitVector dropped(returnOp.getNumOperands());
    for (OpOperand &operand : returnOp->getOpOperands()) {
      Value value = operand.get();
      while (auto cast = value.getDefiningOp<memref::CastOp>())
        value = cast.getSource();
      if (isa<MemRefType>(value.getType()) && isa<BlockArgument>(value))
        dropped.set(operand.getOperandNumber());
    }
    returnOp->eraseOperands(dropped);
    if (failed(func.eraseResults(dropped)))
      llvm_unreachable("a function of this dialect can lose results");
  }

  void runOnOperation() override {
    getOperation().walk([&](memref::ReinterpretCastOp cast) {
      auto collapse = cast.getSource().getDefiningOp<memref::CollapseShapeOp>();
      // Sizes agree because the number of rows is the product of both.
      if (collapse && collapse.getSrcType() == cast.getType() &&
          cast.getType().getLayout().isIdentity())
        cast.replaceAllUsesWith(collapse.getSrc());
    });
    // Sizes of a view that keep their names reach the function's arguments.
    getOperation().walk([&](memref::DimOp dim) {
      auto cast = dim.getSource().getDefiningOp<memref::ReinterpretCastOp>();
      std::optional<int64_t> index = dim.getConstantIndex();
      if (!cast || !index || *index >= cast.getType().getRank() ||
          !cast.getType().isDynamicDim(*index))
        return;
      dim.replaceAllUsesWith(cast.getDynamicSize(*index));
      dim.erase();
    });
    for (auto func : getOperation().getOps<func::FuncOp>())
      if (func->hasAttr("attune.entry") && !func.isExternal())
        dropReturnedArguments(func);
  }
};
} // namespace
} // namespace attune
