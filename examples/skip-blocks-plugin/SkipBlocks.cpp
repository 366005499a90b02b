//===- SkipBlocks.cpp - Attention without blocks that a mask hides --------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

// The nest of attention visits every block of keys, and a step hides what its
// mask says. This pass asks the mask first: a block of which nothing is seen
// leaves the states as they are, so its step is left out.

#include "Attune/AttuneDialect.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

/// Whether some element of `mask` is true.
static Value anySeen(OpBuilder &b, Location loc, Value mask) {
  SmallVector<Value> begins, ends, steps;
  for (OpFoldResult size : tensor::getMixedSizes(b, loc, mask)) {
    begins.push_back(arith::ConstantIndexOp::create(b, loc, 0));
    ends.push_back(getValueOrCreateConstantIndexOp(b, loc, size));
    steps.push_back(arith::ConstantIndexOp::create(b, loc, 1));
  }
  Value none = arith::ConstantIntOp::create(b, loc, 0, /*width=*/1);
  auto body = [&](OpBuilder &b, Location loc, ValueRange at, ValueRange seen) {
    Value here = tensor::ExtractOp::create(b, loc, mask, at);
    return scf::ValueVector{arith::OrIOp::create(b, loc, seen[0], here)};
  };
  return scf::buildLoopNest(b, loc, begins, ends, steps, none, body).results[0];
}

struct SkipBlocks : PassWrapper<SkipBlocks, OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(SkipBlocks)
  StringRef getArgument() const final { return "skip-hidden-blocks"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry
        .insert<arith::ArithDialect, scf::SCFDialect, tensor::TensorDialect>();
  }

  void runOnOperation() final {
    SmallVector<attune::OnlineAttentionOp> steps;
    getOperation()->walk([&](attune::OnlineAttentionOp step) {
      if (step.getMask() && step->getNumResults() > 0)
        steps.push_back(step);
    });
    for (attune::OnlineAttentionOp step : steps) {
      Location loc = step.getLoc();
      OpBuilder b(step);
      auto skip = scf::IfOp::create(b, loc, step->getResultTypes(),
                                    anySeen(b, loc, step.getMask()),
                                    /*withElseRegion=*/true);
      step->replaceAllUsesWith(skip);
      step->moveBefore(skip.thenBlock(), skip.thenBlock()->begin());
      b.setInsertionPointAfter(step);
      scf::YieldOp::create(b, loc, step->getResults());
      b.setInsertionPointToStart(skip.elseBlock());
      scf::YieldOp::create(b, loc, step.getDpsInits());
    }
  }
};

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "SkipBlocks", LLVM_VERSION_STRING,
          [] { PassRegistration<SkipBlocks>(); }};
}
