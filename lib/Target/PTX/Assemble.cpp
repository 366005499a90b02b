//===- Assemble.cpp - PTX to machine code -----------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/TemporaryFiles.h"
#include "attune/Target/PTX/PTXBackend.h"
#include "attune/Target/RunTool.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
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
  llvm::SmallString<128> folder;
  if (std::error_code error =
          llvm::sys::fs::createUniqueDirectory("attune-ptxas", folder))
    return llvm::createStringError(error, "cannot make a temporary folder");
  llvm::scope_exit cleanup([&] { llvm::sys::fs::remove_directories(folder); });
  std::string input = (folder + "/kernels.ptx").str(),
              output = (folder + "/kernels.cubin").str(),
              messages = (folder + "/messages").str();
  runtime::TemporaryFile watchedFolder(folder.str().str());
  runtime::TemporaryFile watched[3];
  watched[0].watch(input);
  watched[1].watch(output);
  watched[2].watch(messages);
  std::error_code error;
  llvm::raw_fd_ostream(input, error) << code.ptx;
  if (error)
    return llvm::createStringError(error, "cannot write %s", input.c_str());
  std::string arch = "-arch=" + code.chip;
  StringRef arguments[] = {ptxas, "-v", arch, "-o", output, input};
  if (runTool(ptxas, arguments, messages) != 0)
    return llvm::createStringError("%s failed:\n%s", ptxas.c_str(),
                                   readAll(messages).c_str());
  return Assembled{readAll(output), readKernelUse(readAll(messages))};
}

} // namespace attune
