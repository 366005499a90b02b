//===- CudaDriver.h - The driver of NVIDIA GPUs, found at run time -*- C++ -*-//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Products must start on machines without a GPU, so libcuda.so.1 is opened when
// a model asks for one. Types and numbers are those of its documented C
// interface; no header of the toolkit is needed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_CUDADRIVER_H
#define ATTUNE_LIB_RUNTIME_CUDA_CUDADRIVER_H

#include "attune/Runtime/Error.h"

#include <cstddef>
#include <cstdint>

namespace attune::runtime {

/// A CUresult, CUdevice or CUdeviceptr, and handles of what the driver owns.
using CudaResult = int;
using CudaOrdinal = int;
using CudaAddress = unsigned long long;
using CudaHandle = struct CudaObject *;

enum : CudaResult {
  CudaExchangeFailed = -1, ///< no result of the driver: NCCL has the reason
  CudaOutOfMemory = 2,
  CudaNoDevice = 100,
  CudaInvalidPtx = 218,
  CudaUnsupportedPtxVersion = 222,
  CudaNotReady = 600,
  CudaNotSupported = 801,
};

/// CUDA_KERNEL_NODE_PARAMS; the first version ends with `extra`.
struct CudaKernelNode {
  CudaHandle function;
  unsigned sizes[6]; ///< grid and block
  unsigned shared;
  void **params;
  void **extra;
  CudaHandle kernel, context; ///< instead of `function`; null: the current one
};

/// CUgraphEdgeData: the later kernel may start while the earlier one runs, from
/// its port of a programmatic launch on.
struct CudaGraphEdge {
  unsigned char fromPort, toPort, type, reserved[5];
};
constexpr CudaGraphEdge kProgrammaticEdge = {1, 0, 1, {}};

/// CUlaunchAttribute and CUlaunchConfig; the value is a union of 64 bytes.
struct CudaLaunchAttribute {
  unsigned id, unused;
  alignas(8) int value[16];
};
struct CudaLaunchConfig {
  unsigned sizes[6]; ///< grid and block
  unsigned shared;
  CudaHandle stream;
  CudaLaunchAttribute *attributes;
  unsigned numAttributes;
};
/// The kernel may start while the one before runs.
constexpr CudaLaunchAttribute kProgrammaticLaunch = {6, 0, {1}};
/// All of its blocks run at once.
constexpr CudaLaunchAttribute kCooperativeLaunch = {2, 0, {1}};

/// CUmemLocation, CUmemAllocationProp and CUmemAccessDesc: memory of a device
/// that is given addresses later, and who may use it.
struct CudaMemoryPlace {
  int type, ordinal;
};
struct CudaPageKind {
  int type, handleTypes;
  CudaMemoryPlace location;
  void *metadata;
  unsigned char flags[8];
};
struct CudaPageAccess {
  CudaMemoryPlace location;
  int flags;
};

struct CudaDriver {
  /// Opens the driver's library; fails with a message for people.
  bool load(Error &error);

