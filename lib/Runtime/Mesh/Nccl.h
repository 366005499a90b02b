//===- Nccl.h - What GPUs of several ranks exchange -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// NVIDIA's library of collectives, found at run time like the driver. Ranks
// know each other from MPI; numbers go from GPU to GPU, in the order of a
// stream or as part of a graph. Types and numbers are those of its documented
// C interface; no header of it is needed.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_MESH_NCCL_H
#define ATTUNE_LIB_RUNTIME_MESH_NCCL_H

#include "Mesh.h"

#include <cstddef>
#include <memory>

namespace attune::runtime {

class Nccl {
public:
  /// Loads libnccl.so.2, or the file that ATTUNE_NCCL_LIBRARY names.
  static std::unique_ptr<Nccl> load(Mesh &mesh, Error &error);
  ~Nccl();
  Nccl(const Nccl &) = delete;
  Nccl &operator=(const Nccl &) = delete;

  /// Makes this process's current device one of all ranks'. All ranks call it.
  bool join(Error &error);

  /// All floats of device memory; `stream` is one of the driver's. What fails
  /// is in problem().
  bool allReduce(const void *from, void *to, uint64_t count, void *stream);
  /// `count` of each rank, in their order: of those that share the weights, or
  /// `ofPositions` of those that share the positions of a sequence.
  bool allGather(const void *from, void *to, uint64_t count, bool ofPositions,
                 void *stream);
  const Error &problem() const { return failure; }

  /// Whether a stream that is captured takes exchanges.
  bool canBeCaptured() const { return version >= firstCaptured; }
  /// The least of the numbers that all ranks give.
  int least(int own);

  /// Looks whether other ranks' GPUs answer; false, with the reason, if NCCL
  /// says that they do not or `waited` seconds are too many.
  bool check(double waited, Error &error);

private:
  /// Graphs with NCCL inside came with 2.9; since then the number has two
  /// digits for each part.
  static constexpr int firstCaptured = 20900;
  struct UniqueId {
    char bytes[128];
  };
  using Result = int; ///< 0: success
  using Communicator = struct NcclObject *;
  /// Ranks that exchange something, of which this one is the one at `self`.
  struct Team {
    int count, self;
    int leader; ///< the first one's number among all ranks
    Communicator communicator = nullptr; ///< null: there are no others
  };

  explicit Nccl(Mesh &mesh)
      : mesh(mesh), sharers{mesh.numParts(), mesh.part(),
                            mesh.partOfPositions() * mesh.numParts()},
        positionSharers{mesh.numPartsOfPositions(), mesh.partOfPositions(),
                        mesh.part()} {}
  bool failed(Result result, const char *function, Error &error) const;

  Mesh &mesh;
  Error failure;
  int version = 0;
  Team sharers, positionSharers;
  static constexpr size_t numTeams = 2;
  Team *teams[numTeams] = {&sharers, &positionSharers};
  Result (*getVersion)(int *version) = nullptr;
  Result (*getUniqueId)(UniqueId *id) = nullptr;
  Result (*initRank)(Communicator *communicator, int ranks, UniqueId id,
                     int rank) = nullptr;
  Result (*destroy)(Communicator communicator) = nullptr;
  Result (*getAsyncError)(Communicator communicator, Result *result) = nullptr;
  const char *(*getErrorString)(Result result) = nullptr;
  /// Since 2.13; null before.
  const char *(*getLastError)(Communicator communicator) = nullptr;
  Result (*reduceAll)(const void *from, void *to, size_t count, int type,
                      int operation, Communicator communicator,
                      void *stream) = nullptr;
  Result (*gatherAll)(const void *from, void *to, size_t count, int type,
                      Communicator communicator, void *stream) = nullptr;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_MESH_NCCL_H
