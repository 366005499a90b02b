//===- CudaDevice.h - A compiled model on a GPU -----------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// One device, one stream, one arena. The entries of a model for a GPU are host
// code that computes sizes and launches kernels: they get descriptors of device
// memory, and what they push as frames is device memory too. The weights are
// uploaded when the model is opened, inputs and outputs at every call, unless
// the caller keeps them in memory of this device; caches stay there.
//
// Launches are collected, and start when the entry is done or reads a number of
// the device (see CudaGraph.h). A step of decoding differs from the one before
// by the length of the caches, so the next step's graph is prepared while the
// device works on this one: then only the launch is left to do between them.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_CUDADEVICE_H
#define ATTUNE_LIB_RUNTIME_CUDA_CUDADEVICE_H

#include "CudaDriver.h"
#include "CudaGraph.h"
#include "attune/Runtime/Metadata.h"
#include "attune/Runtime/Model.h"

#include <csetjmp>
#include <memory>
#include <pthread.h>
#include <vector>

namespace attune::runtime {

/// A matrix on the device, or one for each head of each batch, and the part of
/// one that is copied at a time.
struct TensorMapKey {
  uint64_t address, elementBytes, columns, rows, stride, heads, headStride,
      batches, batchStride, boxColumns, boxRows, swizzled;
};

class Mesh;

class CudaDevice {
  friend class CudaPages;

public:
  /// Finds a GPU that can run `code` and loads it there: the first one, or of
  /// several ranks of a machine, each the one of its `number`, in turns. Frames
  /// may take `frameLimit` bytes in all; 0 means as much as the device has.
  static std::unique_ptr<CudaDevice> open(const attune_device_code &code,
                                          int number, uint64_t frameLimit,
                                          Error &error);
  ~CudaDevice();

  /// Finds what GPUs of several ranks exchange by, and then joins them.
  bool findRanks(Mesh &mesh, Error &error);
  bool joinRanks(Error &error);

  /// Memory of the device, filled with zeros; `what` names it in messages.
  /// It is freed with the device or by release().
  bool allocate(uint64_t bytes, const char *what, void *&address, Error &error);
  void release(void *address);
  bool upload(void *to, const void *from, uint64_t bytes, Error &error);
  bool download(void *to, const void *from, uint64_t bytes, Error &error);
  bool copy(void *to, const void *from, uint64_t bytes, Error &error);
  /// Whether this lies in memory that allocate() gave.
  bool owns(int64_t address) const;

  /// Calls an entry with copies of its inputs, and copies its outputs back.
  bool run(attune_entry_fn function, const EntryInfo &entry, void **args,
           Error &error);

  /// Where the weights lie, once they are there.
  void *weights = nullptr;
  uint64_t frameHighWater() const { return highWater; }
  /// Why the persistent kernels of the code are not used, as known from the
  /// steps so far; empty: they are, or there are none. Any thread may ask.
  std::string whyNotPersistent() const { return graphs.whyNotPersistent(); }

  /// Takes the memory for intermediate results that such a call needs, and
  /// starts nothing. Of an entry that reads numbers of the device it is what it
  /// needs until then.
  bool rehearse(attune_entry_fn function, const EntryInfo &entry, void **args,
                Error &error);

  // Functions that compiled code calls.
  void launch(int64_t kernel, const unsigned (&sizes)[6], uint64_t shared,
              const uint64_t *words, int64_t count);
  void exchange(CudaLaunches::Exchange kind, int64_t from, int64_t to,
                int64_t count);
  /// What the next launch is in a persistent kernel, and what it touches.
  void nameInstruction(const CudaInstruction &next);
  void access(uint64_t address, uint64_t bytes, bool writes);
  uint64_t read(const void *address, int64_t bytes);
  /// The device's address of a map of a matrix.
  void *tensorMap(const TensorMapKey &key);
  void *push(int64_t bytes);
  void pop(int64_t bytes);

private:
  CudaDevice();
  bool start(const attune_device_code &code, int number, Error &error);
  bool check(const attune_device_code &code, Error &error);
  bool loadCode(const attune_device_code &code, Error &error);
  bool failed(CudaResult result, const char *doing, Error &error);
  /// An address is none of this device's memory any more.
  void forget(const void *address);
  /// Until everything that was started is done. Ranks wait for each other there
  /// without an end, so that theirs is looked for.
  bool wait(Error &error);
  /// Ends the entry that runs; the error is in `problem`.
  [[noreturn]] void leave();
  bool copyArguments(const EntryInfo &entry, void **args, Error &error);
  bool copyOutputs(const EntryInfo &entry, void **args, Error &error);
  /// While the device works on a call that appends to caches: what the next one
  /// will launch, a token later.
  void prepareNext(attune_entry_fn function, const EntryInfo &entry,
                   void **args);
  /// Everything that a call's launches depend on.
  std::vector<int64_t> keyOf(attune_entry_fn function, const EntryInfo &entry,
                             void *const *args) const;
  void resetArena();
  bool forgetMaps();
  /// Starts what was collected.
  bool start(Error &error);

  struct Chunk {
    CudaAddress base;
    uint64_t size, used;
  };
  struct Frame {
    size_t chunk;
    uint64_t before; ///< what was used of the chunk
  };

  CudaDriver driver;
  CudaOrdinal ordinal = 0;
  std::string name; ///< of the device
  int capability = 0;
  CudaHandle context = nullptr, stream = nullptr, module = nullptr;
  const attune_device_code *code = nullptr;
  std::vector<CudaHandle> kernels;
  CudaGraphs graphs;
  std::unique_ptr<Nccl> ranks; ///< null: there are no others
  struct Allocation {
    CudaAddress base;
    uint64_t bytes;
  };
  std::vector<Allocation> allocated; ///< and not released
  pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

  // The arena: chunks in use from the first on, and the frames in them.
  std::vector<Chunk> chunks;
  std::vector<Frame> frames;
  uint64_t frameLimit = 0, inUse = 0, highWater = 0;

  // The call that runs.
  std::vector<std::vector<int64_t>> words; ///< descriptors on the device
  std::vector<void *> arguments;
  CudaLaunches work;
  CudaInstructions instructions; ///< that the next launch may be
  bool preparing = false;        ///< nothing is started
  std::vector<int64_t> prepared; ///< the key of the call that is, or empty

  /// Small inputs and outputs pass through memory that the device reads and
  /// writes itself; null if there is none.
  static constexpr uint64_t kStagedBytes = 64 << 10;
  char *staged = nullptr;
  uint64_t stagedUse = 0;

  /// Maps that were made, in memory for kMaps of them.
  static constexpr size_t kMaps = 4096, kMapBytes = 128;
  std::vector<TensorMapKey> maps;
  void *mapMemory = nullptr;
  jmp_buf home;
  Error problem;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_CUDADEVICE_H
