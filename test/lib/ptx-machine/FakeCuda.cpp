//===- FakeCuda.cpp - A libcuda.so.1 without a GPU ------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of the driver that Attune's runtime asks for, on one device at
// a time, whose memory is the host's and whose kernels are interpreted. Fresh
// memory is full of NaN. A stream does at once what it is told, or notes it
// while it is captured. The environment says what kind of machine it is:
//
//   FAKE_CUDA_DEVICES      number of devices (1)
//   FAKE_CUDA_CAPABILITY   compute capability, as in 80 (90)
//   FAKE_CUDA_MEMORY       bytes of the device (16 GiB)
//   FAKE_CUDA_VERSION      CUDA version of the driver, as in 12040 (13000)
//   FAKE_CUDA_PTX          the newest PTX version it reads, as in 7.0
//   FAKE_CUDA_GRAPHS       0: graphs cannot be made (1)
//   FAKE_CUDA_CAPTURE      0: nor captured (1)
//   FAKE_CUDA_TOGETHER     blocks of a multiprocessor that can wait for each
//                          other (2); 0: no cooperative launches
//   FAKE_CUDA_TOGETHER_NODES
//                          0: cooperative launches cannot be captured (1)
//   FAKE_CUDA_NO_WAIT      a number: this instruction of a persistent kernel
//   does
//                          not wait for others
//   FAKE_CUDA_BUSY         1: a stream that is asked is never done (0)
//   FAKE_CUDA_LOG          a file that gets a line for each call of interest
//
//===----------------------------------------------------------------------===//

#include "FakeCuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace fake;

Device &fake::device() {
  static Device only;
  return only;
}

uint64_t fake::setting(const char *name, uint64_t usual) {
  const char *text = std::getenv(name);
  return text ? std::strtoull(text, nullptr, 10) : usual;
}

void fake::log(const std::string &line) {
  static FILE *file = [] {
    const char *path = std::getenv("FAKE_CUDA_LOG");
    return path ? std::fopen(path, "w") : nullptr;
  }();
  if (file) {
    std::fprintf(file, "%s\n", line.c_str());
    std::fflush(file);
  }
}

bool fake::hasFree(uint64_t bytes) {
  uint64_t total = setting("FAKE_CUDA_MEMORY", uint64_t(16) << 30);
  return bytes <= total - device().used;
}

