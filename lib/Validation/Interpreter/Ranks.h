//===- Ranks.h - Machines that share a model --------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_VALIDATION_INTERPRETER_RANKS_H
#define ATTUNE_LIB_VALIDATION_INTERPRETER_RANKS_H

#include "Machine.h"

#include "llvm/ADT/STLFunctionalExtras.h"

#include <condition_variable>
#include <mutex>

namespace attune::validation {

/// The machines of all ranks of a module: one, unless `attune-shard` has cut
/// it. They run one at a time, each on a thread of its own, and take turns
/// where ranks wait for each other.
class Ranks {
public:
  explicit Ranks(mlir::ModuleOp module, WeightCache *cache = nullptr);

  int64_t size() const { return int64_t(machines.size()); }
  Machine &operator[](int64_t rank) { return *machines[rank]; }
  /// Forgets failures; each rank may spend `work` from now on.
  void reset(int64_t work);
  /// What all of them have spent since each had `work`.
  int64_t spent(int64_t work) const;

  /// Calls `body` for every rank; false if one of them has failed.
  bool run(llvm::function_ref<bool(Machine &)> body);
  /// The machine that failed, and not for want of another; the first one if
  /// none did.
  const Machine &failed() const { return *machines[culprit]; }

  /// For the machine of a rank, within `run`: gives `own` to all ranks and gets
  /// what each of them gave at the same op, in their order. Empty if one of
  /// them has gone elsewhere; the machine has failed then.
  llvm::ArrayRef<Datum> exchange(Machine &machine, mlir::Operation *op,
                                 Datum own);
  /// The same, but only what the ranks gave that share the weights with this
  /// one, or the positions.
  llvm::SmallVector<Datum> exchangeParts(Machine &machine, mlir::Operation *op,
                                         Datum own);
  llvm::SmallVector<Datum> exchangePositions(Machine &machine,
                                             mlir::Operation *op, Datum own);
  /// Ranks that share weights, which are neighbours.
  int64_t getParts() const { return parts; }
  int64_t numberOf(const Machine &machine) const {
    return machine.sharer * parts + machine.rank;
  }

private:
  /// Lets the next rank run that is not done, and waits until it is this one's
  /// turn again.
  void yield(int64_t rank);
  void passOn(int64_t rank);

  std::vector<std::unique_ptr<Machine>> machines;
  int64_t culprit = 0;
  int64_t parts = 1;

  std::mutex mutex;
  std::condition_variable changed;
  int64_t turn = 0;
  std::vector<char> done;
  /// What ranks gave last and, as one may be ahead of another, before that.
  struct Round {
    std::vector<Datum> values;
    std::vector<mlir::Operation *> ops;
    std::vector<int64_t> numbers; ///< of the exchange that the value is of
  };
  Round rounds[2];
  std::vector<int64_t> exchanges; ///< of each rank so far
};

} // namespace attune::validation

#endif // ATTUNE_LIB_VALIDATION_INTERPRETER_RANKS_H
