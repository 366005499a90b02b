//===- Nccl.cpp - What GPUs of several ranks exchange ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Nccl.h"

#include "../MutexLock.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dlfcn.h>
#include <pthread.h>
#include <vector>

namespace attune::runtime {

static constexpr int typeFloat = 7, operationSum = 0;
/// As of two ranks on one GPU.
static constexpr int invalidUsage = 5;

static std::string secondsOf(const Mesh &mesh) {
  char seconds[40];
  std::snprintf(seconds, sizeof seconds, "%g", mesh.patience());
  return seconds;
}

std::unique_ptr<Nccl> Nccl::load(Mesh &mesh, Error &error) {
  std::unique_ptr<Nccl> nccl(new Nccl(mesh));
  const char *given = std::getenv("ATTUNE_NCCL_LIBRARY");
  const char *path = given && *given ? given : "libnccl.so.2";
  // It stays open: its threads may run until the process ends.
  void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    const char *why = dlerror();
    error.badInput("ranks on GPUs need NVIDIA's library NCCL, which was not "
                   "found (" +
                   std::string(why ? why : path) +
                   "); install libnccl2, or name the library in "
                   "ATTUNE_NCCL_LIBRARY");
    return nullptr;
  }
  struct {
    const char *name;
    void *place;
  } functions[] = {
      {"ncclGetVersion", &nccl->getVersion},
      {"ncclGetUniqueId", &nccl->getUniqueId},
      {"ncclCommInitRank", &nccl->initRank},
      {"ncclCommDestroy", &nccl->destroy},
      {"ncclCommGetAsyncError", &nccl->getAsyncError},
      {"ncclGetErrorString", &nccl->getErrorString},
      {"ncclAllReduce", &nccl->reduceAll},
      {"ncclAllGather", &nccl->gatherAll},
  };
  for (auto &function : functions) {
    void *address = dlsym(library, function.name);
    if (!address) {
      error.badInput(std::string(path) + ": has no " + function.name +
                     ", so that it is no library of NCCL 2.4 or later");
      return nullptr;
    }
    *static_cast<void **>(function.place) = address;
  }
  *reinterpret_cast<void **>(&nccl->getLastError) =
      dlsym(library, "ncclGetLastError");
  nccl->getVersion(&nccl->version);
  return nccl;
}

Nccl::~Nccl() {
  for (Team *team : teams)
    if (team->communicator)
      destroy(team->communicator);
}

bool Nccl::failed(Result result, const char *function, Error &error) const {
  if (result == 0)
    return false;
  const char *text = getErrorString(result);
  std::string why = text ? text : std::to_string(result);
  // What it would write into its log, as "Duplicate GPU detected: ...".
  const char *last = getLastError ? getLastError(nullptr) : nullptr;
  if (last && *last)
    why += ": " + std::string(last, std::strcspn(last, "\n"));
  error.set(result == invalidUsage ? ExitBadInput : ExitInternalError,
            std::string("NCCL failed in ") + function + ": " + why);
  return true;
}

namespace {
/// Ends all ranks if it lives longer than they are told to wait: NCCL itself
/// waits without an end for GPUs that do not come.
class Patience {
public:
  explicit Patience(Mesh &mesh) : mesh(mesh) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    isWatching = mesh.patience() > 0 &&
                 pthread_create(&thread, nullptr, watch, this) == 0;
  }
  ~Patience() {
    if (isWatching) {
      {
        MutexLock lock(mutex);
        isOver = true;
        pthread_cond_signal(&changed);
      }
      pthread_join(thread, nullptr);
    }
    pthread_cond_destroy(&changed);
  }
  Patience(const Patience &) = delete;
  Patience &operator=(const Patience &) = delete;

private:
  static void *watch(void *self) {
    static_cast<Patience *>(self)->wait();
    return nullptr;
  }

  void wait() {
    timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    double seconds =
        double(end.tv_sec) + double(end.tv_nsec) * 1e-9 + mesh.patience();
    end.tv_sec = time_t(seconds);
    end.tv_nsec = long((seconds - double(end.tv_sec)) * 1e9);
    MutexLock lock(mutex);
    int result = 0;
    while (!isOver && result == 0)
      result = pthread_cond_timedwait(&changed, &mutex, &end);
    if (!isOver)
      mesh.abort("has waited " + secondsOf(mesh) +
                     " s for the GPUs of all ranks to find each other "
                     "(--rank-timeout)",
                 ExitResourceLimit);
  }

  Mesh &mesh;
  pthread_t thread = {};
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t changed;
  bool isWatching = false, isOver = false;
};
} // namespace

bool Nccl::join(Error &error) {
  // A team's first rank names it.
  struct Names {
    UniqueId ids[numTeams];
    Result result;
  };
  Names own = {};
  for (size_t i = 0; i < numTeams && own.result == 0; ++i)
    if (teams[i]->count > 1 && teams[i]->self == 0)
      own.result = getUniqueId(&own.ids[i]);
  std::vector<Names> all(static_cast<size_t>(mesh.size()));
  mesh.gather(&own, sizeof own, all.data());
  if (failed(own.result, "ncclGetUniqueId", error))
    return false;
  for (size_t rank = 0; rank < all.size(); ++rank)
    if (all[rank].result != 0)
      return error.set(ExitInternalError, "rank " + std::to_string(rank) +
                                              " could not start NCCL");
  Patience patience(mesh);
  for (size_t i = 0; i < numTeams; ++i) {
    Team &team = *teams[i];
    if (team.count > 1 &&
        failed(initRank(&team.communicator, team.count,
                        all[static_cast<size_t>(team.leader)].ids[i],
                        team.self),
               "ncclCommInitRank", error))
      return false;
  }
  return true;
}

bool Nccl::allReduce(const void *from, void *to, uint64_t count, void *stream) {
  return !failed(reduceAll(from, to, count, typeFloat, operationSum,
                           sharers.communicator, stream),
                 "ncclAllReduce", failure);
}

bool Nccl::allGather(const void *from, void *to, uint64_t count,
                     bool ofPositions, void *stream) {
  const Team &team = ofPositions ? positionSharers : sharers;
  return !failed(
      gatherAll(from, to, count, typeFloat, team.communicator, stream),
      "ncclAllGather", failure);
}

int Nccl::least(int own) {
  std::vector<int> all(static_cast<size_t>(mesh.size()));
  mesh.gather(&own, sizeof own, all.data());
  return *std::min_element(all.begin(), all.end());
}

bool Nccl::check(double waited, Error &error) {
  for (const Team *team : teams) {
    Result result = 0;
    Result asked =
        team->communicator ? getAsyncError(team->communicator, &result) : 0;
    if (failed(asked ? asked : result, "an exchange of ranks", error))
      return false;
  }
  if (mesh.patience() <= 0 || waited < mesh.patience())
    return true;
  return error.set(ExitResourceLimit,
                   "has waited " + secondsOf(mesh) +
                       " s for the GPU and what others send it "
                       "(--rank-timeout)");
}

} // namespace attune::runtime
