//===- CompiledModel.cpp - A descriptor, its weights and its threads ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CompiledModel.h"
#include "Cuda/CudaDevice.h"
#include "Weights.h"
#include "attune/Runtime/Machine.h"

#include <algorithm>
#include <cstring>
#include <sys/mman.h>

namespace attune::runtime {

CompiledModel::CompiledModel() : blob(new WeightsBlob()) {}
CompiledModel::~CompiledModel() = default;

const uint8_t *CompiledModel::weights() const { return blob->data(); }
uint64_t CompiledModel::weightsBytes() const { return blob->size(); }

std::unique_ptr<CompiledModel>
CompiledModel::open(const attune_model_descriptor *descriptor,
                    const OpenOptions &options, Error &error) {
  if (descriptor->abi_version != ATTUNE_ABI_VERSION) {
    error.set(ExitInternalError,
              "the model speaks version " +
                  std::to_string(descriptor->abi_version) +
                  " of the runtime's interface, this runtime version " +
                  std::to_string(ATTUNE_ABI_VERSION));
    return nullptr;
  }
  std::unique_ptr<CompiledModel> model(new CompiledModel());
  model->descriptor = descriptor;
  std::string_view metadata(descriptor->metadata, descriptor->metadata_size);
  if (!parseModelInfo(metadata, descriptor->num_entries, model->modelInfo,
                      error))
    return nullptr;
  if (!checkMachine(model->modelInfo.needs, error))
    return nullptr;
  WeightsBlob &blob = *model->blob;
  uint64_t expected = model->modelInfo.weightsBytes;
  bool absent;
  if (options.weights)
    blob.borrow(options.weights, options.weightsBytes);
  else if (!options.weightsPath.empty()) {
    if (!blob.map(options.weightsPath, absent, error))
      return nullptr;
  } else if (expected && !blob.locate(descriptor, error))
    return nullptr;
  if (expected && blob.size() != expected) {
    error.badInput("the model's weights have " + std::to_string(blob.size()) +
                   " bytes, but the model was compiled for " +
                   std::to_string(expected));
    return nullptr;
  }
  const std::string &layout = model->modelInfo.weightsLayout;
  if (expected && !layout.empty() && !blob.layout().empty() &&
      blob.layout() != layout) {
    error.badInput(blob.file() +
                   ": the weights are packed for another model or another CPU "
                   "(their layout is " +
                   blob.layout() + ", this model reads " + layout +
                   "); give those that were compiled with it");
    return nullptr;
  }
  const attune_device_code *code = descriptor->device;
  // A GPU is driven by one thread.
  model->threads = ThreadTeam::create(code ? 1 : options.threads,
                                      options.memoryLimit, error);
  if (!model->threads)
    return nullptr;
  if (!code)
    return model;
  model->gpu = CudaDevice::open(*code, options.memoryLimit, error);
  if (!model->gpu ||
      !model->gpu->allocate(blob.size(), "the model's weights",
                            model->gpu->weights, error) ||
      !model->gpu->upload(model->gpu->weights, blob.data(), blob.size(), error))
    return nullptr;
  return model;
}

uint64_t CompiledModel::frameHighWater() const {
  return gpu ? gpu->frameHighWater() : threads->frameHighWater();
}

namespace {
struct Call {
  attune_entry_fn function;
  void **args;
};
} // namespace

bool CompiledModel::call(const EntryInfo &entry, void **args, Error &error) {
  if (gpu)
    return gpu->run(descriptor->entries[entry.index], entry, args, error);
  Call call = {descriptor->entries[entry.index], args};
  return threads->run(
      [](void *context) {
        auto *call = static_cast<Call *>(context);
        call->function(call->args);
      },
      &call, error);
}

//===----------------------------------------------------------------------===//
// Buffer
//===----------------------------------------------------------------------===//

Buffer::~Buffer() {
  if (memory)
    munmap(memory, capacity);
}

bool Buffer::reserve(uint64_t bytes) {
  if (memory && bytes <= capacity)
    return true;
  Buffer grown;
  // At least a page, so that an empty tensor has an address too.
  grown.capacity = (bytes / 4096 + 1) * 4096;
  void *fresh = mmap(nullptr, grown.capacity, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED)
    return false;
  // Caches are streamed once a token: processors fetch ahead within a page.
  madvise(fresh, grown.capacity, MADV_HUGEPAGE);
  grown.memory = static_cast<uint8_t *>(fresh);
  swap(grown);
  return true;
}

//===----------------------------------------------------------------------===//
// ModelMemory
//===----------------------------------------------------------------------===//

ModelMemory::~ModelMemory() {
  if (onDevice)
    device->release(onDevice);
}

void ModelMemory::swap(ModelMemory &other) {
  std::swap(host, other.host);
  std::swap(device, other.device);
  std::swap(onDevice, other.onDevice);
}

bool ModelMemory::reserve(CompiledModel &model, uint64_t bytes,
                          const char *what, Error &error) {
  device = model.device();
  if (!device)
    return host.reserve(bytes) ||
           error.set(ExitResourceLimit, std::string(what) + " need " +
                                            std::to_string(bytes) +
                                            " bytes of memory");
  void *address = nullptr;
  if (!device->allocate(bytes, what, address, error))
    return false;
  onDevice = static_cast<uint8_t *>(address);
  return true;
}

const uint8_t *ModelMemory::read(Buffer &copy, uint64_t bytes,
                                 Error &error) const {
  if (!device)
    return data();
  if (!copy.reserve(bytes)) {
    error.set(ExitResourceLimit, "no memory for a copy of what the GPU has");
    return nullptr;
  }
  return device->download(copy.data(), data(), bytes, error) ? copy.data()
                                                             : nullptr;
}

bool ModelMemory::copy(uint64_t to, const ModelMemory &other, uint64_t from,
                       uint64_t bytes, Error &error) {
  if (device)
    return device->copy(data() + to, other.data() + from, bytes, error);
  std::memcpy(data() + to, other.data() + from, bytes);
  return true;
}

} // namespace attune::runtime
