//===- CompiledModel.cpp - A descriptor, its weights and its threads ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/CompiledModel.h"
#include "Cuda/CudaDevice.h"
#include "Mesh/MeshCalls.h"
#include "TextHash.h"
#include "Weights.h"
#include "attune/Runtime/Machine.h"
#include "attune/Runtime/WeightSection.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>

namespace attune::runtime {

CompiledModel::CompiledModel() : blob(new WeightsBlob()) {}
CompiledModel::~CompiledModel() {
  if (calls && calls->leads())
    calls->stop();
}

const uint8_t *CompiledModel::weights() const { return blob->data(); }
uint64_t CompiledModel::weightsBytes() const { return blob->size(); }

bool CompiledModel::openWeights(const OpenOptions &options, Error &error) {
  WeightsBlob &blob = *this->blob;
  // A blob has the weights of all ranks, or those of one.
  uint64_t each = modelInfo.weightsBytes - modelInfo.sharedBytes;
  uint64_t expected = modelInfo.ranks > 1
                          ? modelInfo.sharedBytes + each * modelInfo.ranks
                          : modelInfo.weightsBytes;
  bool absent;
  if (options.weights)
    blob.borrow(options.weights, options.weightsBytes);
  else if (!options.weightsPath.empty()) {
    if (!blob.map(options.weightsPath, absent, error))
      return false;
  } else if (expected && !blob.locate(descriptor, error))
    return false;
  // A file that `attune split` made for one rank.
  bool isPart = modelInfo.ranks > 1 &&
                blob.size() == modelInfo.weightsBytes + rankLineBytes;
  if (isPart) {
    uint64_t rank = blob.takeRank(modelInfo.weightsBytes);
    if (rank != static_cast<uint64_t>(mesh->part()))
      return error.badInput(blob.file() + ": has the weights of rank " +
                            std::to_string(rank) + ", and this is rank " +
                            std::to_string(mesh->part()) +
                            "; start each rank with its own file");
    expected = modelInfo.weightsBytes;
  }
  if (expected && blob.size() != expected) {
    error.badInput("the model's weights have " + std::to_string(blob.size()) +
                   " bytes, but the model was compiled for " +
                   std::to_string(expected));
    return false;
  }
  const std::string &layout = modelInfo.weightsLayout;
  if (expected && !layout.empty() && !blob.layout().empty() &&
      blob.layout() != layout) {
    error.badInput(blob.file() +
                   ": the weights are packed for another model or another CPU "
                   "(their layout is " +
                   blob.layout() + ", this model reads " + layout +
                   "); give those that were compiled with it");
    return false;
  }
  if (modelInfo.ranks > 1 && !isPart &&
      !blob.keepRank(static_cast<uint64_t>(mesh->part()), modelInfo.sharedBytes,
                     each, error))
    return false;
  // A GPU gets a copy anyway.
  return !options.readsWeights || descriptor->device || blob.read(error);
}

/// Ranks of one machine share its cores, unless the launcher has given each
/// its own.
static unsigned threadsOfRank() {
  unsigned cores = availableCores();
  long all = sysconf(_SC_NPROCESSORS_ONLN);
  int ranks = LaunchedRank::read().ranksOfHost;
  return ranks > 1 && long(cores) == all
             ? std::max(cores / static_cast<unsigned>(ranks), 1u)
             : cores;
}

bool CompiledModel::joinRanks(const OpenOptions &options, Error &error) {
  if (options.weights)
    return error.badInput("a model that is cut for several ranks finds its "
                          "weights in a file alone");
  mesh = Mesh::join(modelInfo, options, error);
  if (!mesh)
    return false;
  bool good = openWeights(options, error);
  // The file's layout, or what the code reads if the file does not tell.
  std::string layout = blob->layout() + modelInfo.weightsLayout;
  TextHash fingerprint;
  fingerprint.add(layout);
  fingerprint.add({descriptor->metadata, descriptor->metadata_size});
  if (!agree(good, fingerprint.value, error))
    return false;
  calls.reset(new MeshCalls(*mesh, *this, options.checkRanks));
  return true;
}

int CompiledModel::numGroups() const { return mesh ? mesh->numGroups() : 1; }
int CompiledModel::group() const { return mesh ? mesh->group() : 0; }

void CompiledModel::collect(int group, std::string &bytes) {
  mesh->collect(group, bytes);
}

void CompiledModel::endGroups(const Error &error) {
  if (numGroups() > 1)
    mesh->abort(error.message, error.code ? error.code : ExitInternalError);
}

bool CompiledModel::agree(bool good, uint64_t fingerprint, Error &error) {
  if (!good && (mesh->rank() || mesh->group()))
    std::fprintf(stderr, "%s: error: %s\n", mesh->name().c_str(),
                 error.message.c_str());
  return mesh->agree(good, fingerprint, error);
}

bool CompiledModel::uploadWeights(Error &error) {
  return gpu->allocate(blob->size(), "the model's weights", gpu->weights,
                       error) &&
         gpu->upload(gpu->weights, blob->data(), blob->size(), error);
}

bool CompiledModel::openDevice(const OpenOptions &options, Error &error) {
  LaunchedRank launched;
  if (mesh)
    launched = LaunchedRank::read();
  int number = launched.rankOfHost >= 0 ? launched.rankOfHost
                                        : std::max(launched.rank, 0);
  gpu =
      CudaDevice::open(*descriptor->device, number, options.memoryLimit, error);
  // Groups of one rank have nobody to exchange with.
  bool shares = mesh && mesh->size() > 1;
  bool good =
      gpu && (!shares || gpu->findRanks(*mesh, error)) && uploadWeights(error);
  if (!mesh)
    return good;
  // NCCL would wait for a rank without a GPU.
  if (agree(good, 0, error) &&
      (!shares || agree(gpu->joinRanks(error), 0, error)))
    return true;
  calls.reset();
  return false;
}

bool CompiledModel::follows() const { return calls && !calls->leads(); }

bool CompiledModel::follow(Error &error) {
  // Launchers pass these on to all ranks; the first one knows what to finish.
  std::signal(SIGTERM, SIG_IGN);
  std::signal(SIGINT, SIG_IGN);
  if (calls->follow(error))
    return true;
  // The first rank has most likely failed alike and is about to say so.
  usleep(300000);
  mesh->abort(error.message, error.code);
}

MeshCalls *CompiledModel::ranksToTell() const {
  return calls && calls->leads() ? calls.get() : nullptr;
}

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
  if (!readModelInfo(*descriptor, model->modelInfo, error))
    return nullptr;
  if (!checkMachine(model->modelInfo.needs, error) || !model->chooseCode(error))
    return nullptr;
  OpenOptions given = options;
  if (model->modelInfo.hasRanks()) {
    if (!model->joinRanks(options, error))
      return nullptr;
    if (!given.threads)
      given.threads = threadsOfRank();
  } else if (!model->openWeights(options, error)) {
    return nullptr;
  }
  const attune_device_code *code = descriptor->device;
  // A GPU is driven by one thread.
  model->threads =
      ThreadTeam::create(code ? 1 : given.threads, options.memoryLimit, error);
  if (!model->threads)
    return nullptr;
  if (code && !model->openDevice(options, error))
    return nullptr;
  return model;
}

