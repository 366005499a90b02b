//===- FakeNccl.cpp - A libnccl.so.2 without GPUs -------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The functions of NCCL that Attune's runtime asks for, between processes of
// one machine whose driver is FakeCuda. Ranks share a file, which the unique id
// names. An exchange is a function of the host in the driver's stream, so that
// it takes its turn there, and becomes part of a graph that is captured.
//
// As in a ring, where each part of a buffer goes its own way round, a sum does
// not begin with rank 0, and which rank it begins with depends on the devices;
// all ranks get the same bits. The environment says what goes wrong:
//
//   FAKE_NCCL_FAIL      the name of a function that fails
//   FAKE_NCCL_LOST      1: another rank is lost, as is found out later
//   FAKE_NCCL_AWAY      1: this rank does not come to the others
//   FAKE_NCCL_VERSION   the version, as in 22105 (that one)
//
//===----------------------------------------------------------------------===//

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <fcntl.h>
#include <memory>
#include <sched.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

namespace {
using Result = int;
enum : Result {
  Success = 0,
  SystemError = 2,
  InvalidArgument = 4,
  InvalidUsage = 5,
  RemoteError = 6,
};
enum : int { TypeFloat = 7, OperationSum = 0 };

struct UniqueId {
  char bytes[128];
};

constexpr int kMostRanks = 16;
/// Floats that ranks exchange at a time.
constexpr size_t kPart = 1 << 16;

/// What ranks share: zeros to begin with.
struct Board {
  std::atomic<int> arrived, round;
  int devices[kMostRanks];
  float parts[kMostRanks][kPart];
};

std::string lastError;

bool fails(const char *function) {
  const char *name = std::getenv("FAKE_NCCL_FAIL");
  if (!name || std::strcmp(name, function) != 0)
    return false;
  lastError = std::string(function) + " was told to fail";
  return true;
}

bool isSet(const char *name) {
  const char *text = std::getenv(name);
  return text && std::atoi(text) != 0;
}

/// A function of the driver that this process has loaded.
template <typename Function> Function *ofDriver(const char *name) {
  static void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  return driver ? reinterpret_cast<Function *>(dlsym(driver, name)) : nullptr;
}

struct Exchange;

struct Communicator {
  int rank, ranks;
  Board *board;
  /// Graphs may start them again.
  std::vector<std::unique_ptr<Exchange>> exchanges;

  void wait() {
    int round = board->round;
    if (++board->arrived == ranks) {
      board->arrived = 0;
      ++board->round;
      return;
    }
    while (board->round == round)
      sched_yield();
  }
};

struct Exchange {
  Communicator *among;
  const float *from;
  float *to;
  size_t count;
  bool sums;

  void run() {
    for (size_t done = 0; done < count; done += kPart) {
      size_t some = std::min(count - done, kPart);
      auto &parts = among->board->parts;
      std::copy(from + done, from + done + some, parts[among->rank]);
      among->wait();
      for (int rank = 0; rank < among->ranks && !sums; ++rank)
        std::copy(parts[rank], parts[rank] + some,
                  to + size_t(rank) * count + done);
      for (size_t i = 0; i < some && sums; ++i)
        to[done + i] = sum(i);
      among->wait();
    }
  }

