//===- CudaCalls.cpp - Calls of entries on a GPU --------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "../Clock.h"
#include "../Mesh/Nccl.h"

#include <algorithm>
#include <cstring>
#include <sched.h>
#include <utility>

namespace attune::runtime {

namespace {
/// The device whose entry this thread runs.
thread_local CudaDevice *current = nullptr;

constexpr uint64_t defaultSharedBytes = 48 << 10;
constexpr uint64_t frameAlignment = 256;
constexpr uint64_t chunkBytes = uint64_t(2) << 20;

uint64_t roundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}
} // namespace

//===----------------------------------------------------------------------===//
// Frames
//===----------------------------------------------------------------------===//

/// Frames lie one behind the other in the last chunk, or start another one.
void *CudaDevice::push(int64_t bytes) {
  uint64_t size = roundUp(std::max<int64_t>(bytes, 1), frameAlignment);
  if (bytes < 0 || size > frameLimit || inUse > frameLimit - size) {
    problem.set(ExitResourceLimit,
                "intermediate results need " + std::to_string(inUse + size) +
                    " bytes of memory or more, but the limit is " +
                    std::to_string(frameLimit));
    leave();
  }
  size_t last = frames.empty() ? 0 : frames.back().chunk;
  while (last < chunks.size() && chunks[last].size - chunks[last].used < size)
    ++last;
  if (last == chunks.size()) {
    Chunk chunk = {0, roundUp(size, chunkBytes), 0};
    void *memory = nullptr;
    if (!allocate(chunk.size, "intermediate results", memory, problem))
      leave();
    chunk.base = reinterpret_cast<CudaAddress>(memory);
    chunks.push_back(chunk);
    // Nobody is given a whole chunk.
    allocated.pop_back();
  }
  Chunk &chunk = chunks[last];
  frames.push_back({last, chunk.used});
  void *frame = reinterpret_cast<void *>(chunk.base + chunk.used);
  chunk.used += size;
  inUse += size;
  highWater = std::max(highWater, inUse);
  return frame;
}

void CudaDevice::pop(int64_t) {
  Frame frame = frames.back();
  frames.pop_back();
  Chunk &chunk = chunks[frame.chunk];
  inUse -= chunk.used - frame.before;
  chunk.used = frame.before;
}

/// Between calls: what lay in several chunks will lie in one.
void CudaDevice::resetArena() {
  frames.clear();
  inUse = 0;
  for (Chunk &chunk : chunks)
    chunk.used = 0;
  if (chunks.size() < 2)
    return;
  // NCCL may have made what graphs exchange known to other GPUs.
  if (ranks)
    graphs.clear();
  uint64_t size = 0;
  for (Chunk &chunk : chunks) {
    size += chunk.size;
    driver.memFree(chunk.base);
  }
  chunks.clear();
  // If it cannot be had in one piece, pushes get it in several again.
  CudaAddress base = 0;
  if (driver.memAlloc(&base, size) == 0)
    chunks.push_back({base, size, 0});
}

//===----------------------------------------------------------------------===//
// Calls
//===----------------------------------------------------------------------===//

void CudaDevice::leave() { longjmp(home, 1); }

/// Bytes of a tensor, from its memref descriptor {allocated, aligned, offset,
/// sizes, strides}.
static uint64_t tensorBytes(const ArgInfo &arg, const int64_t *words) {
  uint64_t bytes = dtypeBytes(arg.dtype);
  for (size_t d = 0; d < arg.shape.size(); ++d)
    bytes *= static_cast<uint64_t>(words[3 + d]);
  return bytes;
}

bool CudaDevice::copyArguments(const EntryInfo &entry, void **args,
                               Error &error) {
  words.resize(entry.args.size());
  arguments.assign(args, args + entry.args.size());
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    if (arg.kind == ArgKind::Past || arg.kind == ArgKind::Size)
      continue;
    auto *given = static_cast<const int64_t *>(args[i]);
    size_t rank = arg.kind == ArgKind::Weights ? 1 : arg.shape.size();
    words[i].assign(given, given + 3 + 2 * rank);
    void *place = reinterpret_cast<void *>(given[1]);
    if (arg.kind == ArgKind::Weights) {
      place = weights;
    } else if (!owns(given[1])) {
      uint64_t bytes = tensorBytes(arg, given);
      place = push(static_cast<int64_t>(bytes));
      auto *from = reinterpret_cast<void *>(given[1]);
      bool isGiven = arg.kind == ArgKind::Input || arg.kind == ArgKind::Lengths;
      if (isGiven && !preparing) {
        if (staged && bytes <= kStagedBytes - stagedUse) {
          from = std::memcpy(staged + stagedUse, from, bytes);
          stagedUse += bytes;
        }
        if (!upload(place, from, bytes, error))
          return false;
      }
    }
    words[i][0] = words[i][1] = reinterpret_cast<intptr_t>(place);
    arguments[i] = words[i].data();
  }
  return true;
}

