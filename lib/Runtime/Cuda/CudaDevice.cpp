//===- CudaDevice.cpp - A compiled model on a GPU -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "../Clock.h"
#include "../Mesh/Nccl.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <sched.h>
#include <utility>

namespace attune::runtime {

namespace {
/// The device whose entry this thread runs.
thread_local CudaDevice *current = nullptr;

// Numbers of the driver's interface.
constexpr int attributeMajor = 75, attributeMinor = 76,
              attributeMultiprocessors = 16, attributeCooperative = 95;
constexpr int jitErrorLog = 5, jitErrorLogBytes = 6;
constexpr uint64_t defaultSharedBytes = 48 << 10;

constexpr uint64_t frameAlignment = 256;
constexpr uint64_t chunkBytes = uint64_t(2) << 20;

uint64_t roundUp(uint64_t bytes, uint64_t to) {
  return (bytes + to - 1) / to * to;
}

/// "9.0" of 90
std::string formatCapability(int capability) {
  return std::to_string(capability / 10) + "." +
         std::to_string(capability % 10);
}

/// The number of "sm_90a".
int numberOf(const char *chip) {
  return std::atoi(chip + std::strcspn(chip, "_") + 1);
}

/// "sm_90a" runs on 9.0 alone, "sm_80" on 8.0 and everything after.
bool isTied(const char *chip) { return chip[std::strlen(chip) - 1] == 'a'; }
bool runsOn(int capability, const char *chip) {
  return isTied(chip) ? capability == numberOf(chip)
                      : capability >= numberOf(chip);
}

/// The values of the compiler's --gpu, the best first.
constexpr const char *chips[] = {"sm_120a", "sm_120", "sm_100a", "sm_100",
                                 "sm_90a",  "sm_90",  "sm_89",   "sm_87",
                                 "sm_86",   "sm_80"};

/// Advice for the user of such a GPU.
std::string advise(int capability) {
  for (const char *chip : chips)
    if (runsOn(capability, chip))
      return std::string("compile it with --gpu=") + chip;
  return std::string("Attune makes code for ") +
         formatCapability(numberOf(*std::prev(std::end(chips)))) +
         " and newer ones";
}
} // namespace

bool CudaDevice::failed(CudaResult result, const char *doing, Error &error) {
  if (result == 0)
    return false;
  if (result == CudaExchangeFailed) {
    error = ranks->problem();
    return true;
  }
  if (result == CudaOutOfMemory) {
    // Contexts, code and the stacks of kernels take some as well.
    size_t free = 0, total = 0;
    std::string left;
    if (context && driver.memGetInfo(&free, &total) == 0)
      left = " (" + std::to_string(free) + " of its " + std::to_string(total) +
             " bytes are free)";
    error.set(ExitResourceLimit,
              "the GPU ran out of memory" + left + " while " + doing);
    return true;
  }
  error.set(ExitInternalError, std::string("the GPU failed while ") + doing +
                                   ": " + driver.describe(result));
  return true;
}

//===----------------------------------------------------------------------===//
// Opening
//===----------------------------------------------------------------------===//

CudaDevice::CudaDevice() : graphs(driver, kernels) {}

std::unique_ptr<CudaDevice> CudaDevice::open(const attune_device_code &code,
                                             int number, uint64_t frameLimit,
                                             Error &error) {
  std::unique_ptr<CudaDevice> device(new CudaDevice());
  device->frameLimit = frameLimit ? frameLimit : UINT64_MAX;
  if (!device->driver.load(error) || !device->start(code, number, error))
    return nullptr;
  return device;
}

bool CudaDevice::start(const attune_device_code &code, int number,
                       Error &error) {
  CudaResult result = driver.init(0);
  int count = 0;
  if (result == 0)
    result = driver.deviceGetCount(&count);
  if (result == CudaNoDevice || (result == 0 && count == 0))
    return error.badInput("this model runs on an NVIDIA GPU, but this machine "
                          "has none that the driver shows");
  if (failed(result, "starting", error) ||
      failed(driver.deviceGet(&ordinal, number % count), "starting", error))
    return false;
  char text[256] = "";
  driver.deviceGetName(text, sizeof(text) - 1, ordinal);
  name = text;
  if (!check(code, error))
    return false;
  if (failed(driver.primaryContextRetain(&context, ordinal), "starting", error))
    return false;
  if (failed(driver.contextSetCurrent(context), "starting", error) ||
      failed(driver.streamCreate(&stream, /*non-blocking*/ 1), "starting",
             error))
    return false;
  void *memory = nullptr;
  if (driver.hostAlloc && driver.hostFree &&
      driver.hostAlloc(&memory, kStagedBytes, 0) == 0)
    staged = static_cast<char *>(memory);
  return loadCode(code, error);
}

bool CudaDevice::check(const attune_device_code &code, Error &error) {
  int major = 0, minor = 0;
  driver.deviceGetAttribute(&major, attributeMajor, ordinal);
  driver.deviceGetAttribute(&minor, attributeMinor, ordinal);
  capability = major * 10 + minor;
  if (runsOn(capability, code.chip))
    return true;
  return error.badInput(
      std::string("this model was compiled for ") + code.chip +
      ", which takes a GPU of compute capability " +
      formatCapability(numberOf(code.chip)) +
      (isTied(code.chip) ? "" : " or more") + ", but this machine's " + name +
      " has " + formatCapability(capability) + "; " + advise(capability));
}

bool CudaDevice::loadCode(const attune_device_code &code, Error &error) {
  this->code = &code;
  char log[2048] = "";
  int options[] = {jitErrorLog, jitErrorLogBytes};
  void *values[] = {log, reinterpret_cast<void *>(sizeof(log) - 1)};
  // A cubin is for one chip; the text is for it and those that follow.
  CudaResult result = 1;
  if (code.cubin && capability == numberOf(code.chip))
    result = driver.moduleLoad(&module, code.cubin, 2, options, values);
  if (result != 0)
    result = driver.moduleLoad(&module, code.ptx, 2, options, values);
  if (result == CudaUnsupportedPtxVersion) {
    int version = 0;
    driver.driverGetVersion(&version);
    return error.badInput(
        "the GPU's driver is too old for this model's code: it is for CUDA " +
        std::to_string(version / 1000) + "." +
        std::to_string(version % 1000 / 10) + "; update the driver");
  }
  if (failed(result, "loading the model's code", error)) {
    if (log[0])
      error.message += std::string("\n") + log;
    return false;
  }
  for (uint64_t i = 0; i < code.num_kernels; ++i) {
    CudaHandle kernel = nullptr;
    if (failed(driver.moduleGetFunction(&kernel, module, code.kernels[i]),
               "looking for a kernel", error)) {
      error.message += std::string(" ") + code.kernels[i];
      return false;
    }
    kernels.push_back(kernel);
  }
  // The compiler makes them wait for each other on such chips.
  if (numberOf(code.chip) >= 90)
    graphs.letOverlap();
  int count = 0, together = 0;
  driver.deviceGetAttribute(&count, attributeMultiprocessors, ordinal);
  driver.deviceGetAttribute(&together, attributeCooperative, ordinal);
  if (driver.launchCooperative && together && count > 0)
    graphs.letPersist(static_cast<unsigned>(count));
  return true;
}

bool CudaDevice::findRanks(Mesh &mesh, Error &error) {
  ranks = Nccl::load(mesh, error);
  return ranks != nullptr;
}

bool CudaDevice::joinRanks(Error &error) {
  driver.contextSetCurrent(context);
  graphs.join(ranks.get());
  return ranks->join(error);
}

CudaDevice::~CudaDevice() {
  if (!context)
    return;
  driver.contextSetCurrent(context);
  if (ranks) {
    // NCCL waits for what graphs have of it.
    driver.streamSynchronize(stream);
    graphs.clear();
    ranks.reset();
  }
  if (stream) {
    driver.streamSynchronize(stream);
    driver.streamDestroy(stream);
  }
  if (module)
    driver.moduleUnload(module);
  graphs.clear();
  for (Chunk &chunk : chunks)
    driver.memFree(chunk.base);
  release(mapMemory);
  release(weights);
  if (staged)
    driver.hostFree(staged);
  driver.primaryContextRelease(ordinal);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

bool CudaDevice::allocate(uint64_t bytes, const char *what, void *&address,
                          Error &error) {
  driver.contextSetCurrent(context);
  CudaAddress memory = 0;
  // Nothing has an address, too.
  bytes = std::max<uint64_t>(bytes, 1);
  CudaResult result = driver.memAlloc(&memory, bytes);
  if (result == CudaOutOfMemory) {
    size_t free = 0, total = 0;
    driver.memGetInfo(&free, &total);
    return error.set(ExitResourceLimit,
                     std::string(what) + " need " + std::to_string(bytes) +
                         " bytes on the GPU, but " + std::to_string(free) +
                         " of its " + std::to_string(total) +
                         " bytes are free");
  }
  if (failed(result, "reserving memory", error) ||
      failed(driver.fill(memory, 0, bytes, stream), "clearing memory", error))
    return false;
  address = reinterpret_cast<void *>(memory);
  allocated.push_back({memory, bytes});
  return true;
}

void CudaDevice::release(void *address) {
  if (!address)
    return;
  driver.contextSetCurrent(context);
  driver.memFree(reinterpret_cast<CudaAddress>(address));
  forget(address);
}

void CudaDevice::forget(const void *address) {
  auto base = reinterpret_cast<CudaAddress>(address);
  allocated.erase(
      std::find_if(allocated.begin(), allocated.end(),
                   [&](const Allocation &one) { return one.base == base; }));
}

bool CudaDevice::owns(int64_t address) const {
  auto place = static_cast<CudaAddress>(address);
  return std::any_of(allocated.begin(), allocated.end(),
                     [&](const Allocation &one) {
                       return place >= one.base && place - one.base < one.bytes;
                     });
}

bool CudaDevice::upload(void *to, const void *from, uint64_t bytes,
                        Error &error) {
  driver.contextSetCurrent(context);
  return bytes == 0 ||
         !failed(driver.copyToDevice(reinterpret_cast<CudaAddress>(to), from,
                                     bytes, stream),
                 "copying to it", error);
}

bool CudaDevice::download(void *to, const void *from, uint64_t bytes,
                          Error &error) {
  driver.contextSetCurrent(context);
  return bytes == 0 ||
         (!failed(driver.copyToHost(to, reinterpret_cast<CudaAddress>(from),
                                    bytes, stream),
                  "copying from it", error) &&
          !failed(driver.streamSynchronize(stream), "copying from it", error));
}

bool CudaDevice::copy(void *to, const void *from, uint64_t bytes,
                      Error &error) {
  driver.contextSetCurrent(context);
  return bytes == 0 ||
         !failed(driver.copyOnDevice(reinterpret_cast<CudaAddress>(to),
                                     reinterpret_cast<CudaAddress>(from), bytes,
                                     stream),
                 "copying", error);
}

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
  // Nobody holds these maps after a call.
  if (maps.size() > kMaps / 2) {
    maps.clear();
    ready = false;
  }
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
  size_t at = 0;
  bool bad = failed(graphs.start(work, stream, at), "starting a kernel", error);
  if (bad && !work.launches[at].isExchange())
    error.message +=
        std::string(" in ") + code->kernels[work.launches[at].kernel];
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
