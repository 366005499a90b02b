//===- ExpandPairs.cpp - Products of pairs on any CPU ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "mlir/Dialect/X86Vector/X86VectorDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "llvm/Config/llvm-config.h"

using namespace mlir;

namespace {
/// Writes x86vector.avx512.dot as two multiply-adds, the odd element first, so
/// that kernels made for AVX512-BF16 run where tests do.
struct ExpandPairs final : PassWrapper<ExpandPairs, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ExpandPairs)

  StringRef getArgument() const final { return "test-expand-pairs"; }
  StringRef getDescription() const final {
    return "Run products of pairs of bf16 on any CPU";
  }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<arith::ArithDialect, math::MathDialect,
                    vector::VectorDialect>();
  }

  void runOnOperation() final {
    SmallVector<x86vector::DotBF16Op> dots;
    getOperation().walk([&](x86vector::DotBF16Op op) { dots.push_back(op); });
    for (x86vector::DotBF16Op op : dots) {
      OpBuilder b(op);
      Location loc = op.getLoc();
      Type type = op.getDst().getType();
      int64_t lanes = cast<VectorType>(type).getDimSize(0);
      auto side = [&](Value pairs, int64_t odd) -> Value {
        SmallVector<int64_t> places;
        for (int64_t lane = 0; lane < lanes; ++lane)
          places.push_back(2 * lane + odd);
        Value half = vector::ShuffleOp::create(b, loc, pairs, pairs, places);
        return arith::ExtFOp::create(b, loc, type, half);
      };
      Value sum = op.getSrc();
      for (int64_t odd : {1, 0})
        sum = math::FmaOp::create(b, loc, side(op.getA(), odd),
                                  side(op.getB(), odd), sum);
      op.replaceAllUsesWith(sum);
      op.erase();
    }
    if (dots.empty()) {
      emitError(getOperation().getLoc(), "there are no products of pairs");
      return signalPassFailure();
    }
    // Such CPUs round to bf16 by themselves, too.
    RewritePatternSet patterns(&getContext());
    arith::populateExpandBFloat16Patterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};
} // namespace

extern "C" LLVM_ATTRIBUTE_WEAK PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "ExpandPairs", LLVM_VERSION_STRING,
          [] { PassRegistration<ExpandPairs>(); }};
}
