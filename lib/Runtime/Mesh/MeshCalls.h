//===- MeshCalls.h - The first rank leads, the others follow ----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Only the first rank knows what is asked for: it reads the prompt, samples and
// prints. It tells the others which entry it calls, with which inputs, and what
// it does to the memory of the model, of which each rank has its own part.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_MESH_MESHCALLS_H
#define ATTUNE_LIB_RUNTIME_MESH_MESHCALLS_H

#include "Mesh.h"

#include <pthread.h>

namespace attune::runtime {

class MeshCalls {
public:
  /// With `checks` all ranks compare what a call gave, by hashes.
  MeshCalls(Mesh &mesh, CompiledModel &model, bool checks)
      : mesh(mesh), model(model), checks(checks) {}

  bool leads() const { return mesh.rank() == 0; }

  // For the first rank. The others have memory of the same sizes, and know it
  // by the first one's addresses.
  void reserve(const void *place, uint64_t bytes);
  void release(const void *place);
  void copy(const void *to, const void *from, uint64_t bytes);
  void exchange(const void *a, const void *b, uint64_t bytes);
  /// Calls the entry on all ranks. Threads that call, or that do something to
  /// the memory, take turns.
  bool call(const EntryInfo &entry, void **args, Error &error);
  void stop();

  /// For the others: does what the first rank says until it stops.
  bool follow(Error &error);

private:
  enum class Task : uint64_t { Stop, Reserve, Release, Copy, Exchange, Call };
  struct Order {
    Task task = Task::Stop;
    uint64_t a = 0, b = 0, bytes = 0;
  };
  struct Region {
    uint64_t address, bytes; ///< of the first rank
    ModelMemory own;
  };
  /// What an entry gives on another rank: nobody reads it but --check-ranks.
  struct Output {
    uint64_t bytes = 0;
    ModelMemory memory;
  };
  void tell(Task task, const void *a, const void *b, uint64_t bytes);
  void sendCall(const EntryInfo &entry, void **args);
  /// This rank's memory for an address of the first one.
  uint8_t *find(uint64_t address);
  /// Calls the entry here, and compares its outputs with those of all ranks.
  bool run(const EntryInfo &entry, void **args, Error &error);
  bool obey(const EntryInfo &entry, uint64_t bytes, Error &error);
  /// Memory for what the entry gives as this argument; null: there is none.
  uint8_t *outputOf(size_t argument, uint64_t bytes, Error &error);
  /// What is at a place of an output, where the host can read it; null: failed.
  const uint8_t *readable(int64_t place, uint64_t bytes, Error &error);

  Mesh &mesh;
  CompiledModel &model;
  bool checks;
  pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
  Buffer message;
  std::vector<Region> regions;
  std::vector<Output> outputs; ///< of an entry's arguments, by their number
  Buffer copied;               ///< from a GPU, to be compared
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_MESH_MESHCALLS_H
