//===- Mpi.h - MPI, found at run time ---------------------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_MESH_MPI_H
#define ATTUNE_LIB_RUNTIME_MESH_MPI_H

#include "attune/Runtime/Error.h"

#include <cstdint>
#include <string>

namespace attune::runtime {

/// What the launcher tells a process by its environment, before MPI starts.
struct LaunchedRank {
  int rank = -1;       ///< -1: started by no launcher that is known
  int size = 0;        ///< 0: not told
  int ranksOfHost = 0; ///< on this machine; 0: not told
  int rankOfHost = -1; ///< among those; -1: not told
  bool openMpi = false;

  static LaunchedRank read();
};

/// The few functions of MPI that ranks need. Three binary interfaces are known:
/// MPICH's, which others share (Intel MPI, MVAPICH), Open MPI's, and the
/// standard one of MPI 5. They differ in what handles are.
class Mpi {
public:
  /// Loads the library that belongs to the launcher, or the one that
  /// ATTUNE_MPI_LIBRARY names, and starts MPI.
  bool start(const LaunchedRank &launched, Error &error);
  void finish();
  /// Ends all processes of the launch.
  [[noreturn]] void abort(int code);

  int rank() const { return ownRank; }
  int size() const { return numRanks; }
  /// "MPICH 4.0.2", "Open MPI v4.1.4"
  const std::string &name() const { return version; }

  /// A message on its way; `done` once it has left or arrived.
  struct Request {
    uint64_t handle = 0;
    bool done = true;
  };
  /// At most 2^31 - 1 bytes.
  void send(const void *data, uint64_t bytes, int to, Request &request);
  void receive(void *data, uint64_t bytes, int from, Request &request);
  /// Makes progress; returns whether the message is done.
  bool test(Request &request);

private:
  bool load(const LaunchedRank &launched, Error &error);
  bool resolve(void *library, const std::string &path, Error &error);

  int ownRank = 0, numRanks = 1;
  std::string version;
  bool started = false;
  // Handles are 32 bits in MPICH and pointers elsewhere: a register holds both.
  uintptr_t world = 0, byte = 0;
  int (*initThread)(int *, char ***, int, int *) = nullptr;
  int (*finalize)() = nullptr;
  int (*abortAll)(uintptr_t, int) = nullptr;
  int (*commRank)(uintptr_t, int *) = nullptr;
  int (*commSize)(uintptr_t, int *) = nullptr;
  int (*isend)(const void *, int, uintptr_t, int, int, uintptr_t,
               void *) = nullptr;
  int (*irecv)(void *, int, uintptr_t, int, int, uintptr_t, void *) = nullptr;
  int (*testOne)(void *, int *, void *) = nullptr;
  int (*libraryVersion)(char *, int *) = nullptr;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_MESH_MPI_H
