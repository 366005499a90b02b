//===- StepSchedule.h - Launches as a list of instructions ------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A persistent kernel (attune-persistent-kernel) has the code of all kernels of
// a decoder's step. Its blocks, which all run at once, go through a list in
// order. What was a block of a launch is a task; some tasks make a group, which
// a block computes at once. Group g of an instruction belongs to block
// (first + g) mod blocks, where `first` is the block behind the last group of
// the instruction before.
//
// An instruction waits until instructions before it are done, all of their
// groups: those that wrote what it reads or writes, and those that read what it
// writes. What is done when one of these is done need not be waited for.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_CUDA_STEPSCHEDULE_H
#define ATTUNE_LIB_RUNTIME_CUDA_STEPSCHEDULE_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace attune::runtime {

/// Memory of the device that a launch reads or writes.
struct CudaAccess {
  uint64_t begin, end;
  bool writes; ///< and may read
};

/// A launch that is to be an instruction.
struct StepLaunch {
  uint32_t kernel; ///< its number in the persistent kernel
  uint32_t tasks;
  uint32_t atOnce; ///< the most tasks of a group
  const uint64_t *words;
  size_t numWords;
  /// None: it may touch anything.
  const CudaAccess *accesses;
  size_t numAccesses;
};

/// As the device reads it.
struct StepInstruction {
  uint32_t kernel, groups, firstBlock, tasks;
  uint32_t firstWord, firstWait, numWaits, atOnce;
};
struct StepWait {
  uint32_t instruction;
  uint32_t groups; ///< that are done by then: all of that instruction
};
struct StepSchedule {
  std::vector<StepInstruction> instructions;
  std::vector<StepWait> waits;
  std::vector<uint64_t> words;
};

/// The list for so many blocks.
StepSchedule makeSchedule(const std::vector<StepLaunch> &launches,
                          uint32_t blocks);

/// What is wrong with a list: a task that no block computes or that two do, a
/// wait that no time ends, or two instructions that touch the same memory in
/// any order. Empty if all is well.
std::string findScheduleProblem(const StepSchedule &schedule,
                                const std::vector<StepLaunch> &launches,
                                uint32_t blocks);

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_CUDA_STEPSCHEDULE_H
