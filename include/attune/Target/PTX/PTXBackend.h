//===- PTXBackend.h - Kernels as text and as machine code -------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TARGET_PTX_PTXBACKEND_H
#define ATTUNE_TARGET_PTX_PTXBACKEND_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <optional>
#include <string>
#include <vector>

namespace attune {

/// The kernels of a module behind buildLLVMPipeline with a GPU.
struct DeviceCode {
  std::string chip; ///< as in --gpu
  std::string ptx;
};
/// Empty if the module launches none.
DeviceCode getDeviceCode(mlir::ModuleOp module);

/// The toolkit's assembler: on PATH or in the toolkit, which is $CUDA_HOME or
/// else /usr/local/cuda.
std::optional<std::string> findPtxas();

/// What a kernel takes of a GPU, as ptxas counts it.
struct KernelUse {
  std::string name;
  int64_t registers = 0; ///< of a thread
  int64_t sharedBytes = 0;
  int64_t stackBytes = 0;   ///< local memory of a thread
  int64_t spilledBytes = 0; ///< moved to and from there for want of registers
};
/// Reads what `ptxas -v` prints; sorted by name.
std::vector<KernelUse> readKernelUse(llvm::StringRef report);
/// The share of a multiprocessor's warps that blocks of so many threads fill.
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

/// Adds what kernels take to what the product says of itself (`inspect`).
void addKernelReport(mlir::ModuleOp module,
                     const std::vector<KernelUse> &kernels);

} // namespace attune

#endif // ATTUNE_TARGET_PTX_PTXBACKEND_H