bool CompiledModel::chooseCode(Error &error) {
  if (modelInfo.variants.empty())
    return true;
  std::optional<size_t> variant =
      chooseVariant(modelInfo.variants, std::getenv(kForcedCpu), error);
  if (variant)
    firstEntry = *variant * modelInfo.entries.size();
  return variant.has_value();
}

uint64_t CompiledModel::frameHighWater() const {
  return gpu ? gpu->frameHighWater() : threads->frameHighWater();
}

std::string CompiledModel::whyNotPersistent() const {
  return gpu ? gpu->whyNotPersistent() : "";
}

namespace {
struct Call {
  attune_entry_fn function;
  void **args;
};
} // namespace

bool CompiledModel::call(const EntryInfo &entry, void **args, Error &error) {
  if (MeshCalls *ranks = ranksToTell())
    return ranks->call(entry, args, error);
  return callHere(entry, args, error);
}

/// What calls of the same length have in common that append some tokens to
/// caches; 0: the call is no such step.
static uint64_t kindOfStep(const EntryInfo &entry, void **args) {
  constexpr int64_t mostRows = 64;
  const ArgInfo *ids = entry.findIds();
  if (!ids || std::none_of(entry.args.begin(), entry.args.end(),
                           [](const ArgInfo &arg) {
                             return arg.kind == ArgKind::Cache;
                           }))
    return 0;
  // A descriptor: two addresses, an offset, sizes.
  auto *words = static_cast<const int64_t *>(args[ids - entry.args.data()]);
  int64_t rows = 1;
  for (size_t d = 0; d < ids->shape.size(); ++d)
    rows *= std::min(words[3 + d], mostRows + 1);
  return rows <= mostRows ? (uint64_t(entry.index) + 1) << 32 | uint64_t(rows)
                          : 0;
}