namespace {

constexpr int Multiprocessors = 2;

/// Shared memory of a block: what a launch may have, and what it may have once
/// it was asked for; and of each kernel what was.
constexpr uint64_t UsualShared = 48 << 10, MostShared = 227 << 10;
std::map<const void *, uint64_t> askedShared;

ptx::Memory &memory = fake::device().memory;
uint64_t &used = fake::device().used;
bool ready = false;
Result broken = Success; // what a kernel did shows at the next wait

/// Whether FAKE_CUDA_FULL names this: what finds no memory.
bool isFull(const char *what) {
  const char *full = std::getenv("FAKE_CUDA_FULL");
  return full && std::strcmp(full, what) == 0;
}
bool reachable(Address address, size_t bytes) {
  return memory.holds(address, bytes);
}

/// A kernel with its sizes and a copy of its arguments, or a function of the
/// host.
struct Work {
  ptx::Kernel *kernel = nullptr;
  ptx::Launch launch;
  void (*function)(void *) = nullptr;
  void *data = nullptr;
};

Result prepare(Work &work, void *function, const unsigned (&sizes)[6],
               unsigned shared, void **params, void **extra) {
  auto &kernel = *static_cast<ptx::Kernel *>(function);
  uint64_t threads = uint64_t(sizes[3]) * sizes[4] * sizes[5];
  if (extra || sizes[0] == 0 || sizes[1] == 0 || sizes[2] == 0 ||
      threads == 0 || sizes[1] > 65535 || sizes[2] > 65535 || threads > 1024 ||
      (kernel.maxThreads && threads > kernel.maxThreads) ||
      (kernel.sharedBytes + shared > UsualShared &&
       shared > askedShared[function]))
    return InvalidValue;
  work.kernel = &kernel;
  work.launch = {{sizes[0], sizes[1], sizes[2]},
                 {sizes[3], sizes[4], sizes[5]},
                 shared,
                 /*together=*/false,
                 std::vector<uint8_t>(kernel.paramsSize)};
  for (size_t i = 0; i < kernel.paramOffsets.size(); ++i)
    std::memcpy(work.launch.params.data() + kernel.paramOffsets[i], params[i],
                kernel.paramBytes[i]);
  return Success;
}

/// Blocks that can wait for each other.
uint64_t roomTogether() {
  return Multiprocessors * setting("FAKE_CUDA_TOGETHER", 2);
}
/// The list that a persistent kernel goes through (lib/Target/PTX): how long it
/// is, and the longest chain of waits.
void readList(const ptx::Launch &launch) {
  uint64_t words[5];
  if (launch.params.size() != sizeof(words))
    return;
  std::memcpy(words, launch.params.data(), sizeof(words));
  auto *list = reinterpret_cast<uint32_t *>(words[0]);
  auto *waits = reinterpret_cast<const uint32_t *>(words[1]);
  size_t numWaits = 0, longest = 0;
  std::vector<size_t> chain(words[4], 1);
  for (size_t i = 0; i < words[4]; ++i) {
    uint32_t *one = list + 8 * i;
    for (uint32_t k = 0; k < one[6]; ++k, ++numWaits)
      chain[i] = std::max(chain[i], chain[waits[2 * (one[5] + k)]] + 1);
    longest = std::max(longest, chain[i]);
    if (setting("FAKE_CUDA_NO_WAIT", ~uint64_t(0)) == i)
      one[6] = 0;
  }
  log("list of " + std::to_string(words[4]) + " instructions, " +
      std::to_string(numWaits) + " waits, the longest chain " +
      std::to_string(longest));
}

void perform(const Work &work) {
  if (work.function) {
    log("host function");
    work.function(work.data);
    return;
  }
  auto &[grid, block, shared, together, params] = work.launch;
  if (together)
    readList(work.launch);
  log("launch " + work.kernel->name + " " + std::to_string(grid[0]) + "x" +
      std::to_string(grid[1]) + "x" + std::to_string(grid[2]) + " " +
      std::to_string(block[0]) + "x" + std::to_string(block[1]) + "x" +
      std::to_string(block[2]) + (together ? " together" : ""));
  std::string error;
  if (!broken && !ptx::run(*work.kernel, work.launch, memory, error)) {
    std::fprintf(stderr, "fake libcuda: kernel %s: %s\n",
                 work.kernel->name.c_str(), error.c_str());
    broken = IllegalAddress;
  }
}

/// CUDA_KERNEL_NODE_PARAMS_v2
struct NodeParams {
  void *function;
  unsigned sizes[6], shared;
  void **params, **extra;
  void *kernel, *context;
};
/// Nodes are numbers of a graph, from 1 on; each follows the one before, and so
/// many do so by now, some while that one runs.
struct Graph {
  std::vector<Work> nodes;
  size_t linked = 0, early = 0;
};
/// CUgraphEdgeData, CUlaunchAttribute and CUlaunchConfig
struct EdgeData {
  unsigned char fromPort, toPort, type, reserved[5];
};
struct LaunchAttribute {
  unsigned id, unused;
  alignas(8) int value[16];
};
struct LaunchConfig {
  unsigned sizes[6], shared;
  void *stream;
  LaunchAttribute *attributes;
  unsigned numAttributes;
};
struct Executable {
  const Graph *graph;
  std::vector<Work> nodes;
};

/// What the stream is told becomes nodes of this; null: it does it.
Graph *captured = nullptr;
void *lastCaptured = nullptr;
int deviceNumber = 0;

/// Does this now, or later as part of a graph.
void give(Work work, bool early = false) {
  if (!captured)
    return perform(work);
  captured->linked += !captured->nodes.empty();
  captured->early += early;
  captured->nodes.push_back(std::move(work));
}
} // namespace

