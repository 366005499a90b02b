//===- KernelsToText.cpp - Kernels as PTX ---------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/Passes.h"
#include "attune/TargetInfo/TargetDescription.h"

#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Target/LLVM/ModuleToObject.h"

#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_KERNELSTOTEXT
#include "attune/Target/PTX/Passes.h.inc"

namespace {
class KernelText final : public LLVM::ModuleToObject {
public:
  KernelText(gpu::GPUModuleOp module, NVVM::NVVMTargetAttr target)
      : ModuleToObject(*module, target.getTriple(), target.getChip(),
                       target.getFeatures(), target.getO()) {}

private:
  FailureOr<SmallVector<char, 0>> moduleToObject(llvm::Module &code) override {
    FailureOr<llvm::TargetMachine *> machine = getOrCreateTargetMachine();
    if (failed(machine))
      return getOperation().emitError("LLVM has no target for ") << chip;
    FailureOr<SmallString<0>> text = translateModuleToISA(
        code, **machine, [&] { return getOperation().emitError(); });
    if (failed(text))
      return failure();
    return SmallVector<char, 0>(text->begin(), text->end());
  }
};

struct KernelsToText final : impl::KernelsToTextBase<KernelsToText> {
  using Base::Base;

  void runOnOperation() override {
    initializeTargets();
    SmallVector<gpu::GPUModuleOp> modules(
        getOperation().getOps<gpu::GPUModuleOp>());
    for (gpu::GPUModuleOp kernels : modules)
      if (failed(replaceByText(kernels)))
        return signalPassFailure();
  }

  LogicalResult replaceByText(gpu::GPUModuleOp kernels) {
    ArrayAttr targets = kernels.getTargetsAttr();
    auto target = targets && targets.size() == 1
                      ? dyn_cast<NVVM::NVVMTargetAttr>(targets[0])
                      : NVVM::NVVMTargetAttr();
    if (!target)
      return kernels.emitError("expected one target, of nvvm");
    std::optional<SmallVector<char, 0>> text =
        KernelText(kernels, target).run();
    if (!text)
      return failure();
    OpBuilder b(kernels);
    auto object = gpu::ObjectAttr::get(
        &getContext(), target, gpu::CompilationTarget::Assembly,
        b.getStringAttr(StringRef(text->data(), text->size())),
        /*properties=*/{}, /*kernels=*/{});
    gpu::BinaryOp::create(b, kernels.getLoc(), kernels.getName(),
                          /*offloadingHandler=*/nullptr,
                          b.getArrayAttr(Attribute(object)));
    kernels.erase();
    return success();
  }
};
} // namespace
} // namespace attune
