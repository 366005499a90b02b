//===- Assemble.cpp - PTX to machine code -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/PTX/PTXBackend.h"
#include "attune/Target/RunTool.h"
#include "attune/Target/TemporaryFolder.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace attune {

static constexpr StringRef kDevice = "attune.device";

DeviceCode getDeviceCode(ModuleOp module) {
  DeviceCode code;
  if (auto device = module->getAttrOfType<DictionaryAttr>(kDevice)) {
    code.chip = device.getAs<StringAttr>("chip").str();
    code.ptx = device.getAs<StringAttr>("ptx").str();
    auto shared = device.getAs<DenseI64ArrayAttr>("dynamic_shared");
    for (auto [name, bytes] : llvm::zip_equal(
             device.getAs<ArrayAttr>("kernels"), shared.asArrayRef()))
      code.dynamicShared[cast<StringAttr>(name)] = bytes;
  }
  return code;
}

void addCubin(ModuleOp module, StringRef cubin) {
  auto device = module->getAttrOfType<DictionaryAttr>(kDevice);
  NamedAttrList attributes(device);
  attributes.set("cubin", StringAttr::get(module.getContext(), cubin));
  module->setAttr(kDevice, attributes.getDictionary(module.getContext()));
}

std::optional<std::string> findPtxas() {
  if (auto found = llvm::sys::findProgramByName("ptxas"))
    return *found;
  std::string toolkit =
      llvm::sys::Process::GetEnv("CUDA_HOME").value_or("/usr/local/cuda");
  if (auto found = llvm::sys::findProgramByName("ptxas", {toolkit + "/bin"}))
    return *found;
  return std::nullopt;
}

static std::string readAll(const Twine &path) {
  auto buffer = llvm::MemoryBuffer::getFile(path);
  return buffer ? (*buffer)->getBuffer().str() : std::string();
}

llvm::Expected<Assembled> assemble(const DeviceCode &code,
                                   const std::string &ptxas) {
  // Names that are the same every time: machine code may record them.
  TemporaryFolder folder("attune-ptxas");
  if (folder.error())
    return llvm::createStringError(folder.error(),
                                   "cannot make a temporary folder");
  std::string input = folder.file("kernels.ptx"),
              output = folder.file("kernels.cubin"), messages;
  if (std::error_code error = folder.write("kernels.ptx", code.ptx))
    return llvm::createStringError(error, "cannot write %s", input.c_str());
  std::string arch = "-arch=" + code.chip;
  StringRef arguments[] = {ptxas, "-v", arch, "-o", output, input};
  if (runTool(ptxas, arguments, folder, messages) != 0)
    return llvm::createStringError("%s failed:\n%s", ptxas.c_str(),
                                   messages.c_str());
  return Assembled{readAll(output), readKernelUse(messages)};
}

} // namespace attune