  CudaResult (*init)(unsigned flags);
  CudaResult (*driverGetVersion)(int *version);
  CudaResult (*deviceGetCount)(int *count);
  CudaResult (*deviceGet)(CudaOrdinal *device, int ordinal);
  CudaResult (*deviceGetName)(char *name, int size, CudaOrdinal device);
  CudaResult (*deviceGetAttribute)(int *value, int attribute,
                                   CudaOrdinal device);
  CudaResult (*primaryContextRetain)(CudaHandle *context, CudaOrdinal device);
  CudaResult (*primaryContextRelease)(CudaOrdinal device);
  CudaResult (*contextSetCurrent)(CudaHandle context);
  CudaResult (*streamCreate)(CudaHandle *stream, unsigned flags);
  CudaResult (*streamDestroy)(CudaHandle stream);
  CudaResult (*streamSynchronize)(CudaHandle stream);
  CudaResult (*streamQuery)(CudaHandle stream);
  CudaResult (*memAlloc)(CudaAddress *address, size_t bytes);
  CudaResult (*memFree)(CudaAddress address);
  CudaResult (*memGetInfo)(size_t *free, size_t *total);
  CudaResult (*copyToDevice)(CudaAddress to, const void *from, size_t bytes,
                             CudaHandle stream);
  CudaResult (*copyToHost)(void *to, CudaAddress from, size_t bytes,
                           CudaHandle stream);
  CudaResult (*copyOnDevice)(CudaAddress to, CudaAddress from, size_t bytes,
                             CudaHandle stream);
  CudaResult (*fill)(CudaAddress to, unsigned char value, size_t count,
                     CudaHandle stream);
  CudaResult (*moduleLoad)(CudaHandle *module, const void *image,
                           unsigned numOptions, int *options, void **values);
  CudaResult (*moduleUnload)(CudaHandle module);
  CudaResult (*moduleGetFunction)(CudaHandle *function, CudaHandle module,
                                  const char *name);
  static constexpr int functionSharedBytes = 8, functionSharedPercent = 9;
  CudaResult (*functionSetAttribute)(CudaHandle function, int attribute,
                                     int value);
  CudaResult (*launchKernel)(CudaHandle function, unsigned gridX,
                             unsigned gridY, unsigned gridZ, unsigned blockX,
                             unsigned blockY, unsigned blockZ, unsigned shared,
                             CudaHandle stream, void **params, void **extra);
  // Graphs; `graphCreate` is null if any is missing.
  CudaResult (*graphCreate)(CudaHandle *graph, unsigned flags);
  CudaResult (*graphAddKernelNode)(CudaHandle *node, CudaHandle graph,
                                   const CudaHandle *after, size_t numAfter,
                                   const CudaKernelNode *params);
  CudaResult (*graphInstantiate)(CudaHandle *executable, CudaHandle graph,
                                 unsigned long long flags);
  CudaResult (*graphExecSetParams)(CudaHandle executable, CudaHandle node,
                                   const CudaKernelNode *params);
  CudaResult (*graphLaunch)(CudaHandle executable, CudaHandle stream);
  CudaResult (*graphExecDestroy)(CudaHandle executable);
  CudaResult (*graphDestroy)(CudaHandle graph);
  bool hasGraphs() const { return graphCreate != nullptr; }
  // Graphs of what a stream is told meanwhile; null if any is missing.
  CudaResult (*streamBeginCapture)(CudaHandle stream, int mode);
  CudaResult (*streamEndCapture)(CudaHandle stream, CudaHandle *graph);
  CudaResult (*streamGetCaptureInfo)(CudaHandle stream, int *status,
                                     uint64_t *id, CudaHandle *graph,
                                     const CudaHandle **last, size_t *numLast);
  bool canCapture() const { return streamBeginCapture != nullptr; }
  // Kernels that start before the last one ends; null if any is missing.
  CudaResult (*graphAddDependencies)(CudaHandle graph, const CudaHandle *from,
                                     const CudaHandle *to,
                                     const CudaGraphEdge *edges, size_t count);
  CudaResult (*launchKernelEx)(const CudaLaunchConfig *config,
                               CudaHandle function, void **params,
                               void **extra);
  // Kernels whose blocks all run at once; null if either is missing.
  CudaResult (*launchCooperative)(CudaHandle function, unsigned gridX,
                                  unsigned gridY, unsigned gridZ,
                                  unsigned blockX, unsigned blockY,
                                  unsigned blockZ, unsigned shared,
                                  CudaHandle stream, void **params);
  CudaResult (*occupancy)(int *blocks, CudaHandle function, int threads,
                          size_t shared);
  // Memory of the host that copies need not pass through another; may be null.
  CudaResult (*hostAlloc)(void **memory, size_t bytes, unsigned flags);
  CudaResult (*hostFree)(void *memory);
  // Addresses and pages of memory apart; `pageCreate` is null if any is
  // missing.
  CudaResult (*pageGranularity)(size_t *bytes, const CudaPageKind *kind,
                                int option);
  CudaResult (*addressReserve)(CudaAddress *address, size_t bytes,
                               size_t alignment, CudaAddress wanted,
                               unsigned long long flags);
  CudaResult (*addressFree)(CudaAddress address, size_t bytes);
  CudaResult (*pageCreate)(unsigned long long *page, size_t bytes,
                           const CudaPageKind *kind, unsigned long long flags);
  CudaResult (*pageRelease)(unsigned long long page);
  CudaResult (*pageMap)(CudaAddress address, size_t bytes, size_t offset,
                        unsigned long long page, unsigned long long flags);
  CudaResult (*pageUnmap)(CudaAddress address, size_t bytes);
  CudaResult (*pageSetAccess)(CudaAddress address, size_t bytes,
                              const CudaPageAccess *access, size_t count);
  bool canMap() const { return pageCreate != nullptr; }
  /// Null if the driver knows no tensor maps.
  CudaResult (*tensorMapEncode)(void *map, int type, unsigned rank,
                                void *address, const uint64_t *sizes,
                                const uint64_t *strides, const unsigned *box,
                                const unsigned *steps, int interleave,
                                int swizzle, int promotion, int fill);
  CudaResult (*getErrorName)(CudaResult result, const char **text);
  CudaResult (*getErrorString)(CudaResult result, const char **text);

  /// "CUDA_ERROR_ILLEGAL_ADDRESS (an illegal memory access was encountered)"
  std::string describe(CudaResult result) const;

private:
  void loadOptional(void *library);
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_CUDADRIVER_H
