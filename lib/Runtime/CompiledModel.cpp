//===- CompiledModel.cpp - A descriptor, its weights and its threads ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CompiledModel.h"
#include "Weights.h"

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
  model->threads =
      ThreadTeam::create(options.threads, options.memoryLimit, error);
  if (!model->threads)
    return nullptr;
  return model;
}

namespace {
struct Call {
  attune_entry_fn function;
  void **args;
};
} // namespace

bool CompiledModel::call(const EntryInfo &entry, void **args, Error &error) {
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
  grown.memory = static_cast<uint8_t *>(fresh);
  swap(grown);
  return true;
}

} // namespace attune::runtime
