//===- KernelLimits.cpp - Resource limits of a kernel -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/Passes.h"

#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

using namespace mlir;

namespace attune {
#define GEN_PASS_DEF_KERNELLIMITS
#include "attune/Target/PTX/Passes.h.inc"

namespace {
struct KernelLimits final : impl::KernelLimitsBase<KernelLimits> {
  using Base::Base;
  void runOnOperation() override {
    Builder b(&getContext());
    SmallVector<gpu::DynamicSharedMemoryOp> dynamic;
    getOperation().walk(
        [&](gpu::DynamicSharedMemoryOp op) { dynamic.push_back(op); });
    for (gpu::DynamicSharedMemoryOp op : dynamic)
      if (failed(nameDynamic(op)))
        return signalPassFailure();
    for (auto func : getOperation().getOps<gpu::GPUFuncOp>()) {
      if (!func.isKernel())
        continue;
      for (unsigned i = 0; i < func.getNumWorkgroupAttributions(); ++i)
        func.setWorkgroupAttributionAttr(
            i, LLVM::LLVMDialect::getAlignAttrName(), b.getI64IntegerAttr(16));
      int64_t blocks = 1;
      func.walk([&](gpu::BarrierOp op) {
        if (auto wanted = op->getAttrOfType<IntegerAttr>(kBlocksAtOnce)) {
          blocks = wanted.getInt();
          op->removeAttr(kBlocksAtOnce);
        }
        op->removeAttr(kRowsOfPanel);
      });
      StringRef atLeast = NVVM::NVVMDialect::getMinctasmAttrName();
      if (!func->hasAttr(atLeast))
        func->setAttr(atLeast, b.getI32IntegerAttr(int32_t(blocks)));
    }
  }

  /// Shared memory whose size a launch says is an array without one that is
  /// defined elsewhere; upstream's conversion defines it here.
  LogicalResult nameDynamic(gpu::DynamicSharedMemoryOp op) {
    constexpr StringRef name = "attune_dynamic_shared";
    constexpr unsigned alignment = 1024;
    auto space = unsigned(NVVM::NVVMMemorySpace::Shared);
    OpBuilder b(op);
    Location loc = op.getLoc();
    auto array = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
    auto global = getOperation().lookupSymbol<LLVM::GlobalOp>(name);
    if (!global) {
      OpBuilder top = OpBuilder::atBlockBegin(getOperation().getBody());
      global = LLVM::GlobalOp::create(top, loc, array, /*isConstant=*/false,
                                      LLVM::Linkage::External, name,
                                      Attribute(), alignment, space);
    }
    for (Operation *user : llvm::make_early_inc_range(op->getUsers())) {
      auto extract = dyn_cast<memref::ExtractAlignedPointerAsIndexOp>(user);
      if (!extract)
        return op.emitOpError("is used by what is no address of it");
      b.setInsertionPoint(extract);
      Value pointer = LLVM::AddressOfOp::create(b, loc, global);
      Value word = LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), pointer);
      extract.replaceAllUsesWith(
          arith::IndexCastOp::create(b, loc, b.getIndexType(), word)
              .getResult());
      extract.erase();
    }
    op.erase();
    return success();
  }
};
} // namespace
} // namespace attune
