//===- FakeCuda.h - What parts of the fake driver share ---------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_TEST_PTXMACHINE_FAKECUDA_H
#define ATTUNE_TEST_PTXMACHINE_FAKECUDA_H

#include "Machine.h"

#include <string>

namespace fake {

using Result = int;
using Address = unsigned long long;

enum : Result {
  Success = 0,
  InvalidValue = 1,
  OutOfMemory = 2,
  NotInitialized = 3,
  NoDevice = 100,
  InvalidDevice = 101,
  InvalidImage = 200,
  InvalidPtx = 218,
  UnsupportedPtxVersion = 222,
  InvalidHandle = 400,
  IllegalState = 401,
  NotFound = 500,
  NotReady = 600,
  IllegalAddress = 700,
  NotSupported = 801,
  TooManyBlocks = 720,
  CaptureUnsupported = 900,
};

/// Of the device: what kernels may touch, and how much of it there is.
struct Device {
  ptx::Memory memory;
  uint64_t used = 0;
};
Device &device();

/// A number of the environment.
uint64_t setting(const char *name, uint64_t usual);
/// A line of FAKE_CUDA_LOG.
void log(const std::string &line);
/// Whether the device has so many bytes left.
bool hasFree(uint64_t bytes);

} // namespace fake

#endif // ATTUNE_TEST_PTXMACHINE_FAKECUDA_H
