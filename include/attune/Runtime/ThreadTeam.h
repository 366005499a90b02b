//===- ThreadTeam.h - The threads that run a model --------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A team is entered once per model step: every thread calls the compiled entry
// with the same arguments, the kernels divide the work by thread number, and
// barriers inside keep them together. Between steps the workers spin a little,
// because the next token follows at once, and then sleep.
//
// The team owns the arena that kernels keep their intermediate results in. It
// is a reserved range of addresses, backed by memory as it is touched. Frames
// are pushed and popped by every thread in the same order, so each thread
// counts for itself and all agree on the addresses.
//
// A long task may be paused at its barriers, where every thread has done its
// part of a loop: the caller's thread is asked there, and may run other tasks
// on the team before this one goes on. Their frames lie behind those of the
// task.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_RUNTIME_THREADTEAM_H
#define ATTUNE_RUNTIME_THREADTEAM_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <memory>

namespace attune::runtime {

/// Processors this process may run on, or fewer if control groups limit its
/// time (containers).
unsigned availableCores();
/// Bytes of this machine.
uint64_t physicalMemory();

class ThreadTeam {
public:
  using Task = void (*)(void *context);

  /// `threads` counts the caller; 0 means one per available core. Frames may
  /// take `frameLimit` bytes in all; 0 means as much as the machine has.
  static std::unique_ptr<ThreadTeam> create(unsigned threads,
                                            uint64_t frameLimit, Error &error);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam &) = delete;
  ThreadTeam &operator=(const ThreadTeam &) = delete;

  /// Calls `task(context)` on every thread and returns when all have returned.
  /// Callers of different threads take turns. Fails, with every thread back
  /// home, if the task asked for larger frames than the limit. Tasks of one
  /// `kind`, short steps that are alike, may be done by fewer threads, where
  /// others want the cores (StepPace.h); 0: by all.
  bool run(Task task, void *context, Error &error, uint64_t kind = 0);
  /// From now on, `pause(context)` is called at the barriers of tasks, on the
  /// thread of their caller, and may call run(); null: no more. For a team
  /// whose tasks have one caller.
  void setPause(Task pause, void *context);

  unsigned size() const;
  /// The most bytes of frames that were ever in use.
  uint64_t frameHighWater() const;

  struct State;

private:
  ThreadTeam() = default;
  std::unique_ptr<State> state;
};

} // namespace attune::runtime

#endif // ATTUNE_RUNTIME_THREADTEAM_H