extern "C" {

Result cuInit(unsigned) {
  if (setting("FAKE_CUDA_DEVICES", 1) == 0)
    return NoDevice;
  ready = true;
  return Success;
}
Result cuDriverGetVersion(int *version) {
  *version = int(setting("FAKE_CUDA_VERSION", 13000));
  return Success;
}
Result cuDeviceGetCount(int *count) {
  *count = int(setting("FAKE_CUDA_DEVICES", 1));
  return ready ? Success : NotInitialized;
}
Result cuDeviceGet(int *device, int ordinal) {
  *device = ordinal;
  bool known =
      ordinal >= 0 && uint64_t(ordinal) < setting("FAKE_CUDA_DEVICES", 1);
  return known ? Success : InvalidDevice;
}
Result cuDeviceGetName(char *name, int size, int) {
  std::snprintf(name, size_t(size), "Fake GPU");
  return Success;
}
Result cuDeviceGetAttribute(int *value, int attribute, int) {
  int capability = int(setting("FAKE_CUDA_CAPABILITY", 90));
  if (attribute == 75)
    *value = capability / 10;
  else if (attribute == 76)
    *value = capability % 10;
  else if (attribute == 16)
    *value = Multiprocessors;
  else if (attribute == 102)
    *value = setting("FAKE_CUDA_PAGE", 1) > 0;
  else if (attribute == 95)
    *value = setting("FAKE_CUDA_TOGETHER", 2) > 0;
  else
    return InvalidValue;
  return Success;
}
Result cuDevicePrimaryCtxRetain(void **context, int ordinal) {
  if (isFull("context"))
    return OutOfMemory;
  static int object;
  deviceNumber = ordinal;
  log("device " + std::to_string(deviceNumber));
  *context = &object;
  return Success;
}
Result cuDevicePrimaryCtxRelease_v2(int) {
  log("release, " + std::to_string(used) + " bytes in use");
  return Success;
}
Result cuCtxSetCurrent(void *context) {
  return context ? Success : InvalidValue;
}
Result cuCtxGetDevice(int *current) {
  *current = deviceNumber;
  return Success;
}
Result cuStreamCreate(void **stream, unsigned) {
  static int object;
  *stream = &object;
  return Success;
}
Result cuStreamDestroy_v2(void *) { return Success; }
Result cuStreamSynchronize(void *) {
  return captured ? CaptureUnsupported : broken;
}
Result cuStreamQuery(void *) {
  if (captured)
    return CaptureUnsupported;
  return setting("FAKE_CUDA_BUSY", 0) ? NotReady : broken;
}
Result cuStreamBeginCapture_v2(void *, int) {
  if (setting("FAKE_CUDA_CAPTURE", 1) == 0)
    return NotSupported;
  if (captured)
    return IllegalState;
  captured = new Graph();
  return Success;
}
Result cuStreamEndCapture(void *, void **graph) {
  *graph = captured;
  captured = nullptr;
  return *graph ? Success : IllegalState;
}
Result cuStreamGetCaptureInfo_v2(void *, int *status, uint64_t *, void **,
                                 void *const **last, size_t *count) {
  *status = captured != nullptr;
  *count = captured && !captured->nodes.empty();
  lastCaptured =
      reinterpret_cast<void *>(captured ? captured->nodes.size() : 0);
  *last = &lastCaptured;
  return Success;
}
Result cuLaunchHostFunc(void *, void (*function)(void *), void *data) {
  Work work;
  work.function = function;
  work.data = data;
  give(std::move(work));
  return Success;
}

Result cuMemGetInfo_v2(size_t *free, size_t *total) {
  *total = setting("FAKE_CUDA_MEMORY", uint64_t(16) << 30);
  *free = *total - used;
  return Success;
}
Result cuMemAlloc_v2(Address *address, size_t bytes) {
  if (bytes == 0)
    return InvalidValue;
  if (!hasFree(bytes))
    return OutOfMemory;
  void *block = nullptr;
  if (posix_memalign(&block, 256, bytes) != 0)
    return OutOfMemory;
  std::memset(block, 0xff, bytes);
  *address = reinterpret_cast<Address>(block);
  memory.add(*address, bytes);
  used += bytes;
  log("alloc " + std::to_string(bytes));
  return Success;
}
Result cuMemHostAlloc(void **memory, size_t bytes, unsigned) {
  *memory = std::malloc(bytes);
  return *memory ? Success : OutOfMemory;
}
Result cuMemFreeHost(void *memory) {
  std::free(memory);
  return Success;
}
Result cuMemFree_v2(Address address) {
  if (!memory.knows(address))
    return InvalidValue;
  used -= memory.sizeOf(address);
  memory.remove(address);
  std::free(reinterpret_cast<void *>(address));
  return Success;
}
Result cuMemcpyHtoDAsync_v2(Address to, const void *from, size_t bytes,
                            void *) {
  if (captured)
    return CaptureUnsupported;
  if (!reachable(to, bytes))
    return InvalidValue;
  std::memcpy(reinterpret_cast<void *>(to), from, bytes);
  log("to device " + std::to_string(bytes));
  return Success;
}
Result cuMemcpyDtoHAsync_v2(void *to, Address from, size_t bytes, void *) {
  if (broken || captured)
    return broken ? broken : CaptureUnsupported;
  if (!reachable(from, bytes))
    return InvalidValue;
  std::memcpy(to, reinterpret_cast<void *>(from), bytes);
  log("to host " + std::to_string(bytes));
  return Success;
}
Result cuMemcpyDtoDAsync_v2(Address to, Address from, size_t bytes, void *) {
  if (captured)
    return CaptureUnsupported;
  if (!reachable(from, bytes) || !reachable(to, bytes))
    return InvalidValue;
  std::memcpy(reinterpret_cast<void *>(to), reinterpret_cast<void *>(from),
              bytes);
  return Success;
}
Result cuMemsetD8Async(Address to, unsigned char value, size_t count, void *) {
  if (captured)
    return CaptureUnsupported;
  if (!reachable(to, count))
    return InvalidValue;
  std::memset(reinterpret_cast<void *>(to), value, count);
  return Success;
}

/// Matrices of 2 or 8 bytes an element, in two further dimensions or none, no
/// interleaving, zeros outside.
Result cuTensorMapEncodeTiled(void *map, int type, unsigned rank, void *address,
                              const uint64_t *sizes, const uint64_t *strides,
                              const unsigned *box, const unsigned *steps,
                              int interleave, int swizzle, int, int fill) {
  unsigned bytes = type == 1 ? 2 : type == 4 ? 8 : 0;
  auto start = reinterpret_cast<Address>(address);
  ptx::TensorMap made = {ptx::TensorMap::kMagic,
                         start,
                         {1, 1, 1, 1},
                         {},
                         {box[0], box[1]},
                         bytes,
                         swizzle == 3,
                         rank,
                         {}};
  if (rank != 2 && rank != 4)
    return InvalidValue;
  for (unsigned dim = 0; dim < rank; ++dim) {
    made.size[dim] = sizes[dim];
    if (sizes[dim] == 0 || steps[dim] != 1 || (dim > 1 && box[dim] != 1))
      return InvalidValue;
    if (dim > 0 && strides[dim - 1] % 16)
      return InvalidValue;
    if (dim > 0)
      made.stride[dim - 1] = strides[dim - 1];
  }
  if (!bytes || interleave || fill || start % 16 ||
      reinterpret_cast<uintptr_t>(map) % 64 || box[0] == 0 || box[0] > 256 ||
      box[1] == 0 || box[1] > 256 || box[0] * bytes % 16 ||
      (swizzle != 0 && swizzle != 3) || (swizzle == 3 && box[0] * bytes > 128))
    return InvalidValue;
  std::memcpy(map, &made, sizeof(made));
  std::string text = std::to_string(sizes[1]) + "x" + std::to_string(sizes[0]);
  for (unsigned dim = 2; dim < rank; ++dim)
    text = std::to_string(sizes[dim]) + "x" + text;
  log("tensor map " + text);
  return Success;
}

Result cuMemsetD8_v2(Address to, unsigned char value, size_t count) {
  return cuMemsetD8Async(to, value, count, nullptr);
}

Result cuModuleLoadDataEx(void **module, const void *image, unsigned count,
                          int *options, void **values) {
  if (isFull("module"))
    return OutOfMemory;
  auto *bytes = static_cast<const char *>(image);
  // Machine code is for machines.
  if (std::memcmp(bytes,
                  "\x7f"
                  "ELF",
                  4) == 0)
    return InvalidImage;
  std::string text(bytes), error;
  auto parsed = ptx::parse(text, memory, error);
  if (!parsed) {
    std::fprintf(stderr, "fake libcuda: %s\n", error.c_str());
    for (unsigned i = 0; i < count; ++i)
      if (options[i] == 5)
        std::strncpy(static_cast<char *>(values[i]), error.c_str(), 2000);
    return InvalidPtx;
  }
  if (const char *newest = std::getenv("FAKE_CUDA_PTX"))
    if (std::atof(newest) < std::atof(parsed->version.c_str()))
      return UnsupportedPtxVersion;
  log("module " + parsed->target + ", " +
      std::to_string(parsed->kernels.size()) + " kernels");
  *module = parsed.release();
  return Success;
}
Result cuModuleLoadData(void **module, const void *image) {
  return cuModuleLoadDataEx(module, image, 0, nullptr, nullptr);
}
Result cuModuleUnload(void *module) {
  delete static_cast<ptx::Module *>(module);
  return Success;
}
Result cuModuleGetFunction(void **function, void *module, const char *name) {
  auto &kernels = static_cast<ptx::Module *>(module)->kernels;
  auto found = kernels.find(name);
  if (found == kernels.end())
    return NotFound;
  *function = found->second.get();
  return Success;
}
Result cuFuncSetAttribute(void *function, int attribute, int value) {
  if (attribute != 8)
    return Success;
  auto &kernel = *static_cast<ptx::Kernel *>(function);
  if (value < 0 || kernel.sharedBytes + uint64_t(value) > MostShared)
    return InvalidValue;
  askedShared[function] = uint64_t(value);
  return Success;
}
Result cuFuncGetAttribute(int *value, int attribute, void *function) {
  auto &kernel = *static_cast<ptx::Kernel *>(function);
  if (attribute != 0)
    return InvalidValue;
  *value = kernel.maxThreads ? int(kernel.maxThreads) : 1024;
  return Success;
}
Result cuEventCreate(void **event, unsigned) {
  static int object;
  *event = &object;
  return Success;
}
Result cuEventRecord(void *, void *) { return Success; }
Result cuEventSynchronize(void *) { return broken; }
Result cuEventElapsedTime_v2(float *milliseconds, void *, void *) {
  *milliseconds = 0;
  return Success;
}
Result cuEventElapsedTime(float *milliseconds, void *begin, void *end) {
  return cuEventElapsedTime_v2(milliseconds, begin, end);
}

Result cuLaunchKernelEx(const LaunchConfig *config, void *function,
                        void **params, void **extra) {
  if (isFull("launch"))
    return OutOfMemory;
  bool early = false, together = false;
  for (unsigned i = 0; i < config->numAttributes; ++i) {
    const LaunchAttribute &one = config->attributes[i];
    (one.id == 2 ? together : early) = true;
    if ((one.id != 2 && one.id != 6) || one.value[0] != 1)
      return InvalidValue;
  }
  if (early && !static_cast<ptx::Kernel *>(function)->dependent)
    return InvalidValue;
  if (together && captured && setting("FAKE_CUDA_TOGETHER_NODES", 1) == 0)
    return CaptureUnsupported;
  if (together && (config->sizes[1] != 1 || config->sizes[2] != 1 ||
                   config->sizes[0] > roomTogether()))
    return TooManyBlocks;
  // What is not a kernel says nothing to the next one before it is done.
  if (early && captured &&
      (captured->nodes.empty() || captured->nodes.back().function))
    return InvalidValue;
  Work work;
  Result result =
      prepare(work, function, config->sizes, config->shared, params, extra);
  work.launch.together = together;
  if (result == Success)
    give(std::move(work), early);
  return result;
}

Result cuLaunchKernel(void *function, unsigned gridX, unsigned gridY,
                      unsigned gridZ, unsigned blockX, unsigned blockY,
                      unsigned blockZ, unsigned shared, void *stream,
                      void **params, void **extra) {
  LaunchConfig config = {{gridX, gridY, gridZ, blockX, blockY, blockZ},
                         shared,
                         stream,
                         nullptr,
                         0};
  return cuLaunchKernelEx(&config, function, params, extra);
}

Result cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *, int,
                                                   size_t) {
  *blocks = int(setting("FAKE_CUDA_TOGETHER", 2));
  return Success;
}
Result cuLaunchCooperativeKernel(void *function, unsigned gridX, unsigned gridY,
                                 unsigned gridZ, unsigned blockX,
                                 unsigned blockY, unsigned blockZ,
                                 unsigned shared, void *, void **params) {
  uint64_t room = roomTogether();
  if (room == 0 || captured)
    return room ? CaptureUnsupported : NotSupported;
  if (uint64_t(gridX) * gridY * gridZ > room)
    return TooManyBlocks;
  Work work;
  Result result =
      prepare(work, function, {gridX, gridY, gridZ, blockX, blockY, blockZ},
              shared, params, nullptr);
  work.launch.together = true;
  if (result != Success)
    return result;
  perform(work);
  return Success;
}

