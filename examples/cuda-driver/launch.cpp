//===- launch.cpp - Start a kernel of a compiled model ----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
//   launch FILE                         lists the kernels of a .ptx file
//   launch FILE KERNEL BLOCKS ARG...    starts one
//
// An ARG is a whole number, a number with a point (an f32), or pN: a pointer to
// N bytes of zeros on the device.
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

/// Prints `name (parameters)` of every entry in the text.
static void list(const std::string &text) {
  std::istringstream lines(text);
  std::string line, name;
  unsigned parameters = 0;
  while (std::getline(lines, line)) {
    size_t entry = line.find(".entry ");
    if (entry != std::string::npos) {
      name = line.substr(entry + 7, line.find('(') - entry - 7);
      parameters = 0;
    } else if (line.find(".param") != std::string::npos &&
               line.find("ld.") == std::string::npos) {
      ++parameters;
    } else if (!name.empty() && line.find('{') != std::string::npos) {
      std::printf("%s: %u parameters of 8 bytes\n", name.c_str(), parameters);
      name.clear();
    }
  }
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
  if (argc != 2 && argc < 4) {
    std::fprintf(stderr, "usage: launch FILE [KERNEL BLOCKS ARG...]\n");
    return 2;
  }
  std::ifstream file(argv[1]);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (text.empty()) {
    std::fprintf(stderr, "launch: cannot read %s\n", argv[1]);
    return 1;
  }
  if (argc == 2) {
    list(text);
    return 0;
  }

  check(cuInit(0), "cuInit");
  CUdevice device;
  check(cuDeviceGet(&device, 0), "cuDeviceGet");
  CUcontext context;
  check(cuDevicePrimaryCtxRetain(&context, device), "cuDevicePrimaryCtxRetain");
  check(cuCtxSetCurrent(context), "cuCtxSetCurrent");
  CUmodule module;
  check(cuModuleLoadData(&module, text.c_str()), "cuModuleLoadData");
  CUfunction kernel;
  check(cuModuleGetFunction(&kernel, module, argv[2]), argv[2]);

  std::vector<uint64_t> words;
  for (int i = 4; i < argc; ++i)
    words.push_back(parse(argv[i]));
  std::vector<void *> params;
  for (uint64_t &word : words)
    params.push_back(&word);
  // Kernels say how many threads their blocks have.
  int threads = 0;
  check(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
                           kernel),
        "cuFuncGetAttribute");
  CUevent begin, end;
  check(cuEventCreate(&begin, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuEventCreate(&end, CU_EVENT_DEFAULT), "cuEventCreate");
  check(cuEventRecord(begin, nullptr), "cuEventRecord");
  check(cuLaunchKernel(kernel, std::strtoul(argv[3], nullptr, 10), 1, 1,
                       threads, 1, 1, 0, nullptr, params.data(), nullptr),
        "cuLaunchKernel");
  check(cuEventRecord(end, nullptr), "cuEventRecord");
  check(cuEventSynchronize(end), "the kernel");
  float milliseconds = 0;
  check(cuEventElapsedTime(&milliseconds, begin, end), "cuEventElapsedTime");
  std::printf("%s: %.3f ms\n", argv[2], milliseconds);
  return 0;
}
