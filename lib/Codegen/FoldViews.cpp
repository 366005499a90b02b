//===- FoldViews.cpp - Tokens as rows and back is the same memory -*- C++ -*-===//
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
  }
};
} // namespace
} // namespace attune
