//===- Mesh.cpp - Ranks that run one model together -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Mesh.h"

#include "../Clock.h"
#include "attune/Runtime/Model.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <sched.h>
#include <sys/ioctl.h>
#include <unistd.h>

namespace attune::runtime {

static Mesh *only = nullptr;

/// Bytes of one message; MPI counts them in 31 bits.
static constexpr uint64_t messageBytes = uint64_t(1) << 30;

Mesh *Mesh::current() { return only; }

static std::string launchAdvice(const ModelInfo &model) {
  int64_t ranks = model.ranksOfGroup(), groups = model.groups;
  std::string count = std::to_string(ranks * groups), what = "the model is ";
  if (ranks > 1)
    what += "cut for " + std::to_string(ranks) + " ranks";
  if (groups > 1)
    what += (ranks > 1 ? ", of which there are " : "for ") +
            std::to_string(groups) + " groups";
  return what + "; start it with 'mpirun -n " + count + " MODEL VERB ...'";
}

std::unique_ptr<Mesh> Mesh::join(const ModelInfo &model,
                                 const OpenOptions &options, Error &error) {
  const std::string advice = launchAdvice(model);
  int64_t processes = model.ranksOfGroup() * model.groups;
  LaunchedRank launched = LaunchedRank::read();
  if (launched.rank < 0) {
    error.badInput(advice);
    return nullptr;
  }
  if (only) {
    error.set(ExitInternalError, "a process is one rank of one model");
    return nullptr;
  }
  // Without MPI's start if that is possible: it takes a second.
  if (launched.size && launched.size != processes) {
    error.badInput(advice + ", not with " + std::to_string(launched.size));
    return nullptr;
  }
  std::unique_ptr<Mesh> mesh(new Mesh());
  if (!mesh->engine.start(launched, error))
    return nullptr;
  if (mesh->engine.size() != processes) {
    error.badInput(advice + "; " + mesh->engineName() + " counts " +
                   std::to_string(mesh->engine.size()) +
                   " (is it the library that belongs to mpirun?)");
    mesh->engine.finish();
    return nullptr;
  }
  mesh->members = static_cast<int>(model.ranksOfGroup());
  mesh->parts = static_cast<int>(model.ranks);
  mesh->first = mesh->engine.rank() / mesh->members * mesh->members;
  mesh->timeout = options.timeout;
  only = mesh.get();
  return mesh;
}

Mesh::~Mesh() {
  if (only == this)
    only = nullptr;
  engine.finish();
}

std::string Mesh::name() const {
  return "rank " + std::to_string(engine.rank()) + " of " +
         std::to_string(engine.size());
}

/// Waits until the launcher has what was written to stderr: it ends all ranks
/// as soon as one asks for that, and what it has not read by then is lost.
static void waitUntilRead() {
  int unread = 0;
  for (int turn = 0; turn < 100; ++turn) {
    if (ioctl(STDERR_FILENO, FIONREAD, &unread) != 0 || unread == 0)
      break;
    usleep(10000);
  }
  // And has had some time to pass it on.
  usleep(50000);
}

void Mesh::abort(const std::string &why, int code) {
  std::fprintf(stderr, "%s: error: %s\n", name().c_str(), why.c_str());
  std::fflush(stderr);
  waitUntilRead();
  engine.abort(code);
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

void Mesh::wait(std::vector<Mpi::Request> &requests,
                const std::vector<int> &peers, bool idle) {
  double start = 0;
  for (uint64_t turn = 0;; ++turn) {
    bool all = true;
    for (Mpi::Request &request : requests)
      all &= engine.test(request);
    if (all)
      return;
    // Whoever is waited for may need this core.
    if (turn >= 64)
      sched_yield();
    if (turn % 256 != 255)
      continue;
    double time = monotonicTime();
    if (start == 0)
      start = time;
    double waited = time - start;
    if (idle) {
      if (waited > 0.01)
        usleep(waited > 1 ? 1000 : 100);
      continue;
    }
    if (timeout <= 0 || waited < timeout)
      continue;
    std::string whom;
    for (size_t i = 0; i < requests.size(); ++i) {
      std::string peer = "rank " + std::to_string(peers[i]);
      if (!requests[i].done && whom.find(peer) == std::string::npos)
        whom += (whom.empty() ? "" : ", ") + peer;
    }
    char seconds[40];
    std::snprintf(seconds, sizeof seconds, "%g", timeout);
    abort("has waited " + std::string(seconds) + " s for " + whom +
              " (--rank-timeout)",
          ExitResourceLimit);
  }
}

void Mesh::gather(const void *own, uint64_t bytes, void *all) {
  gatherAmong({first, members, 1, rank()}, own, bytes, all);
}

void Mesh::gatherAmong(const Team &team, const void *own, uint64_t bytes,
                       void *all) {
  auto *out = static_cast<uint8_t *>(all);
  auto *in = static_cast<const uint8_t *>(own);
  for (uint64_t done = 0; done < bytes; done += messageBytes) {
    uint64_t some = std::min(bytes - done, messageBytes);
    requests.clear();
    peers.clear();
    for (int peer = 0; peer < team.count; ++peer) {
      if (peer == team.self)
        continue;
      requests.emplace_back();
      peers.push_back(team.at(peer));
      engine.receive(out + uint64_t(peer) * bytes + done, some, peers.back(),
                     requests.back());
    }
    // The nearest ones behind this rank first, so that not all send to one.
    for (int i = 1; i < team.count; ++i) {
      requests.emplace_back();
      peers.push_back(team.at((team.self + i) % team.count));
      engine.send(in + done, some, peers.back(), requests.back());
    }
    wait(requests, peers, /*idle=*/false);
  }
  uint8_t *place = out + uint64_t(team.self) * bytes;
  if (place != in)
    std::memcpy(place, own, bytes);
}

void Mesh::reserve(uint64_t bytes) {
  if (!given.reserve(bytes))
    abort("no memory for what ranks exchange", ExitResourceLimit);
}

void Mesh::collect(int group, std::string &bytes) {
  int sender = group * members;
  auto exchange = [&](void *data, uint64_t count, bool idle) {
    auto *place = static_cast<uint8_t *>(data);
    for (uint64_t done = 0; done < count; done += messageBytes) {
      uint64_t some = std::min(count - done, messageBytes);
      requests.assign(1, Mpi::Request());
      peers.assign(1, engine.rank() ? 0 : sender);
      if (engine.rank())
        engine.send(place + done, some, 0, requests[0]);
      else
        engine.receive(place + done, some, sender, requests[0]);
      wait(requests, peers, idle);
    }
  };
  uint64_t size = bytes.size();
  exchange(&size, sizeof size, /*idle=*/true);
  bytes.resize(size);
  exchange(bytes.data(), size, /*idle=*/false);
}

void Mesh::broadcast(void *data, uint64_t bytes, bool idle) {
  auto *place = static_cast<uint8_t *>(data);
  for (uint64_t done = 0; done < bytes; done += messageBytes) {
    uint64_t count = std::min(bytes - done, messageBytes);
    requests.clear();
    peers.clear();
    for (int peer = rank() ? 0 : 1; peer < (rank() ? 1 : size()); ++peer) {
      requests.emplace_back();
      peers.push_back(first + peer);
      if (rank())
        engine.receive(place + done, count, peers.back(), requests.back());
      else
        engine.send(place + done, count, peers.back(), requests.back());
    }
    wait(requests, peers, idle);
  }
}

bool Mesh::agree(bool good, uint64_t fingerprint, Error &error) {
  struct Word {
    uint64_t good, fingerprint;
  };
  Word own = {good, fingerprint};
  int launched = engine.size();
  std::vector<Word> all(launched);
  gatherAmong({0, launched, 1, engine.rank()}, &own, sizeof own, all.data());
  for (int peer = 0; peer < launched; ++peer)
    if (good && !all[peer].good)
      return error.badInput("rank " + std::to_string(peer) +
                            " could not open the model");
  for (int peer = 0; peer < launched; ++peer)
    if (good && all[peer].fingerprint != all[0].fingerprint)
      return error.badInput("rank " + std::to_string(peer) +
                            " has started another model than rank 0; all "
                            "ranks need the same file");
  return good;
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

namespace {
/// A thread's share of `count` elements, in whole cache lines.
struct Share {
  int64_t begin, end;

  explicit Share(int64_t count) {
    int64_t threads = attune_rt_num_threads(), lines = (count + 15) / 16;
    int64_t each = (lines + threads - 1) / threads * 16;
    begin = std::min(attune_rt_thread() * each, count);
    end = std::min(begin + each, count);
  }
};
} // namespace

/// A thread's share of the sum of what `partOf` has of each rank, in their
/// order.
template <typename PartOf>
static void addParts(Share share, float *out, int ranks, bool accumulate,
                     PartOf partOf) {
  for (int peer = 0; peer < ranks; ++peer) {
    const float *in = partOf(peer);
    if (peer == 0 && !accumulate)
      std::copy(in + share.begin, in + share.end, out + share.begin);
    else
      for (int64_t i = share.begin; i < share.end; ++i)
        out[i] += in[i];
  }
}

void Mesh::gatherShares(const Team &team, float *data, int64_t each,
                        int64_t count) {
  requests.clear();
  peers.clear();
  for (int i = 1; i < team.count; ++i) {
    int peer = (team.self + i) % team.count;
    int64_t begin = std::min(peer * each, count);
    uint64_t some = uint64_t(std::min(begin + each, count) - begin);
    if (!some)
      continue;
    requests.emplace_back();
    peers.push_back(team.at(peer));
    engine.receive(data + begin, some * sizeof(float), peers.back(),
                   requests.back());
  }
  int64_t begin = std::min(team.self * each, count);
  uint64_t own = uint64_t(std::min(begin + each, count) - begin);
  for (int i = 1; i < team.count && own; ++i) {
    requests.emplace_back();
    peers.push_back(team.at((team.self + i) % team.count));
    engine.send(data + begin, own * sizeof(float), peers.back(),
                requests.back());
  }
  wait(requests, peers, /*idle=*/false);
}

void Mesh::reduceShares(const float *input, float *dest, int64_t count,
                        bool accumulate) {
  const Team team = sharers();
  int64_t lines = (count + 15) / 16;
  int64_t each = (lines + team.count - 1) / team.count * 16;
  auto beginOf = [&](int peer) { return std::min(peer * each, count); };
  auto bytesOf = [&](int peer) {
    return uint64_t(beginOf(peer + 1) - beginOf(peer)) * sizeof(float);
  };
  int64_t begin = beginOf(team.self), own = beginOf(team.self + 1) - begin;
  bool leads = attune_rt_thread() == 0;
  attune_rt_barrier();
  if (leads) {
    reserve(uint64_t(each * team.count) * sizeof(float));
    // What all others have of the own part, for all others' parts.
    requests.clear();
    peers.clear();
    auto *all = reinterpret_cast<float *>(given.data());
    for (int peer = 0; peer < team.count; ++peer) {
      if (peer == team.self || !own)
        continue;
      requests.emplace_back();
      peers.push_back(team.at(peer));
      engine.receive(all + peer * each, bytesOf(team.self), peers.back(),
                     requests.back());
    }
    for (int i = 1; i < team.count; ++i) {
      int peer = (team.self + i) % team.count;
      if (!bytesOf(peer))
        continue;
      requests.emplace_back();
      peers.push_back(team.at(peer));
      engine.send(input + beginOf(peer), bytesOf(peer), peers.back(),
                  requests.back());
    }
    wait(requests, peers, /*idle=*/false);
  }
  attune_rt_barrier();
  auto *all = reinterpret_cast<const float *>(given.data());
  addParts(Share(own), dest + begin, team.count, accumulate, [&](int peer) {
    return peer == team.self ? input + begin : all + peer * each;
  });
  attune_rt_barrier();
  if (leads)
    gatherShares(team, dest, each, count);
}

void Mesh::allReduce(const float *input, float *dest, int64_t count,
                     bool accumulate) {
  const Team team = sharers();
  for (int64_t done = 0; done < count; done += sumsAtOnce) {
    int64_t some = std::min(count - done, sumsAtOnce);
    if (team.count > 2 && some >= sumsInShares) {
      reduceShares(input + done, dest + done, some, accumulate);
      continue;
    }
    // All have read what came before, and have made what goes out.
    attune_rt_barrier();
    if (attune_rt_thread() == 0) {
      uint64_t bytes = uint64_t(some) * sizeof(float);
      reserve(bytes * uint64_t(team.count));
      gatherAmong(team, input + done, bytes, given.data());
    }
    attune_rt_barrier();
    auto *all = reinterpret_cast<const float *>(given.data());
    addParts(Share(some), dest + done, team.count, accumulate,
             [&](int peer) { return all + int64_t(peer) * some; });
  }
  attune_rt_barrier();
}

void Mesh::allGather(const float *input, float *dest, int64_t rows,
                     int64_t inputColumns, int64_t columns,
                     int64_t destColumns) {
  if (columns <= 0)
    return;
  const Team team = sharers();
  bool first = attune_rt_thread() == 0;
  int64_t atOnce = std::max<int64_t>(sumsAtOnce / inputColumns, 1);
  for (int64_t done = 0; done < rows; done += atOnce) {
    int64_t some = std::min(rows - done, atOnce);
    attune_rt_barrier();
    if (first) {
      uint64_t bytes = uint64_t(some * inputColumns) * sizeof(float);
      reserve(bytes * uint64_t(team.count));
      gatherAmong(team, input + done * inputColumns, bytes, given.data());
    }
    attune_rt_barrier();
    auto *all = reinterpret_cast<const float *>(given.data());
    int64_t threads = attune_rt_num_threads();
    for (int64_t i = attune_rt_thread(); i < some * team.count; i += threads) {
      int64_t peer = i % team.count, row = i / team.count;
      int64_t begin = peer * columns;
      int64_t count = std::min(columns, destColumns - begin);
      const float *in = all + (peer * some + row) * inputColumns;
      if (count > 0)
        std::copy(in, in + count, dest + (done + row) * destColumns + begin);
    }
  }
  attune_rt_barrier();
}

/// One row of what attention gives over the keys of all ranks. `inputOf` and
/// `lseOf` have a rank's.
template <typename InputOf, typename LseOf>
static void mergeRow(float *out, int64_t width, int ranks, InputOf inputOf,
                     LseOf lseOf) {
  float most = -std::numeric_limits<float>::infinity(), total = 0;
  for (int peer = 0; peer < ranks; ++peer)
    most = std::max(most, lseOf(peer));
  std::fill(out, out + width, 0.0f);
  // No rank has a key that is seen.
  if (most == -std::numeric_limits<float>::infinity())
    return;
  for (int peer = 0; peer < ranks; ++peer) {
    float weight = std::exp(lseOf(peer) - most);
    total += weight;
    const float *in = inputOf(peer);
    for (int64_t i = 0; i < width; ++i)
      out[i] += weight * in[i];
  }
  for (int64_t i = 0; i < width; ++i)
    out[i] /= total;
}

void Mesh::allMerge(const float *input, const float *lse, float *dest,
                    int64_t rows, int64_t width) {
  const Team team = positionSharers();
  int64_t atOnce = std::max<int64_t>(sumsAtOnce / (width + 1), 1);
  for (int64_t done = 0; done < rows; done += atOnce) {
    int64_t some = std::min(rows - done, atOnce), floats = some * (width + 1);
    attune_rt_barrier();
    if (attune_rt_thread() == 0) {
      // Rows and their sums are one message.
      uint64_t bytes = uint64_t(floats) * sizeof(float);
      reserve(bytes * uint64_t(team.count));
      float *own = reinterpret_cast<float *>(given.data()) + team.self * floats;
      std::copy_n(input + done * width, some * width, own);
      std::copy_n(lse + done, some, own + some * width);
      gatherAmong(team, own, bytes, given.data());
    }
    attune_rt_barrier();
    auto *all = reinterpret_cast<const float *>(given.data());
    int64_t threads = attune_rt_num_threads();
    for (int64_t row = attune_rt_thread(); row < some; row += threads)
      mergeRow(
          dest + (done + row) * width, width, team.count,
          [&](int peer) { return all + peer * floats + row * width; },
          [&](int peer) { return all[peer * floats + some * width + row]; });
  }
  attune_rt_barrier();
}

} // namespace attune::runtime

using attune::runtime::Mesh;

int64_t attune_rt_rank(void) {
  Mesh *mesh = Mesh::current();
  return mesh ? mesh->part() : 0;
}

int64_t attune_rt_rank_of_positions(void) {
  Mesh *mesh = Mesh::current();
  return mesh ? mesh->partOfPositions() : 0;
}

void attune_rt_all_reduce(const float *input, float *dest, int64_t count,
                          int64_t accumulate) {
  if (Mesh *mesh = Mesh::current())
    mesh->allReduce(input, dest, count, accumulate != 0);
}

void attune_rt_all_reduce_rows(const float *input, float *dest, int64_t rows,
                               int64_t columns, int64_t accumulate,
                               const int64_t *experts, int64_t active,
                               int64_t below) {
  if (Mesh *mesh = Mesh::current())
    mesh->allReduceRows(input, dest, rows, columns, accumulate != 0, experts,
                        active, below);
}

void attune_rt_all_gather(const float *input, float *dest, int64_t rows,
                          int64_t input_columns, int64_t columns,
                          int64_t dest_columns) {
  if (Mesh *mesh = Mesh::current())
    mesh->allGather(input, dest, rows, input_columns, columns, dest_columns);
}

void attune_rt_all_merge(const float *input, const float *lse, float *dest,
                         int64_t rows, int64_t width) {
  if (Mesh *mesh = Mesh::current())
    mesh->allMerge(input, lse, dest, rows, width);
}
