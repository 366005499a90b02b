//===- CudaDriver.cpp - The driver of NVIDIA GPUs, found at run time ------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDriver.h"

#include <dlfcn.h>

namespace attune::runtime {

static const char *const libraryName = "libcuda.so.1";

namespace {
/// One that a driver may not have, or have as it was before.
struct OptionalFunction {
  const char *name, *before;
  void *place;
};

template <size_t count>
bool findAll(void *library, const OptionalFunction (&functions)[count]) {
  bool complete = true;
  for (const OptionalFunction &function : functions) {
    void *address = dlsym(library, function.name);
    if (!address && function.before)
      address = dlsym(library, function.before);
    *static_cast<void **>(function.place) = address;
    complete &= address != nullptr;
  }
  return complete;
}
} // namespace

/// The second versions take a longer description of a node than the first ones;
/// the beginning is the same.
void CudaDriver::loadOptional(void *library) {
  *reinterpret_cast<void **>(&tensorMapEncode) =
      dlsym(library, "cuTensorMapEncodeTiled");
  const OptionalFunction ofGraphs[] = {
      {"cuGraphCreate", nullptr, &graphCreate},
      {"cuGraphAddKernelNode_v2", "cuGraphAddKernelNode", &graphAddKernelNode},
      {"cuGraphInstantiateWithFlags", nullptr, &graphInstantiate},
      {"cuGraphExecKernelNodeSetParams_v2", "cuGraphExecKernelNodeSetParams",
       &graphExecSetParams},
      {"cuGraphLaunch", nullptr, &graphLaunch},
      {"cuGraphExecDestroy", nullptr, &graphExecDestroy},
      {"cuGraphDestroy", nullptr, &graphDestroy},
  };
  if (!findAll(library, ofGraphs))
    graphCreate = nullptr;
  const OptionalFunction ofPages[] = {
      {"cuMemGetAllocationGranularity", nullptr, &pageGranularity},
      {"cuMemAddressReserve", nullptr, &addressReserve},
      {"cuMemAddressFree", nullptr, &addressFree},
      {"cuMemCreate", nullptr, &pageCreate},
      {"cuMemRelease", nullptr, &pageRelease},
      {"cuMemMap", nullptr, &pageMap},
      {"cuMemUnmap", nullptr, &pageUnmap},
      {"cuMemSetAccess", nullptr, &pageSetAccess},
  };
  if (!findAll(library, ofPages))
    pageCreate = nullptr;
  *reinterpret_cast<void **>(&streamEndCapture) =
      dlsym(library, "cuStreamEndCapture");
  *reinterpret_cast<void **>(&streamGetCaptureInfo) =
      dlsym(library, "cuStreamGetCaptureInfo_v2");
  *reinterpret_cast<void **>(&streamBeginCapture) =
      streamEndCapture && streamGetCaptureInfo
          ? dlsym(library, "cuStreamBeginCapture_v2")
          : nullptr;
  *reinterpret_cast<void **>(&occupancy) =
      dlsym(library, "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  *reinterpret_cast<void **>(&launchCooperative) =
      occupancy ? dlsym(library, "cuLaunchCooperativeKernel") : nullptr;
  *reinterpret_cast<void **>(&hostAlloc) = dlsym(library, "cuMemHostAlloc");
  *reinterpret_cast<void **>(&hostFree) = dlsym(library, "cuMemFreeHost");
  *reinterpret_cast<void **>(&graphAddDependencies) =
      dlsym(library, "cuGraphAddDependencies_v2");
  *reinterpret_cast<void **>(&launchKernelEx) =
      dlsym(library, "cuLaunchKernelEx");
}

bool CudaDriver::load(Error &error) {
  // It stays open: a driver does not like to be unloaded.
  void *library = dlopen(libraryName, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    return error.badInput(
        "this model runs on an NVIDIA GPU, but the GPU's driver is not "
        "installed on this machine: " +
        std::string(why ? why : libraryName));
  }
  struct {
    const char *name;
    void *place;
  } functions[] = {
      {"cuInit", &init},
      {"cuDriverGetVersion", &driverGetVersion},
      {"cuDeviceGetCount", &deviceGetCount},
      {"cuDeviceGet", &deviceGet},
      {"cuDeviceGetName", &deviceGetName},
      {"cuDeviceGetAttribute", &deviceGetAttribute},
      {"cuDevicePrimaryCtxRetain", &primaryContextRetain},
      {"cuDevicePrimaryCtxRelease_v2", &primaryContextRelease},
      {"cuCtxSetCurrent", &contextSetCurrent},
      {"cuStreamCreate", &streamCreate},
      {"cuStreamDestroy_v2", &streamDestroy},
      {"cuStreamSynchronize", &streamSynchronize},
      {"cuStreamQuery", &streamQuery},
      {"cuMemAlloc_v2", &memAlloc},
      {"cuMemFree_v2", &memFree},
      {"cuMemGetInfo_v2", &memGetInfo},
      {"cuMemcpyHtoDAsync_v2", &copyToDevice},
      {"cuMemcpyDtoHAsync_v2", &copyToHost},
      {"cuMemcpyDtoDAsync_v2", &copyOnDevice},
      {"cuMemsetD8Async", &fill},
      {"cuModuleLoadDataEx", &moduleLoad},
      {"cuModuleUnload", &moduleUnload},
      {"cuModuleGetFunction", &moduleGetFunction},
      {"cuFuncSetAttribute", &functionSetAttribute},
      {"cuLaunchKernel", &launchKernel},
      {"cuGetErrorName", &getErrorName},
      {"cuGetErrorString", &getErrorString},
  };
  for (auto &function : functions) {
    void *address = dlsym(library, function.name);
    if (!address)
      return error.badInput(std::string("the GPU's driver is too old: ") +
                            libraryName + " has no " + function.name);
    *static_cast<void **>(function.place) = address;
  }
  loadOptional(library);
  return true;
}

std::string CudaDriver::describe(CudaResult result) const {
  const char *name = nullptr, *text = nullptr;
  getErrorName(result, &name);
  getErrorString(result, &text);
  std::string described =
      name ? name : "error " + std::to_string(static_cast<long>(result));
  if (text)
    described += " (" + std::string(text) + ")";
  return described;
}

} // namespace attune::runtime
