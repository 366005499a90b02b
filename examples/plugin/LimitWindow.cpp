//===- LimitWindow.cpp - A pass that lives outside Attune -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

namespace {

/// Lets every causal attention see its last `window` keys only, the way to try
/// a sliding window on a model that was trained without one.
///
/// Needs: attention as one op or as the chain that it folds.
/// Gives: the same ops with a window of at most `window` keys; attention that
/// is not causal has no "last" key and is left alone.
/// Keeps: the result of every query with at most `window` visible keys.
struct LimitWindow final
    : mlir::PassWrapper<LimitWindow, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LimitWindow)

  LimitWindow() = default;
  // Options and statistics belong to one pass object and are not copied.
  LimitWindow(const LimitWindow &other) : PassWrapper(other) {}

  llvm::StringRef getArgument() const final { return "example-limit-window"; }
  llvm::StringRef getDescription() const final {
    return "Let causal attention see a bounded number of keys";
  }

  mlir::LogicalResult initialize(mlir::MLIRContext *context) final {
    if (window > 0)
      return mlir::success();
    return mlir::emitError(mlir::UnknownLoc::get(context))
           << "example-limit-window: the window must be positive, got "
           << window.getValue();
  }

  void runOnOperation() final {
    getOperation()->walk([&](attune::AttentionOp op) { limit(op); });
    getOperation()->walk([&](attune::MaskScoresOp op) { limit(op); });
  }

  template <typename OpTy> void limit(OpTy op) {
    if (op.getCausal() == attune::CausalAlign::None)
      return;
    std::optional<uint64_t> present = op.getWindow();
    if (present && *present <= static_cast<uint64_t>(window))
      return;
    op.setWindow(window);
    ++limited;
  }

  Option<int64_t> window{*this, "window",
                         llvm::cl::desc("Keys a query sees, itself included"),
                         llvm::cl::init(256)};
  Statistic limited{this, "num-limited", "Attention ops given a window"};
};

} // namespace

/// What `--load-pass-plugin` looks for in a library.
extern "C" LLVM_ATTRIBUTE_WEAK mlir::PassPluginLibraryInfo
mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "LimitWindow", LLVM_VERSION_STRING,
          [] { mlir::PassRegistration<LimitWindow>(); }};
}