  float sum(size_t i) const {
    auto &parts = among->board->parts;
    int ranks = among->ranks, device = among->board->devices[0];
    int first = int(i / 64 + 1 + size_t(device)) % ranks;
    float total = parts[first][i];
    for (int next = 1; next < ranks; ++next)
      total += parts[(first + next) % ranks][i];
    return total;
  }
};

Result start(Exchange exchange, void *stream) {
  using Launch = int(void *, void (*)(void *), void *);
  auto *launch = ofDriver<Launch>("cuLaunchHostFunc");
  if (!launch)
    return SystemError;
  auto &kept = exchange.among->exchanges;
  kept.push_back(std::make_unique<Exchange>(exchange));
  auto run = [](void *data) { static_cast<Exchange *>(data)->run(); };
  return launch(stream, run, kept.back().get()) == 0 ? Success : SystemError;
}

/// The board in the file that the id names.
Board *open(const UniqueId &id) {
  int file = ::open(id.bytes, O_RDWR | O_CLOEXEC);
  if (file < 0)
    return nullptr;
  void *memory =
      mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  return memory == MAP_FAILED ? nullptr : static_cast<Board *>(memory);
}

/// Two ranks on one GPU would wait for each other there.
bool findDuplicate(const Communicator &own) {
  for (int other = 0; other < own.ranks; ++other) {
    int device = own.board->devices[own.rank];
    if (other == own.rank || own.board->devices[other] != device)
      continue;
    char text[120];
    std::snprintf(text, sizeof text,
                  "Duplicate GPU detected : rank %d and rank %d both on CUDA "
                  "device %x",
                  own.rank, other, (device + 1) << 12);
    lastError = text;
    return true;
  }
  return false;
}
} // namespace

extern "C" {

Result ncclGetVersion(int *version) {
  const char *text = std::getenv("FAKE_NCCL_VERSION");
  *version = text ? std::atoi(text) : 22105;
  return Success;
}

Result ncclGetUniqueId(UniqueId *id) {
  if (fails("ncclGetUniqueId"))
    return SystemError;
  std::strcpy(id->bytes, "/tmp/fake-nccl-XXXXXX");
  int file = mkstemp(id->bytes);
  if (file < 0 || ftruncate(file, sizeof(Board)) != 0)
    return SystemError;
  close(file);
  return Success;
}

Result ncclCommInitRank(Communicator **made, int ranks, UniqueId id, int rank) {
  if (fails("ncclCommInitRank"))
    return SystemError;
  auto *getDevice = ofDriver<int(int *)>("cuCtxGetDevice");
  Board *board = open(id);
  if (!board || !getDevice || ranks > kMostRanks)
    return SystemError;
  std::unique_ptr<Communicator> own(new Communicator{rank, ranks, board, {}});
  getDevice(&board->devices[rank]);
  while (isSet("FAKE_NCCL_AWAY"))
    pause();
  own->wait();
  if (rank == 0)
    unlink(id.bytes);
  if (!isSet("NCCL_MULTI_RANK_GPU_ENABLE") && findDuplicate(*own))
    return InvalidUsage;
  *made = own.release();
  return Success;
}

Result ncclCommDestroy(Communicator *own) {
  munmap(own->board, sizeof(Board));
  delete own;
  return Success;
}

Result ncclCommGetAsyncError(Communicator *, Result *result) {
  *result = isSet("FAKE_NCCL_LOST") ? RemoteError : Success;
  return Success;
}

const char *ncclGetErrorString(Result result) {
  switch (result) {
  case SystemError:
    return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
  case InvalidUsage:
    return "invalid usage (run with NCCL_DEBUG=WARN for details)";
  case RemoteError:
    return "remote process exited or there was a network error";
  default:
    return "unknown result code";
  }
}

const char *ncclGetLastError(Communicator *) { return lastError.c_str(); }

Result ncclAllReduce(const void *from, void *to, size_t count, int type,
                     int operation, Communicator *among, void *stream) {
  if (fails("ncclAllReduce"))
    return SystemError;
  if (type != TypeFloat || operation != OperationSum)
    return InvalidArgument;
  return start({among, static_cast<const float *>(from),
                static_cast<float *>(to), count, true},
               stream);
}

Result ncclAllGather(const void *from, void *to, size_t count, int type,
                     Communicator *among, void *stream) {
  if (fails("ncclAllGather"))
    return SystemError;
  if (type != TypeFloat)
    return InvalidArgument;
  return start({among, static_cast<const float *>(from),
                static_cast<float *>(to), count, false},
               stream);
}

} // extern "C"
