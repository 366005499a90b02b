//===- Mesh.h - Ranks that run one model together ---------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A process of a launch is one rank. All ranks run the same code on their own
// parts of the weights; what they exchange on the way goes through here. Sums
// are made in the order of ranks, each by who needs it, so that all ranks and
// all engines get the same bits.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_MESH_MESH_H
#define ATTUNE_LIB_RUNTIME_MESH_MESH_H

#include "Mpi.h"
#include "attune/Runtime/CompiledModel.h"

#include <memory>
#include <string>
#include <vector>

namespace attune::runtime {

class Mesh {
public:
  /// Joins the ranks of the launch, as many as `model` has: neighbours are a
  /// group that shares one copy of it. A process does so once.
  static std::unique_ptr<Mesh> join(const ModelInfo &model,
                                    const OpenOptions &options, Error &error);
  /// The mesh of this process; null: it has none.
  static Mesh *current();
  ~Mesh();
  Mesh(const Mesh &) = delete;
  Mesh &operator=(const Mesh &) = delete;

  /// Within the group.
  int rank() const { return engine.rank() - first; }
  int size() const { return members; }
  /// Which part of the weights is this rank's, and which part of the positions
  /// of a sequence. Neighbours share weights.
  int part() const { return rank() % parts; }
  int partOfPositions() const { return rank() / parts; }
  int numParts() const { return parts; }
  int numPartsOfPositions() const { return members / parts; }
  int group() const { return first / members; }
  int numGroups() const { return engine.size() / members; }
  const std::string &engineName() const { return engine.name(); }
  /// Seconds to wait for another rank; 0: for ever.
  double patience() const { return timeout; }
  /// "rank 1 of 2", of all that were launched
  std::string name() const;

  /// Compares what ranks have opened. False, on all ranks, if one of them
  /// failed (`error` is set there) or has another `fingerprint`.
  bool agree(bool good, uint64_t fingerprint, Error &error);

  /// Gives `bytes` of every rank to every rank, in the order of ranks.
  void gather(const void *own, uint64_t bytes, void *all);
  /// The first rank's bytes become everybody's. A rank that is `idle` waits as
  /// long as it takes, and gently.
  void broadcast(void *data, uint64_t bytes, bool idle = false);
  /// Gives the first group's first rank the bytes of another group's one, which
  /// calls it as well. The first one waits as long as it takes.
  void collect(int group, std::string &bytes);
  /// Ends all ranks; the message says why.
  [[noreturn]] void abort(const std::string &why, int code);

  /// The collectives of compiled code; every thread of the team calls them.
  void allReduce(const float *input, float *dest, int64_t count,
                 bool accumulate);
  /// A sum of rows of which a rank gives those that one of its `active` numbers
  /// of `experts` is below `below` of; the others are zeros.
  void allReduceRows(const float *input, float *dest, int64_t rows,
                     int64_t columns, bool accumulate, const int64_t *experts,
                     int64_t active, int64_t below);
  void allGather(const float *input, float *dest, int64_t rows,
                 int64_t inputColumns, int64_t columns, int64_t destColumns);
  void allMerge(const float *input, const float *lse, float *dest, int64_t rows,
                int64_t width);

private:
  /// Floats of a sum that are exchanged at a time: 4 MiB a rank, which bounds
  /// the memory for what others give.
  static constexpr int64_t sumsAtOnce = 1 << 20;
  /// From so many on ranks add up a part each: two messages to each other rank
  /// instead of one, and of four ranks half of the bytes. And from so many on
  /// they leave out what is zero.
  static constexpr int64_t sumsInShares = 1 << 16;

  Mesh() = default;
  /// Waits until what was sent and received is done; says for whom if that
  /// takes longer than the timeout.
  void wait(std::vector<Mpi::Request> &requests, const std::vector<int> &peers,
            bool idle);

  /// A sum of so many floats that each rank adds up a part of them and gives
  /// the others that: half as much goes from each of four ranks.
  void reduceShares(const float *input, float *dest, int64_t count,
                    bool accumulate);
  /// Launched ranks of which this one is the one at `self`.
  struct Team {
    int begin, count, stride, self;

    int at(int number) const { return begin + number * stride; }
  };
  /// Those that share the weights with this one, or the positions.
  Team sharers() const { return {first + rank() - part(), parts, 1, part()}; }
  Team positionSharers() const {
    return {first + part(), numPartsOfPositions(), parts, partOfPositions()};
  }
  /// Rows of a sum, `each` of which a rank adds up: what it does.
  struct RowSum;
  void packRows(const RowSum &sum);
  void sendRows(const RowSum &sum);
  void addRows(const RowSum &sum);
  /// Of `count` floats each rank has `each` neighbouring ones, in their order,
  /// and gives them to the others.
  void gatherShares(const Team &team, float *data, int64_t each, int64_t count);
  /// `bytes` of each rank of a team to all of them; `own` may be their place.
  void gatherAmong(const Team &team, const void *own, uint64_t bytes,
                   void *all);
  /// What a collective puts together.
  void reserve(uint64_t bytes);

  Mpi engine;
  int first = 0, members = 1; ///< of the group
  int parts = 1;              ///< of the weights
  double timeout = 0;         ///< seconds; 0: for ever
  std::vector<Mpi::Request> requests;
  std::vector<int> peers;
  /// What ranks gave for a sum.
  Buffer given;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_MESH_MESH_H