bool CudaDevice::copyOutputs(const EntryInfo &entry, void **args,
                             Error &error) {
  struct Staged {
    void *to;
    const char *from;
    uint64_t bytes;
  };
  std::vector<Staged> small;
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    auto *given = static_cast<const int64_t *>(args[i]);
    if (arg.kind != ArgKind::Output || owns(given[1]))
      continue;
    uint64_t bytes = tensorBytes(arg, given);
    auto *to = reinterpret_cast<void *>(given[1]);
    if (staged && bytes && bytes <= kStagedBytes - stagedUse) {
      small.push_back({to, staged + stagedUse, bytes});
      to = staged + stagedUse;
      stagedUse += bytes;
    } else if (ranks && !wait(error)) {
      // The copy itself would wait.
      return false;
    }
    if (bytes &&
        failed(driver.copyToHost(to, static_cast<CudaAddress>(words[i][1]),
                                 bytes, stream),
               "copying from it", error))
      return false;
  }
  if (!wait(error))
    return false;
  for (const Staged &one : small)
    std::memcpy(one.to, one.from, one.bytes);
  return true;
}

std::vector<int64_t> CudaDevice::keyOf(attune_entry_fn function,
                                       const EntryInfo &entry,
                                       void *const *args) const {
  std::vector<int64_t> key = {reinterpret_cast<intptr_t>(function),
                              reinterpret_cast<intptr_t>(&entry)};
  // Where what is copied here will lie.
  for (const Chunk &chunk : chunks)
    key.push_back(static_cast<int64_t>(chunk.base));
  for (size_t i = 0; i < entry.args.size(); ++i) {
    const ArgInfo &arg = entry.args[i];
    auto *given = static_cast<const int64_t *>(args[i]);
    if (arg.kind == ArgKind::Weights)
      continue;
    if (arg.kind == ArgKind::Past || arg.kind == ArgKind::Size) {
      key.push_back(*given);
      continue;
    }
    bool onDevice = owns(given[1]);
    for (size_t word = 0; word < 3 + 2 * arg.shape.size(); ++word)
      key.push_back(word < 2 && !onDevice ? 0 : given[word]);
  }
  return key;
}

void CudaDevice::prepareNext(attune_entry_fn function, const EntryInfo &entry,
                             void **args) {
  // Chunks are put together after a call, so addresses will be others.
  if (!graphs.hasGraph(&entry) || chunks.size() > 1)
    return;
  std::vector<void *> next(args, args + entry.args.size());
  std::vector<int64_t> lengths;
  lengths.reserve(entry.args.size());
  for (size_t i = 0; i < entry.args.size(); ++i)
    if (entry.args[i].kind == ArgKind::Past) {
      lengths.push_back(*static_cast<const int64_t *>(args[i]) + 1);
      next[i] = &lengths.back();
    }
  if (lengths.empty())
    return;
  auto ownWords = std::move(words);
  auto ownArguments = std::move(arguments);
  auto ownFrames = std::move(frames);
  uint64_t ownUse = inUse, ownUsed = chunks.empty() ? 0 : chunks[0].used;
  uint64_t ownHighWater = highWater;
  frames.clear();
  inUse = 0;
  if (!chunks.empty())
    chunks[0].used = 0;
  preparing = true;
  if (setjmp(home) == 0 && copyArguments(entry, next.data(), problem)) {
    function(arguments.data());
    if (graphs.prepare(work, stream))
      prepared = keyOf(function, entry, next.data());
  }
  // It was a guess: whatever went wrong will go wrong in time.
  preparing = false;
  problem = Error();
  work.clear();
  words = std::move(ownWords);
  arguments = std::move(ownArguments);
  frames = std::move(ownFrames);
  inUse = ownUse;
  highWater = ownHighWater;
  if (!chunks.empty())
    chunks[0].used = ownUsed;
}

/// Nobody holds maps after a call but launches that are prepared. True if there
/// were so many that they are gone.
bool CudaDevice::forgetMaps() {
  if (maps.size() <= kMaps / 2)
    return false;
  maps.clear();
  prepared.clear();
  return true;
}

