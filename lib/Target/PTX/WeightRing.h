//===- WeightRing.h - Weights of tasks to come ------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Shared memory of a persistent kernel's block that holds weights of the tasks
// it has next. Each thread has its own part, a ring of units of 16 bytes: it
// starts copies, waits for them and reads them itself, in the order of its
// tasks, and no other thread has to know. A task's units lie one behind the
// other; they do not pass the ring's end.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_TARGET_PTX_WEIGHTRING_H
#define ATTUNE_LIB_TARGET_PTX_WEIGHTRING_H

#include "KernelWeights.h"
#include "StepList.h"

#include <utility>

namespace attune {

class WeightRing {
public:
  /// In the first word of an instruction a kernel's number has so many bits,
  /// and the units that a thread copies for it have the others.
  static constexpr int64_t kNumberBits = 16;
  /// Instead of units: the kernel waits for copies of its own, and so would for
  /// older ones.
  static constexpr int64_t kStop = (1 << 15) - 1;

  /// `space`: that of shared memory.
  WeightRing(int64_t threads, int64_t units, mlir::Attribute space)
      : threads(threads), units(units), space(space) {}
  int64_t bytes() const { return units * unitBytes(); }

  /// At the kernel's start.
  void make(StepMaker m);

  /// Starts the copies of a thread: for an instruction of these words, of this
  /// group, into the ring from a unit on.
  using CopyTask = llvm::function_ref<void(
      StepMaker, const std::array<mlir::Value, 8> &, mlir::Value, mlir::Value)>;
  /// Before the block computes a group of an instruction: starts copies for it,
  /// if that has not been done, and for those behind it, as there is room.
  void copyAhead(StepMaker m, const StepList &list, mlir::Value instruction,
                 mlir::Value group, CopyTask copy);

  /// Where the weights of the next task that has some begin, and how many
  /// younger tasks' are under way. They are given back with the next
  /// copyAhead().
  std::pair<mlir::Value, mlir::Value> take(StepMaker m, int64_t ofTask);
  /// Until no more than those of so many tasks are under way.
  void wait(StepMaker m, mlir::Value younger);

  /// A thread's unit.
  mlir::Value place(StepMaker m, mlir::Value thread, mlir::Value start,
                    mlir::Value unit, mlir::VectorType type);

private:
  /// The most tasks whose weights are under way.
  static constexpr int64_t kMostAhead = 4;

  int64_t unitBytes() const { return threads * KernelWeights::kUnit; }
  mlir::Value startBehind(StepMaker m, mlir::Value before, mlir::Value ofTask);
  mlir::Value copyNext(StepMaker m, const StepList &list, CopyTask copy);

  int64_t threads, units;
  mlir::Attribute space;
  mlir::Value memory;
  // Numbers in scratch; all threads of a block have the same.
  mlir::Value instruction, group; ///< whose weights are copied next
  mlir::Value head, tail;         ///< where the next ones go, and come from
  mlir::Value wrapped;            ///< whether the head is behind the tail
  mlir::Value count; ///< tasks whose weights are there or under way
};

} // namespace attune

#endif // ATTUNE_LIB_TARGET_PTX_WEIGHTRING_H
