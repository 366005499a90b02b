//===- Tiny.cpp - The least that a pass of your own takes -----------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Attune/AttuneDialect.h"
#include "mlir/Pass/Pass.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/Config/llvm-config.h"

/// An activation that is the identity passes its input on: it is left out.
struct DropIdentity : mlir::PassWrapper<DropIdentity, mlir::OperationPass<>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DropIdentity)
  llvm::StringRef getArgument() const final { return "tiny-drop-activations"; }
  void runOnOperation() final {
    getOperation()->walk([&](attune::ActivationOp op) {
      if (op.getFunction() != attune::Activation::Identity)
        return;
      op.replaceAllUsesWith(op.getInput());
      op.erase();
    });
  }
};

extern "C" mlir::PassPluginLibraryInfo mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "Tiny", LLVM_VERSION_STRING,
          [] { mlir::PassRegistration<DropIdentity>(); }};
}