bool CudaDevice::run(attune_entry_fn function, const EntryInfo &entry,
                     void **args, Error &error) {
  pthread_mutex_lock(&turn);
  driver.contextSetCurrent(context);
  CudaDevice *outer = current;
  current = this;
  problem = Error();
  work.clear();
  instructions = CudaInstructions();
  graphs.begin(&entry);
  stagedUse = 0;
  bool ready = !prepared.empty() && prepared == keyOf(function, entry, args);
  prepared.clear();
  ready &= !forgetMaps();
  bool done = false;
  // A call that cannot go on jumps back here; compiled code owns nothing that
  // would have to be destroyed on the way.
  bool started = false;
  if (setjmp(home) == 0) {
    if (copyArguments(entry, args, problem)) {
      if (ready && graphs.agreeOnPrepared()) {
        started =
            !failed(graphs.startPrepared(stream), "starting a kernel", problem);
      } else {
        function(arguments.data());
        started = start(problem);
      }
    }
  }
  if (started) {
    prepareNext(function, entry, args);
    done = copyOutputs(entry, args, problem);
  }
  if (!done) {
    // Where other ranks do not come, what was started has no end.
    if (!ranks)
      driver.streamSynchronize(stream);
    error = problem;
  }
  resetArena();
  current = outer;
  pthread_mutex_unlock(&turn);
  return done;
}

bool CudaDevice::rehearse(attune_entry_fn function, const EntryInfo &entry,
                          void **args, Error &error) {
  pthread_mutex_lock(&turn);
  driver.contextSetCurrent(context);
  CudaDevice *outer = std::exchange(current, this);
  problem = Error();
  instructions = CudaInstructions();
  forgetMaps();
  preparing = true;
  if (setjmp(home) == 0 && copyArguments(entry, args, problem))
    function(arguments.data());
  preparing = false;
  work.clear();
  error = problem;
  resetArena();
  current = outer;
  pthread_mutex_unlock(&turn);
  return error.code == ExitSuccess;
}

void CudaDevice::launch(int64_t kernel, const unsigned (&sizes)[6],
                        uint64_t shared, const uint64_t *words, int64_t count) {
  CudaInstructions here = std::exchange(instructions, CudaInstructions());
  // Nothing to do for a tensor without elements.
  for (unsigned size : sizes)
    if (size == 0)
      return work.dropAccesses();
  if (shared > defaultSharedBytes &&
      failed(driver.functionSetAttribute(kernels[kernel],
                                         CudaDriver::functionSharedBytes,
                                         static_cast<int>(shared)),
             "starting a kernel", problem)) {
    problem.message += std::string(" in ") + code->kernels[kernel];
    leave();
  }
  work.add(kernel, sizes, static_cast<unsigned>(shared), words, count, here);
}

void CudaDevice::nameInstruction(const CudaInstruction &next) {
  for (CudaInstruction &place : instructions)
    if (place.kernel < 0) {
      place = next;
      return;
    }
}

void CudaDevice::access(uint64_t address, uint64_t bytes, bool writes) {
  // Nobody writes weights.
  auto start = reinterpret_cast<uint64_t>(weights);
  auto of =
      std::find_if(allocated.begin(), allocated.end(),
                   [&](const Allocation &one) { return one.base == start; });
  bool ofWeights = of != allocated.end() && address - start < of->bytes;
  if (static_cast<int64_t>(bytes) <= 0 || (ofWeights && !writes))
    return;
  work.accesses.push_back({address, address + bytes, writes});
}

void CudaDevice::exchange(CudaLaunches::Exchange kind, int64_t from, int64_t to,
                          int64_t count) {
  if (count > 0)
    work.exchange(kind, static_cast<uint64_t>(from), static_cast<uint64_t>(to),
                  static_cast<uint64_t>(count));
}

bool CudaDevice::wait(Error &error) {
  if (!ranks)
    return !failed(driver.streamSynchronize(stream), "running the model",
                   error);
  double begin = 0;
  for (uint64_t turn = 0;; ++turn) {
    CudaResult result = driver.streamQuery(stream);
    if (result != CudaNotReady)
      return !failed(result, "running the model", error);
    if (turn < 64)
      continue;
    // A thread of NCCL may need this core.
    sched_yield();
    if (turn % 256 != 0)
      continue;
    double time = monotonicTime();
    if (begin == 0)
      begin = time;
    if (!ranks->check(time - begin, error))
      return false;
  }
}

bool CudaDevice::start(Error &error) {
  int64_t kernel = -1;
  bool bad =
      failed(graphs.start(work, stream, kernel), "starting a kernel", error);
  if (bad && kernel >= 0)
    error.message += std::string(" in ") + code->kernels[kernel];
  work.clear();
  return !bad;
}

