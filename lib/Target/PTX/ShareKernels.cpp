//===- ShareKernels.cpp - Kernels that stand there once -------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/Passes.h"

#include "attune/Codegen/EqualBodies.h"

#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/DenseMap.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_SHAREKERNELS
#include "attune/Target/PTX/Passes.h.inc"

namespace {

/// What is said of a kernel, but for its name.
DictionaryAttr attributesOf(gpu::GPUFuncOp kernel) {
  NamedAttrList all(kernel->getAttrDictionary());
  all.erase(SymbolTable::getSymbolAttrName());
  return all.getDictionary(kernel.getContext());
}

llvm::hash_code hashOf(gpu::GPUFuncOp kernel) {
  return llvm::hash_combine(attributesOf(kernel), hashOfBody(kernel.getBody()));
}

bool computeTheSame(gpu::GPUFuncOp a, gpu::GPUFuncOp b) {
  return attributesOf(a) == attributesOf(b) &&
         areEqualBodies(a.getBody(), b.getBody());
}

struct ShareKernels final : impl::ShareKernelsBase<ShareKernels> {
  using Base::Base;

  void runOnOperation() override {
    llvm::DenseMap<SymbolRefAttr, SymbolRefAttr> others;
    for (auto module : getOperation().getOps<gpu::GPUModuleOp>()) {
      llvm::DenseMap<size_t, SmallVector<gpu::GPUFuncOp, 1>> known;
      for (auto kernel :
           llvm::make_early_inc_range(module.getOps<gpu::GPUFuncOp>())) {
        if (!kernel.isKernel())
          continue;
        auto &candidates = known[hashOf(kernel)];
        auto *same = llvm::find_if(candidates, [&](gpu::GPUFuncOp other) {
          return computeTheSame(other, kernel);
        });
        if (same == candidates.end()) {
          candidates.push_back(kernel);
          continue;
        }
        others[nameOf(module, kernel)] = nameOf(module, *same);
        kernel.erase();
        ++numShared;
      }
    }
    getOperation().walk([&](gpu::LaunchFuncOp launch) {
      if (SymbolRefAttr other = others.lookup(launch.getKernel()))
        launch.setKernelAttr(other);
    });
  }

  static SymbolRefAttr nameOf(gpu::GPUModuleOp module, gpu::GPUFuncOp kernel) {
    return SymbolRefAttr::get(module.getNameAttr(),
                              {FlatSymbolRefAttr::get(kernel.getNameAttr())});
  }
};

} // namespace
} // namespace attune
