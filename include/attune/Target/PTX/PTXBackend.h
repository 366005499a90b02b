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

/// Machine code of the text, for its chip. An error says what ptxas said.
llvm::Expected<std::string> assemble(const DeviceCode &code,
                                     const std::string &ptxas);

/// Adds it to the module, so that the product needs no compiler in the driver.
void addCubin(mlir::ModuleOp module, llvm::StringRef cubin);

} // namespace attune

#endif // ATTUNE_TARGET_PTX_PTXBACKEND_H
