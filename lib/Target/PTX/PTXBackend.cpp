//===- PTXBackend.cpp - Programs whose kernels run on a GPU -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/PTXBackend.h"

#include "attune/Codegen/Passes.h"
#include "attune/Conversion/Passes.h"
#include "attune/Target/PTX/Passes.h"
#include "attune/TargetInfo/GpuTiles.h"

#include "mlir/Conversion/Passes.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/Transforms/Passes.h"
#include "mlir/Dialect/MemRef/Transforms/Passes.h"
#include "mlir/Transforms/Passes.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace mlir;

namespace attune {

std::string PTXBackend::getDefaultCpu() const {
  llvm::Triple host(llvm::sys::getDefaultTargetTriple());
  return host.isX86() ? "x86-64" : "generic";
}

std::vector<std::string> PTXBackend::listGpus() const {
  return attune::listGpus();
}

std::optional<TargetDescription>
PTXBackend::describe(const std::string &cpu, const std::string &gpu) const {
  std::optional<TargetDescription> target = describeTarget(cpu);
  if (target && !addGpu(*target, gpu))
    return std::nullopt;
  return target;
}

//===----------------------------------------------------------------------===//
// Passes
//===----------------------------------------------------------------------===//

void PTXBackend::addBufferPasses(OpPassManager &pm,
                                 const TargetDescription &target) const {
  pm.addPass(createPositionsOutside());
  ConvertAttuneToGPUOptions blocks;
  blocks.multiprocessors = countMultiprocessors(target.gpu);
  blocks.warpgroups = hasWarpgroups(target.gpu);
  blocks.tf32 = target.tf32;
  blocks.dependent = hasDependentLaunch(target.gpu) || target.persistentKernel;
  pm.addPass(createConvertAttuneToGPU(blocks));
}

void PTXBackend::addThreadPasses(OpPassManager &pm,
                                 const TargetDescription &target) const {
  LoopsToKernelsOptions loops;
  loops.accesses = target.persistentKernel;
  pm.addPass(createLoopsToKernels(loops));
  // At once: nothing of a kernel may move to the host, nor the reverse.
  pm.addPass(createGpuKernelOutliningPass());
  pm.addPass(createShareKernels());
  if (!target.persistentKernel)
    return;
  PersistentKernelOptions step;
  step.earlyLaunches = hasDependentLaunch(target.gpu);
  step.sharedBytes = sharedBytesOfMultiprocessor(target.gpu);
  pm.addPass(createPersistentKernel(step));
}

void PTXBackend::addCodePasses(OpPassManager &pm,
                               const TargetDescription &target) const {
  OpPassManager &kernels = pm.nest<gpu::GPUModuleOp>();
  kernels.addPass(createKernelLimits());
  if (hasDependentLaunch(target.gpu))
    kernels.addPass(createDependentLaunch());
  kernels.addPass(createAlignAccesses());
  kernels.addPass(createKernelMath());
  kernels.addPass(createApproximateMath());
  kernels.addPass(memref::createExpandStridedMetadataPass());
  kernels.addPass(createLowerAffinePass());
  kernels.addPass(createCanonicalizerPass());
  kernels.addPass(createCSEPass());
  kernels.addPass(createLoopInvariantCodeMotionPass());
  kernels.addPass(createConvertNVGPUToNVVMPass());
  kernels.addPass(createSCFToControlFlowPass());
  kernels.addPass(createConvertVectorToLLVMPass());
  kernels.addPass(arith::createArithExpandOpsPass());
  kernels.addPass(createConvertMathToLLVMPass());
  kernels.addPass(createKernelIntrinsics());
  ConvertGpuOpsToNVVMOpsOptions nvvm;
  nvvm.indexBitwidth = 64;
  nvvm.hasRedux = true; // sm_80 and up
  kernels.addPass(createConvertGpuOpsToNVVMOps(nvvm));
  kernels.addPass(createReconcileUnrealizedCastsPass());
  // Instructions without an intrinsic, such as wgmma, are lines of assembly.
  kernels.addPass(createConvertNVVMToLLVMPass());
  kernels.addPass(createCanonicalizerPass());
  GpuNVVMAttachTargetOptions attach;
  attach.chip = target.gpu;
  attach.features = ptxFeature(target.gpu);
  attach.optLevel = 3;
  pm.addPass(createGpuNVVMAttachTarget(attach));
  pm.addPass(createKernelsToText());
  pm.addPass(createLaunchesToRuntime());
}

//===----------------------------------------------------------------------===//
// Products
//===----------------------------------------------------------------------===//

ArrayRef<ProductKind> PTXBackend::getProducts() const {
  static const std::vector<ProductKind> products = [this] {
    std::vector<ProductKind> all = {{"ptx", ".ptx", /*text=*/true},
                                    {"cubin", ".cubin"}};
    llvm::append_range(all, CPUBackend::getProducts());
    return all;
  }();
  return products;
}

std::string PTXBackend::identifyTools() const {
  std::optional<std::string> ptxas = findPtxas();
  llvm::sys::fs::file_status status;
  if (!ptxas || llvm::sys::fs::status(*ptxas, status))
    return "";
  return llvm::formatv(
             "{0} {1} {2}", *ptxas, status.getSize(),
             status.getLastModificationTime().time_since_epoch().count())
      .str();
}

/// The kernels' machine code, and in the metadata what they take; empty where
/// there is no toolkit and none is required.
static llvm::Expected<std::string> assembleKernels(Emission &emission,
                                                   bool required) {
  DeviceCode device = getDeviceCode(emission.module);
  std::optional<std::string> ptxas = findPtxas();
  if (device.ptx.empty() || (!ptxas && !required))
    return std::string();
  emission.beginStage("assembling kernels");
  if (!ptxas)
    return llvm::make_error<Refusal>(
        "--emit=cubin needs ptxas of the CUDA toolkit, which is neither on "
        "PATH nor in $CUDA_HOME (by default /usr/local/cuda); --emit=ptx needs "
        "no toolkit");
  llvm::Expected<Assembled> assembled = assemble(device, *ptxas);
  if (!assembled)
    return assembled.takeError();
  addKernelReport(emission.module, assembled->kernels);
  return std::move(assembled->cubin);
}

llvm::Expected<ProductBytes> PTXBackend::emit(StringRef product,
                                              Emission &emission) const {
  std::string ptx = getDeviceCode(emission.module).ptx;
  emission.keepStage("5-kernels.ptx", ptx);
  if (product == "ptx")
    return ProductBytes(ptx.begin(), ptx.end());
  if (product == "llvm" || product == "asm")
    return CPUBackend::emit(product, emission);
  llvm::Expected<std::string> cubin =
      assembleKernels(emission, /*required=*/product == "cubin");
  if (!cubin)
    return cubin.takeError();
  if (product == "cubin")
    return ProductBytes(cubin->begin(), cubin->end());
  if (!cubin->empty())
    addCubin(emission.module, *cubin);
  return CPUBackend::emit(product, emission);
}

} // namespace attune
