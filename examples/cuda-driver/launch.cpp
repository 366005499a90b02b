//===- launch.cpp - Start a kernel of a compiled model ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   launch FILE                                    lists a .ptx file's kernels
//   launch FILE KERNEL BLOCKS [--shared=N] ARG...  starts one
//
// An ARG is a whole number, a number with a point (an f32), or pN: a pointer to
// N bytes of zeros on the device. --shared is the dynamic shared memory of a
// block, in bytes.
//
//===----------------------------------------------------------------------===//

#include <cuda.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

static void check(CUresult result, const char *what) {
  if (result == CUDA_SUCCESS)
    return;
  const char *name = nullptr;
  cuGetErrorName(result, &name);
  std::fprintf(stderr, "launch: %s: %s\n", what, name ? name : "unknown error");
  std::exit(1);
}

namespace {
/// What the text says of an entry.
struct Kernel {
  std::string name;
  std::vector<bool> pointers; ///< one for each parameter
  unsigned block[3] = {1, 1, 1};
  bool dynamicShared = false; ///< has shared memory whose size a launch says
};
} // namespace

static std::vector<Kernel> readKernels(const std::string &text) {
  std::vector<Kernel> kernels;
  std::istringstream lines(text);
  std::string line;
  while (std::getline(lines, line)) {
    size_t at;
    if ((at = line.find(".entry ")) != std::string::npos) {
      kernels.emplace_back();
      kernels.back().name = line.substr(at + 7, line.find('(') - at - 7);
    } else if (kernels.empty()) {
      continue;
    } else if (line.find(".param") != std::string::npos &&
               line.find("ld.") == std::string::npos) {
      bool pointer = line.find(".ptr") != std::string::npos;
      kernels.back().pointers.push_back(pointer);
    } else if ((at = line.find(".maxntid")) != std::string::npos) {
      unsigned *block = kernels.back().block;
      std::sscanf(line.c_str() + at, ".maxntid %u , %u , %u", &block[0],
                  &block[1], &block[2]);
    } else if (line.find("attune_dynamic_shared") != std::string::npos) {
      kernels.back().dynamicShared = true;
    }
  }
  return kernels;
}

/// `name: 3 parameters (pointer number number), blocks of 32x4x1`
static void print(const Kernel &kernel) {
  std::printf("%s: %zu parameters (", kernel.name.c_str(),
              kernel.pointers.size());
  const char *space = "";
  for (bool pointer : kernel.pointers) {
    std::printf("%s%s", space, pointer ? "pointer" : "number");
    space = " ";
  }
  std::printf("), blocks of %ux%ux%u%s\n", kernel.block[0], kernel.block[1],
              kernel.block[2],
              kernel.dynamicShared ? ", dynamic shared memory" : "");
}

/// Says what does not fit the kernel; the driver reads as many words as there
/// are parameters, whatever it is given.
static bool fits(const Kernel &kernel, const std::vector<char *> &arguments,
                 unsigned shared) {
  const char *name = kernel.name.c_str();
  if (arguments.size() != kernel.pointers.size()) {
    std::fprintf(stderr, "launch: %s has %zu parameters, but %zu are given\n",
                 name, kernel.pointers.size(), arguments.size());
    return false;
  }
  for (size_t i = 0; i < arguments.size(); ++i)
    if (kernel.pointers[i] && arguments[i][0] != 'p') {
      std::fprintf(stderr,
                   "launch: parameter %zu of %s is a pointer, but '%s' is "
                   "given, not pN\n",
                   i, name, arguments[i]);
      return false;
    }
  if (kernel.dynamicShared && shared == 0) {
    std::fprintf(stderr,
                 "launch: %s takes dynamic shared memory: say how much with "
                 "--shared=BYTES\n",
                 name);
    return false;
  }
  return true;
}

/// Every parameter is a word of 8 bytes.
static uint64_t parse(const char *argument) {
  if (argument[0] == 'p') {
    size_t bytes = std::strtoull(argument + 1, nullptr, 10);
    CUdeviceptr memory;
    check(cuMemAlloc(&memory, bytes), "cuMemAlloc");
    check(cuMemsetD8(memory, 0, bytes), "cuMemsetD8");
    return memory;
  }
  if (std::strchr(argument, '.')) {
    float value = std::strtof(argument, nullptr);
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return bits;
  }
  return std::strtoull(argument, nullptr, 10);
}

int main(int argc, char **argv) {
  unsigned shared = 0;
  std::vector<char *> words;
  for (int i = 1; i < argc; ++i)
    if (std::strncmp(argv[i], "--shared=", 9) == 0)
      shared = std::strtoul(argv[i] + 9, nullptr, 10);
    else
      words.push_back(argv[i]);
  if (words.size() != 1 && words.size() < 3) {
    std::fprintf(stderr, "usage: launch FILE [KERNEL BLOCKS [--shared=BYTES] "
                         "ARG...]\n");
    return 2;
  }
  std::ifstream file(words[0]);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) {
    std::fprintf(stderr, "launch: cannot read %s\n", words[0]);
    return 1;
  }
  std::vector<Kernel> kernels = readKernels(text);
  if (words.size() == 1) {
    for (const Kernel &kernel : kernels)
      print(kernel);
    return 0;
  }
  const Kernel *found = nullptr;
  for (const Kernel &kernel : kernels)
    if (kernel.name == words[1])
      found = &kernel;
  if (!found) {
    std::fprintf(stderr, "launch: %s has no kernel %s\n", words[0], words[1]);
    return 1;
  }
  unsigned blocks = std::strtoul(words[2], nullptr, 10);
  words.erase(words.begin(), words.begin() + 3);
  if (!fits(*found, words, shared))
    return 1;

  check(cuInit(0), "cuInit");
  CUdevice device;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  CUcontext context;
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module;
  check(cuModuleLoadData(&module, text.c_str()), "cuModuleLoadData");
  CUfunction kernel;
  check(cuModuleGetFunction(&kernel, module, found->name.c_str()),
        "cuModuleGetFunction");
  // Without this the driver lends no more than 48 KiB.
  if (shared)
    check(cuFuncSetAttribute(kernel,
                             CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                             static_cast<int>(shared)),
          "cuFuncSetAttribute");

  std::vector<uint64_t> values;
  for (const char *word : words)
    values.push_back(parse(word));
  std::vector<void *> params;
  for (uint64_t &value : values)
    params.push_back(&value);
  CUevent begin, end;
  check(cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuEventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuEventRecord(begin, nullptr), "cuEventRecord");
  const unsigned *block = found->block;
  check(cuLaunchKernel(kernel, blocks, 1, 1, block[0], block[1], block[2],
                       shared, nullptr, params.data(), nullptr),
        "cuLaunchKernel");
  check(cuEventRecord(end, nullptr), "cuEventRecord");
  check(cuEventSynchronize(end), "the kernel");
  float milliseconds = 0;
  check(cuEventElapsedTime(&milliseconds, begin, end), "cuEventElapsedTime");
  std::printf("%s: %.3f ms\n", found->name.c_str(), milliseconds);
  return 0;
}
