//===- Mpi.cpp - MPI, found at run time -----------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mpi.h"

#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <vector>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// LaunchedRank
//===----------------------------------------------------------------------===//

/// The number in a variable of the environment, or `fallback`.
static int numberOf(const char *name, int fallback) {
  const char *text = std::getenv(name);
  if (!text || !*text)
    return fallback;
  char *end = nullptr;
  long number = std::strtol(text, &end, 10);
  return *end || number < 0 || number > 1 << 20 ? fallback
                                                : static_cast<int>(number);
}

LaunchedRank LaunchedRank::read() {
  LaunchedRank launched;
  // Open MPI; MPICH's Hydra; Slurm, whose srun starts programs of either.
  struct {
    const char *rank, *size, *localSize, *localRank;
  } launchers[] = {
      {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
       "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"},
      {"PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"},
      {"PMIX_RANK", "SLURM_NTASKS", "SLURM_NTASKS_PER_NODE", "SLURM_LOCALID"},
  };
  for (const auto &launcher : launchers) {
    launched.rank = numberOf(launcher.rank, -1);
    if (launched.rank < 0)
      continue;
    launched.size = numberOf(launcher.size, 0);
    launched.ranksOfHost = numberOf(launcher.localSize, 0);
    launched.rankOfHost = numberOf(launcher.localRank, -1);
    launched.openMpi = &launcher == &launchers[0];
    break;
  }
  return launched;
}

//===----------------------------------------------------------------------===//
// Mpi
//===----------------------------------------------------------------------===//

/// Any thread may call, one at a time: MPI_THREAD_SERIALIZED, the same number
/// in MPICH and Open MPI.
static constexpr int threadLevel = 2;
static constexpr int tag = 1;

/// Room for the status of a message, of which nothing is read; the largest one
/// has 40 bytes.
struct Status {
  alignas(16) char bytes[64];
};

bool Mpi::load(const LaunchedRank &launched, Error &error) {
  std::vector<const char *> names;
  const char *given = std::getenv("ATTUNE_MPI_LIBRARY");
  if (given && *given)
    names = {given};
  else if (launched.openMpi)
    names = {"libmpi.so.40", "libmpi.so.80", "libmpi.so", "libmpi_abi.so.0"};
  else
    names = {"libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.0",
             "libmpi.so.40"};
  std::string tried;
  for (const char *name : names) {
    // Open MPI's own plugins look for its symbols: global.
    if (void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL))
      return resolve(library, name, error);
    tried += (tried.empty() ? "" : ", ") + std::string(name);
  }
  return error.badInput(
      std::string("no library of ") + (launched.openMpi ? "Open MPI" : "MPI") +
      " was found (" + tried +
      "); install the one that belongs to mpirun, or name it in "
      "ATTUNE_MPI_LIBRARY");
}

bool Mpi::resolve(void *library, const std::string &path, Error &error) {
  struct {
    const char *name;
    void *place;
  } functions[] = {
      {"MPI_Init_thread", &initThread},
      {"MPI_Finalize", &finalize},
      {"MPI_Abort", &abortAll},
      {"MPI_Comm_rank", &commRank},
      {"MPI_Comm_size", &commSize},
      {"MPI_Isend", &isend},
      {"MPI_Irecv", &irecv},
      {"MPI_Test", &testOne},
      {"MPI_Get_library_version", &libraryVersion},
  };
  for (auto &function : functions) {
    void *address = dlsym(library, function.name);
    if (!address)
      return error.badInput(path + ": has no " + function.name +
                            ", so that it is no library of MPI 3 or later");
    *static_cast<void **>(function.place) = address;
  }
  // MPI 5 allows 8192 characters.
  std::vector<char> text(8192 + 1);
  int length = 0;
  libraryVersion(text.data(), &length);
  version.assign(text.data(), std::strcspn(text.data(), ",\n"));
  for (char &c : version)
    c = c == '\t' ? ' ' : c;
  // A library of MPI 5 says whether its handles are the standard's. It may be
  // made of one with handles of its own: those are not looked for then.
  int (*abiVersion)(int *, int *) = nullptr;
  *reinterpret_cast<void **>(&abiVersion) =
      dlsym(library, "MPI_Abi_get_version");
  int major = -1, minor = -1;
  if (abiVersion && abiVersion(&major, &minor) == 0 && major >= 1) {
    world = 0x101;
    byte = 0x247;
    return true;
  }
  if (void *communicator = dlsym(library, "ompi_mpi_comm_world")) {
    world = reinterpret_cast<uintptr_t>(communicator);
    byte = reinterpret_cast<uintptr_t>(dlsym(library, "ompi_mpi_byte"));
    return true;
  }
  for (const char *name : {"MPICH", "Intel", "MVAPICH"})
    if (std::strstr(text.data(), name)) {
      world = 0x44000000;
      byte = 0x4c00010d;
      return true;
    }
  return error.badInput(path + ": '" + version +
                        "' is neither MPICH nor Open MPI, and has no standard "
                        "binary interface");
}

bool Mpi::start(const LaunchedRank &launched, Error &error) {
  if (!load(launched, error))
    return false;
  int given = 0;
  if (initThread(nullptr, nullptr, threadLevel, &given) != 0)
    return error.badInput(version + " could not be started");
  started = true;
  if (given < threadLevel) {
    finish();
    return error.badInput(version + " was built for programs of one thread");
  }
  commRank(world, &ownRank);
  commSize(world, &numRanks);
  return true;
}

void Mpi::finish() {
  if (started)
    finalize();
  started = false;
}

void Mpi::abort(int code) {
  if (started)
    abortAll(world, code);
  std::_Exit(code);
}

void Mpi::send(const void *data, uint64_t bytes, int to, Request &request) {
  request = {0, false};
  isend(data, static_cast<int>(bytes), byte, to, tag, world, &request.handle);
}

void Mpi::receive(void *data, uint64_t bytes, int from, Request &request) {
  request = {0, false};
  irecv(data, static_cast<int>(bytes), byte, from, tag, world, &request.handle);
}

bool Mpi::test(Request &request) {
  if (request.done)
    return true;
  int done = 0;
  Status status;
  testOne(&request.handle, &done, &status);
  request.done = done != 0;
  return request.done;
}

} // namespace attune::runtime
