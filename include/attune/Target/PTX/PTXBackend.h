//===- PTXBackend.h - Kernels as text and as machine code -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_PTX_PTXBACKEND_H
#define ATTUNE_TARGET_PTX_PTXBACKEND_H

#include "attune/Target/CPU/CPUBackend.h"

#include "llvm/ADT/StringMap.h"

namespace attune {

/// The kernels of a module behind buildLLVMPipeline with a GPU.
struct DeviceCode {
  std::string chip; ///< as in --gpu
  std::string ptx;
  llvm::StringMap<int64_t> dynamicShared; ///< bytes that launches reserve
};
/// Empty if the module launches none.
DeviceCode getDeviceCode(mlir::ModuleOp module);

/// The toolkit's assembler: on PATH or in the toolkit, which is $CUDA_HOME or
/// else /usr/local/cuda.
std::optional<std::string> findPtxas();

/// The GPU resources of a kernel, as ptxas counts them.
struct KernelUse {
  std::string name;
  int64_t registers = 0; ///< of a thread
  int64_t sharedBytes = 0;
  int64_t stackBytes = 0;   ///< local memory of a thread
  int64_t spilledBytes = 0; ///< moved to and from there for want of registers
};
/// Reads what `ptxas -v` prints; sorted by name.
std::vector<KernelUse> readKernelUse(llvm::StringRef report);
/// Shared memory of a multiprocessor of this chip.
int64_t sharedBytesOfMultiprocessor(llvm::StringRef chip);
/// The share of a multiprocessor's warps that blocks of `threads` threads fill.
int64_t occupancyPercent(const KernelUse &kernel, int64_t threads,
                         llvm::StringRef chip);

struct Assembled {
  std::string cubin;
  std::vector<KernelUse> kernels;
};
/// Machine code of the text, for its chip. An error says what ptxas said.
llvm::Expected<Assembled> assemble(const DeviceCode &code,
                                   const std::string &ptxas);

/// Adds it to the module, so that the product needs no compiler in the driver.
void addCubin(mlir::ModuleOp module, llvm::StringRef cubin);

/// Adds what kernels take to what the product says of itself (`inspect`), with
/// the shared memory of launches, which ptxas does not know.
void addKernelReport(mlir::ModuleOp module,
                     const std::vector<KernelUse> &kernels);

/// Kernels for NVIDIA GPUs, and a CPU's program that launches them.
class PTXBackend : public CPUBackend {
public:
  llvm::StringRef getName() const override { return "cuda"; }
  /// Any CPU of the host's architecture: it computes sizes and starts kernels,
  /// mostly on another machine than the one that compiles.
  std::string getDefaultCpu() const override;
  /// The default runs on all later ones, too.
  std::vector<std::string> listGpus() const override;
  std::optional<TargetDescription>
  describe(const std::string &cpu, const std::string &gpu) const override;
  void addBufferPasses(mlir::OpPassManager &pm,
                       const TargetDescription &target) const override;
  void addThreadPasses(mlir::OpPassManager &pm,
                       const TargetDescription &target) const override;
  /// Kernels to PTX: what is left is host code that launches them.
  void addCodePasses(mlir::OpPassManager &pm,
                     const TargetDescription &target) const override;
  llvm::ArrayRef<ProductKind> getProducts() const override;
  /// Objects hold the kernels, as text and as machine code. Machine code alone
  /// is not in them.
  bool reusesObjects(llvm::StringRef product) const override {
    return getName() == "cuda" && product != "cubin";
  }
  /// ptxas by its path, size and time, if there is one.
  std::string identifyTools() const override;
  llvm::Expected<ProductBytes> emit(llvm::StringRef product,
                                    Emission &emission) const override;
};

} // namespace attune

#endif // ATTUNE_TARGET_PTX_PTXBACKEND_H