Result cuGraphCreate(void **graph, unsigned) {
  if (setting("FAKE_CUDA_GRAPHS", 1) == 0)
    return NotSupported;
  *graph = new Graph();
  return Success;
}
Result cuGraphAddKernelNode_v2(void **node, void *graph, void *const *after,
                               size_t numAfter, const NodeParams *params) {
  auto &nodes = static_cast<Graph *>(graph)->nodes;
  // Anything but a chain would have to run in some other order as well.
  if (numAfter > 1 ||
      (numAfter && *after != reinterpret_cast<void *>(nodes.size())))
    return InvalidValue;
  static_cast<Graph *>(graph)->linked += numAfter;
  Work work;
  Result result = prepare(work, params->function, params->sizes, params->shared,
                          params->params, params->extra);
  if (result != Success)
    return result;
  nodes.push_back(std::move(work));
  *node = reinterpret_cast<void *>(nodes.size());
  return Success;
}
/// Of kernels that start early, one after the other.
Result cuGraphAddDependencies_v2(void *graph, void *const *from,
                                 void *const *to, const EdgeData *edge,
                                 size_t count) {
  auto *made = static_cast<Graph *>(graph);
  auto before = reinterpret_cast<size_t>(*from),
       number = reinterpret_cast<size_t>(*to);
  if (count != 1 || number != made->nodes.size() || before + 1 != number ||
      edge->fromPort != 1 || edge->toPort != 0 || edge->type != 1 ||
      !made->nodes[number - 1].kernel->dependent)
    return InvalidValue;
  ++made->linked;
  ++made->early;
  return Success;
}
Result cuGraphInstantiateWithFlags(void **executable, void *graph,
                                   unsigned long long) {
  auto *made = static_cast<Graph *>(graph);
  if (made->linked + 1 != made->nodes.size())
    return InvalidValue;
  *executable = new Executable{made, made->nodes};
  log("graph of " + std::to_string(made->nodes.size()) +
      (made->early + 1 == made->nodes.size()
           ? ", all after the first start early"
           : ""));
  return Success;
}
Result cuGraphExecKernelNodeSetParams_v2(void *executable, void *node,
                                         const NodeParams *params) {
  auto &nodes = static_cast<Executable *>(executable)->nodes;
  auto number = reinterpret_cast<size_t>(node);
  if (number == 0 || number > nodes.size())
    return InvalidHandle;
  Work work;
  Result result = prepare(work, params->function, params->sizes, params->shared,
                          params->params, params->extra);
  // A node keeps its kernel.
  if (result == Success && work.kernel != nodes[number - 1].kernel)
    result = InvalidValue;
  if (result != Success)
    return result;
  work.launch.together = nodes[number - 1].launch.together;
  log("new arguments of node " + std::to_string(number - 1));
  nodes[number - 1] = std::move(work);
  return Success;
}
Result cuGraphLaunch(void *executable, void *) {
  auto &nodes = static_cast<Executable *>(executable)->nodes;
  log("start of a graph of " + std::to_string(nodes.size()));
  for (const Work &work : nodes)
    perform(work);
  return Success;
}
Result cuGraphExecDestroy(void *executable) {
  delete static_cast<Executable *>(executable);
  log("end of a graph");
  return Success;
}
Result cuGraphDestroy(void *graph) {
  delete static_cast<Graph *>(graph);
  return Success;
}

Result cuGetErrorName(Result result, const char **text) {
  switch (result) {
  case OutOfMemory:
    *text = "CUDA_ERROR_OUT_OF_MEMORY";
    break;
  case NoDevice:
    *text = "CUDA_ERROR_NO_DEVICE";
    break;
  case InvalidPtx:
    *text = "CUDA_ERROR_INVALID_PTX";
    break;
  case IllegalAddress:
    *text = "CUDA_ERROR_ILLEGAL_ADDRESS";
    break;
  default:
    *text = "CUDA_ERROR_OTHER";
    break;
  }
  return Success;
}
Result cuGetErrorString(Result result, const char **text) {
  *text = result == IllegalAddress ? "an illegal memory access was encountered"
                                   : "something else";
  return Success;
}

} // extern "C"
