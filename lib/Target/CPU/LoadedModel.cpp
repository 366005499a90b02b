//===- LoadedModel.cpp - An object run in this process ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Target/CPU/CPUBackend.h"

#include "llvm/ExecutionEngine/Orc/ExecutionUtils.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"
#include "llvm/Support/MemoryBuffer.h"

namespace attune {

struct LoadedModel::Impl {
  std::unique_ptr<llvm::orc::LLJIT> jit;
  const attune_model_descriptor *descriptor = nullptr;
};

LoadedModel::LoadedModel(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
LoadedModel::~LoadedModel() = default;
LoadedModel::LoadedModel(LoadedModel &&) = default;

const attune_model_descriptor *LoadedModel::getDescriptor() const {
  return impl->descriptor;
}

llvm::Expected<LoadedModel> LoadedModel::load(llvm::ArrayRef<char> object) {
  using namespace llvm::orc;
  auto impl = std::make_unique<Impl>();
  llvm::Expected<std::unique_ptr<LLJIT>> jit = LLJITBuilder().create();
  if (!jit)
    return jit.takeError();
  impl->jit = std::move(*jit);
  JITDylib &library = impl->jit->getMainJITDylib();
  // The runtime is linked into this program but not exported from it.
  SymbolMap runtime;
  auto add = [&](const char *name, auto *function) {
    runtime[impl->jit->mangleAndIntern(name)] = {
        ExecutorAddr::fromPtr(function),
        llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable};
  };
  add("attune_rt_barrier", &attune_rt_barrier);
  add("attune_rt_claim", &attune_rt_claim);
  add("attune_rt_thread", &attune_rt_thread);
  add("attune_rt_num_threads", &attune_rt_num_threads);
  add("attune_rt_frame_push", &attune_rt_frame_push);
  add("attune_rt_frame_pop", &attune_rt_frame_pop);
  add("attune_rt_rank", &attune_rt_rank);
  add("attune_rt_all_reduce", &attune_rt_all_reduce);
  add("attune_rt_all_reduce_rows", &attune_rt_all_reduce_rows);
  add("attune_rt_all_gather", &attune_rt_all_gather);
  add("attune_rt_rank_of_positions", &attune_rt_rank_of_positions);
  add("attune_rt_all_merge", &attune_rt_all_merge);
  add("attune_rt_launch", &attune_rt_launch);
  add("attune_rt_instruction", &attune_rt_instruction);
  add("attune_rt_access", &attune_rt_access);
  add("attune_rt_tensor_map", &attune_rt_tensor_map);
  add("attune_rt_device_read", &attune_rt_device_read);
  add("attune_rt_device_push", &attune_rt_device_push);
  add("attune_rt_device_pop", &attune_rt_device_pop);
  add("attune_rt_device_all_reduce", &attune_rt_device_all_reduce);
  add("attune_rt_device_all_gather", &attune_rt_device_all_gather);
  if (llvm::Error error = library.define(absoluteSymbols(std::move(runtime))))
    return std::move(error);
  // memset, sqrtf and the like.
  auto process = DynamicLibrarySearchGenerator::GetForCurrentProcess(
      impl->jit->getDataLayout().getGlobalPrefix());
  if (!process)
    return process.takeError();
  library.addGenerator(std::move(*process));
  auto buffer = llvm::MemoryBuffer::getMemBufferCopy(
      llvm::StringRef(object.data(), object.size()), "attune");
  if (llvm::Error error = impl->jit->addObjectFile(std::move(buffer)))
    return std::move(error);
  llvm::Expected<ExecutorAddr> symbol = impl->jit->lookup("attune_model");
  if (!symbol)
    return symbol.takeError();
  impl->descriptor = symbol->toPtr<const attune_model_descriptor *>();
  return LoadedModel(std::move(impl));
}

} // namespace attune