void *CudaDevice::tensorMap(const TensorMapKey &key) {
  auto known = std::find_if(maps.begin(), maps.end(), [&](auto &other) {
    return std::memcmp(&other, &key, sizeof(key)) == 0;
  });
  size_t number = static_cast<size_t>(known - maps.begin());
  auto place = [&] {
    return static_cast<char *>(mapMemory) + number * kMapBytes;
  };
  if (known != maps.end())
    return place();
  if (!driver.tensorMapEncode) {
    problem.badInput("the GPU's driver is too old: it knows no tensor maps");
    leave();
  }
  if (!mapMemory &&
      !allocate(kMaps * kMapBytes, "tensor maps", mapMemory, problem))
    leave();
  if (maps.size() == kMaps) {
    problem.set(ExitInternalError, "a call takes more than " +
                                       std::to_string(kMaps) + " tensor maps");
    leave();
  }
  // Numbers of the driver's interface: UINT16 and UINT64, the swizzle of 128
  // bytes, reading 256 at a time into the second-level cache.
  constexpr int words2 = 1, words8 = 4, swizzle128 = 3, promote256 = 3;
  alignas(64) unsigned char map[kMapBytes];
  const uint64_t sizes[] = {key.columns, key.rows, key.heads, key.batches},
                 strides[] = {key.stride, key.headStride, key.batchStride};
  const unsigned box[] = {static_cast<unsigned>(key.boxColumns),
                          static_cast<unsigned>(key.boxRows), 1, 1};
  const unsigned steps[] = {1, 1, 1, 1};
  CudaResult result = driver.tensorMapEncode(
      map, key.elementBytes == 2 ? words2 : words8, key.heads ? 4 : 2,
      reinterpret_cast<void *>(key.address), sizes, strides, box, steps, 0,
      key.swizzled ? swizzle128 : 0, promote256, 0);
  if (failed(result, "making a tensor map", problem) ||
      !upload(place(), map, kMapBytes, problem))
    leave();
  maps.push_back(key);
  return place();
}

uint64_t CudaDevice::read(const void *address, int64_t bytes) {
  uint64_t word = 0;
  // While a call is only prepared, the value is not known.
  if (preparing)
    leave();
  if (!start(problem) || (ranks && !wait(problem)) ||
      failed(driver.copyToHost(&word, reinterpret_cast<CudaAddress>(address),
                               static_cast<size_t>(bytes), stream),
             "copying from it", problem) ||
      failed(driver.streamSynchronize(stream), "running the model", problem))
    leave();
  return word;
}

} // namespace attune::runtime

//===----------------------------------------------------------------------===//
// Functions that compiled code calls
//===----------------------------------------------------------------------===//

using namespace attune::runtime;

void attune_rt_launch(int64_t kernel, int64_t gridX, int64_t gridY,
                      int64_t gridZ, int64_t blockX, int64_t blockY,
                      int64_t blockZ, int64_t shared, const uint64_t *words,
                      int64_t count) {
  const unsigned sizes[6] = {
      static_cast<unsigned>(gridX),  static_cast<unsigned>(gridY),
      static_cast<unsigned>(gridZ),  static_cast<unsigned>(blockX),
      static_cast<unsigned>(blockY), static_cast<unsigned>(blockZ)};
  current->launch(kernel, sizes, static_cast<uint64_t>(shared), words, count);
}

void attune_rt_instruction(int64_t kernel, int64_t threads, int64_t sharedBytes,
                           int64_t number, int64_t atOnce) {
  current->nameInstruction({kernel, threads, sharedBytes, number, atOnce});
}

void attune_rt_access(int64_t address, int64_t bytes, int64_t writes) {
  current->access(static_cast<uint64_t>(address), static_cast<uint64_t>(bytes),
                  writes != 0);
}

int64_t attune_rt_tensor_map(int64_t address, int64_t elementBytes,
                             int64_t columns, int64_t rows, int64_t stride,
                             int64_t heads, int64_t headStride, int64_t batches,
                             int64_t batchStride, int64_t boxColumns,
                             int64_t boxRows, int64_t swizzled) {
  auto number = [](int64_t value) { return static_cast<uint64_t>(value); };
  TensorMapKey key = {
      number(address),    number(elementBytes), number(columns),
      number(rows),       number(stride),       number(heads),
      number(headStride), number(batches),      number(batchStride),
      number(boxColumns), number(boxRows),      number(swizzled)};
  return reinterpret_cast<int64_t>(current->tensorMap(key));
}

int64_t attune_rt_device_read(const void *address, int64_t bytes) {
  return static_cast<int64_t>(current->read(address, bytes));
}

void attune_rt_device_all_reduce(int64_t input, int64_t dest, int64_t count) {
  current->exchange(CudaLaunches::Sum, input, dest, count);
}

void attune_rt_device_all_gather(int64_t input, int64_t dest, int64_t count,
                                 int64_t ofPositions) {
  current->exchange(ofPositions ? CudaLaunches::GatherPositions
                                : CudaLaunches::Gather,
                    input, dest, count);
}

void *attune_rt_device_push(int64_t bytes) { return current->push(bytes); }

void attune_rt_device_pop(int64_t bytes) { current->pop(bytes); }