bool CompiledModel::callHere(const EntryInfo &entry, void **args,
                             Error &error) {
  if (gpu)
    return gpu->run(descriptor->entries[entry.index], entry, args, error);
  Call call = {descriptor->entries[firstEntry + entry.index], args};
  return threads->run(
      [](void *context) {
        auto *call = static_cast<Call *>(context);
        call->function(call->args);
      },
      &call, error, kindOfStep(entry, args));
}

bool CompiledModel::rehearse(const EntryInfo &entry, void **args,
                             Error &error) {
  return !gpu || ranksToTell() ||
         gpu->rehearse(descriptor->entries[entry.index], entry, args, error);
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
// Memory that a model keeps
//===----------------------------------------------------------------------===//

bool CompiledModel::copy(uint8_t *to, const uint8_t *from, uint64_t bytes,
                         Error &error) {
  if (!gpu)
    std::memcpy(to, from, bytes);
  else if (!gpu->copy(to, from, bytes, error))
    return false;
  if (MeshCalls *ranks = ranksToTell())
    ranks->copy(to, from, bytes);
  return true;
}

bool CompiledModel::exchange(uint8_t *a, uint8_t *b, uint64_t bytes,
                             Error &error) {
  if (!exchangeHere(a, b, bytes, error))
    return false;
  if (MeshCalls *ranks = ranksToTell())
    ranks->exchange(a, b, bytes);
  return true;
}

bool CompiledModel::exchangeHere(uint8_t *a, uint8_t *b, uint64_t bytes,
                                 Error &error) {
  if (!gpu)
    std::swap_ranges(a, a + bytes, b);
  if (!gpu || bytes == 0)
    return true;
  uint64_t most = std::min<uint64_t>(bytes, 16 << 20);
  void *spare = nullptr;
  if (!gpu->allocate(most, "exchanged sequences", spare, error))
    return false;
  bool done = true;
  for (uint64_t at = 0, part; at < bytes && done; at += part) {
    part = std::min(most, bytes - at);
    done = gpu->copy(spare, a + at, part, error) &&
           gpu->copy(a + at, b + at, part, error) &&
           gpu->copy(b + at, spare, part, error);
  }
  gpu->release(spare);
  return done;
}

bool CompiledModel::read(void *to, const uint8_t *from, uint64_t bytes,
                         Error &error) {
  if (gpu)
    return gpu->download(to, from, bytes, error);
  std::memcpy(to, from, bytes);
  return true;
}

bool CompiledModel::write(uint8_t *to, const void *from, uint64_t bytes,
                          Error &error) {
  if (gpu)
    return gpu->upload(to, from, bytes, error);
  std::memcpy(to, from, bytes);
  return true;
}

ModelMemory::~ModelMemory() {
  if (ranks && data())
    ranks->release(data());
  if (onDevice)
    device->release(onDevice);
}

void ModelMemory::swap(ModelMemory &other) {
  std::swap(host, other.host);
  std::swap(ranks, other.ranks);
  std::swap(device, other.device);
  std::swap(onDevice, other.onDevice);
}

bool ModelMemory::reserve(CompiledModel &model, uint64_t bytes,
                          const char *what, Error &error) {
  device = model.device();
  if (device) {
    void *address = nullptr;
    if (!device->allocate(bytes, what, address, error))
      return false;
    onDevice = static_cast<uint8_t *>(address);
  } else if (!host.reserve(bytes)) {
    return error.set(ExitResourceLimit, std::string(what) + " need " +
                                            std::to_string(bytes) +
                                            " bytes of memory");
  }
  ranks = model.ranksToTell();
  if (ranks)
    ranks->reserve(data(), bytes);
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

} // namespace attune::runtime
