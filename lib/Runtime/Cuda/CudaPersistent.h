//===- CudaPersistent.h - Many launches as one kernel -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that may all be instructions of a persistent kernel become a list in
// device memory (StepSchedule.h) and one cooperative launch. Of the list only
// what has changed since the last time is copied there. Where the driver cannot
// start all blocks at once, or a list does not pass its checks, they stay
// launches.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_CUDAPERSISTENT_H
#define ATTUNE_LIB_RUNTIME_CUDA_CUDAPERSISTENT_H

#include "CudaDriver.h"
#include "StepSchedule.h"

#include <vector>

namespace attune::runtime {

struct CudaLaunches;

/// A list in device memory.
struct CudaProgram {
  CudaAddress memory = 0;
  size_t capacity = 0; ///< bytes there
  std::vector<char> image;
  int64_t kernel = -1;
  unsigned blocks = 0, threads = 0, sharedBytes = 0;
  size_t size = 0; ///< instructions
  /// Where they, their waits and words begin, in bytes; counters come first.
  size_t instructions = 0, waits = 0, words = 0;
};

class CudaPersistent {
public:
  CudaPersistent(const CudaDriver &driver,
                 const std::vector<CudaHandle> &kernels)
      : driver(driver), kernels(kernels) {}
  /// The device can start so many multiprocessors' blocks together.
  void allow(unsigned count) { multiprocessors = count; }

  /// Whether all of these are instructions of one kernel.
  bool takes(const CudaLaunches &work) const { return kernelOf(work) >= 0; }
  /// Lets the device have the list, once what the stream does is done. False if
  /// that cannot be.
  bool write(CudaProgram &program, const CudaLaunches &work, CudaHandle stream);
  CudaResult start(const CudaProgram &program, CudaHandle stream) const;
  void destroy(CudaProgram &program) const;

private:
  /// The kernel that has all of them; -1: none.
  int64_t kernelOf(const CudaLaunches &work) const;
  bool writeList(CudaProgram &program, const std::vector<StepLaunch> &launches,
                 CudaHandle stream) const;
  bool copyChanges(CudaProgram &program, std::vector<char> image,
                   CudaHandle stream) const;

  const CudaDriver &driver;
  const std::vector<CudaHandle> &kernels;
  unsigned multiprocessors = 0; ///< 0: it cannot
  bool usable = true;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_CUDAPERSISTENT_H
