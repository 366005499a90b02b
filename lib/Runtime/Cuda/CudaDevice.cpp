//===- CudaDevice.cpp - A compiled model on a GPU -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "CudaDevice.h"

#include "../Mesh/Nccl.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>

namespace attune::runtime {

namespace {
// Numbers of the driver's interface.
constexpr int attributeMajor = 75, attributeMinor = 76,
              attributeMultiprocessors = 16, attributeCooperative = 95;
constexpr int jitErrorLog = 5, jitErrorLogBytes = 6;

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
  if (failed(result, "reserving memory", error))
    return false;
  if (failed(driver.fill(memory, 0, bytes, stream), "clearing memory", error)) {
    driver.memFree(memory);
    return false;
  }
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
  auto place =
      std::find_if(allocated.begin(), allocated.end(),
                   [&](const Allocation &one) { return one.base == base; });
  if (place != allocated.end())
    allocated.erase(place);
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

} // namespace attune::runtime
