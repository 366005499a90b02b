//===- CudaPersistent.h - Many launches as one kernel -----------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Launches that may all be instructions of a persistent kernel become a list in
// device memory (StepSchedule.h) and one cooperative launch: those of a whole
// step, or, where ranks exchange something, those between two exchanges. One
// piece of memory has all lists of a step. Of it only what has changed since
// the last time is copied there. Where the driver cannot start all blocks at
// once, or a list does not pass its checks, they stay launches, and whyNot()
// says why.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_CUDAPERSISTENT_H
#define ATTUNE_LIB_RUNTIME_CUDA_CUDAPERSISTENT_H

#include "CudaDriver.h"
#include "StepSchedule.h"

#include <atomic>
#include <string>
#include <vector>

namespace attune::runtime {

struct CudaInstruction;
struct CudaLaunches;

/// A list: what starts it, and where its parts begin, in bytes.
struct CudaRun {
  int64_t kernel;
  unsigned blocks, threads, sharedBytes;
  size_t size; ///< instructions
  size_t counters, instructions, waits, words;
};

/// The lists of a step in device memory.
struct CudaProgram {
  CudaAddress memory = 0;
  size_t capacity = 0; ///< bytes there
  std::vector<char> image;
  std::vector<CudaRun> runs;
  bool isWhole = false; ///< one list is all of the step
};

class CudaPersistent {
public:
  CudaPersistent(const CudaDriver &driver,
                 const std::vector<CudaHandle> &kernels)
      : driver(driver), kernels(kernels) {}
  /// The device can start so many multiprocessors' blocks together.
  void allow(unsigned count) { multiprocessors = count; }

  /// Whether all of these are instructions of one kernel.
  bool takes(const CudaLaunches &work) { return kernelOf(work) >= 0; }
  /// Lets the device have the list, once what the stream does is done. False if
  /// that cannot be.
  bool write(CudaProgram &program, const CudaLaunches &work, CudaHandle stream);
  CudaResult start(const CudaProgram &program, CudaHandle stream) const;
  /// The same where there are exchanges: what stands between two becomes a
  /// list, which is a launch of `joined`; all else is there as it is. False:
  /// there is none, or it cannot be.
  bool join(CudaProgram &program, const CudaLaunches &work,
            CudaLaunches &joined, CudaHandle stream);
  void destroy(CudaProgram &program) const;
  /// From now on there are launches alone. The first reason stays.
  bool refuse(const std::string &why);
  /// Why there are; empty: nothing speaks against lists so far. Any thread may
  /// ask.
  std::string whyNot() const { return refused.load() ? refusal : ""; }

private:
  /// Blocks of a kernel that run at once.
  struct Room {
    int64_t kernel;
    unsigned blocks;
  };
  /// The kernel that has all launches but exchanges; -1: none.
  int64_t kernelOf(const CudaLaunches &work);
  unsigned blocksOf(const CudaInstruction &one);
  /// Adds the list of the launches from `first` to before `last`.
  bool addRun(CudaProgram &program, std::vector<char> &image,
              const CudaLaunches &work, int64_t kernel, size_t first,
              size_t last);
  bool copyChanges(CudaProgram &program, std::vector<char> image,
                   CudaHandle stream);

  const CudaDriver &driver;
  const std::vector<CudaHandle> &kernels;
  unsigned multiprocessors = 0; ///< 0: it cannot
  std::vector<Room> rooms;      ///< of kernels that were asked for
  std::string refusal;          ///< written once, before `refused` is set
  std::atomic<bool> refused{false};
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_CUDAPERSISTENT_H
