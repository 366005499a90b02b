//===- RowSums.cpp - Sums to which ranks give few rows --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// A token goes through a few experts, so that most ranks have nothing to add to
// its row. Where rows are many, a rank sends each other rank those that it has
// of what that rank adds up: all to all, each message of its own length. It
// begins with a number for each row, its place in the message or -1, so that
// nobody has to be told first how much comes.
//
//===----------------------------------------------------------------------===//

#include "Mesh.h"

#include "attune/Runtime/Model.h"

#include <algorithm>

namespace attune::runtime {

struct Mesh::RowSum {
  Team team;
  const float *input;
  float *dest;
  int64_t rows, columns;
  bool accumulate;
  const int64_t *experts;
  int64_t active, below;
  uint8_t *messages = nullptr; ///< those of all ranks, then the own ones

  /// With one expert a row, or one other rank, it is less to tell everybody
  /// what there is than to tell it somebody, who tells the sum.
  bool sumsAll() const { return team.count == 2 || active == 1; }
  /// Rows that one rank adds up, but the last ones, who have fewer.
  int64_t each() const {
    return sumsAll() ? rows : (rows + team.count - 1) / team.count;
  }
  int64_t beginOf(int peer) const {
    return sumsAll() ? 0 : std::min(peer * each(), rows);
  }
  int64_t countOf(int peer) const {
    return sumsAll() ? rows : std::min(each(), rows - beginOf(peer));
  }
  /// Of the longest message.
  uint64_t slot() const {
    return uint64_t(each()) * (sizeof(int32_t) + columns * sizeof(float));
  }
  int numOutgoing() const { return sumsAll() ? 1 : team.count; }
  uint8_t *incoming(int peer) const { return messages + peer * slot(); }
  uint8_t *outgoing(int peer) const {
    return messages + (team.count + (sumsAll() ? 0 : peer)) * slot();
  }
  /// A message's numbers and rows, if it is for rank `peer`.
  static int32_t *places(uint8_t *message) {
    return reinterpret_cast<int32_t *>(message);
  }
  float *rowsOf(uint8_t *message, int peer) const {
    return reinterpret_cast<float *>(places(message) + countOf(peer));
  }

  bool gives(int64_t row) const {
    const int64_t *numbers = experts + row * active;
    return std::any_of(numbers, numbers + active, [&](int64_t number) {
      return number >= 0 && number < below;
    });
  }
};

void Mesh::packRows(const RowSum &sum) {
  // Where rows go, and how long messages are, is the first thread's to say.
  if (attune_rt_thread() == 0)
    for (int peer = 0; peer < sum.numOutgoing(); ++peer) {
      int32_t *places = sum.places(sum.outgoing(peer)), next = 0;
      int64_t begin = sum.beginOf(peer);
      for (int64_t row = 0; row < sum.countOf(peer); ++row)
        places[row] = sum.gives(begin + row) ? next++ : -1;
    }
  attune_rt_barrier();
  int64_t threads = attune_rt_num_threads();
  for (int64_t row = attune_rt_thread(); row < sum.rows; row += threads) {
    int peer = int(row / sum.each());
    uint8_t *message = sum.outgoing(peer);
    int32_t place = sum.places(message)[row - sum.beginOf(peer)];
    if (place >= 0 && (sum.sumsAll() || peer != sum.team.self))
      std::copy_n(sum.input + row * sum.columns, sum.columns,
                  sum.rowsOf(message, peer) + place * sum.columns);
  }
  attune_rt_barrier();
}

void Mesh::sendRows(const RowSum &sum) {
  const Team &team = sum.team;
  requests.clear();
  peers.clear();
  for (int i = 1; i < team.count && sum.countOf(team.self) > 0; ++i) {
    int peer = (team.self + i) % team.count;
    requests.emplace_back();
    peers.push_back(team.at(peer));
    // At most so much: a message may be shorter.
    engine.receive(sum.incoming(peer), sum.slot(), peers.back(),
                   requests.back());
  }
  for (int i = 1; i < team.count; ++i) {
    int peer = (team.self + i) % team.count;
    int64_t count = sum.countOf(peer);
    if (count <= 0)
      continue;
    const int32_t *places = sum.places(sum.outgoing(peer));
    int64_t given = count - std::count(places, places + count, -1);
    requests.emplace_back();
    peers.push_back(team.at(peer));
    engine.send(places,
                uint64_t(count) * sizeof(int32_t) +
                    uint64_t(given * sum.columns) * sizeof(float),
                peers.back(), requests.back());
  }
  wait(requests, peers, /*idle=*/false);
}

void Mesh::addRows(const RowSum &sum) {
  int self = sum.team.self;
  int64_t threads = attune_rt_num_threads(), columns = sum.columns;
  for (int64_t row = attune_rt_thread(); row < sum.countOf(self);
       row += threads) {
    int64_t at = (sum.beginOf(self) + row) * columns;
    float *out = sum.dest + at;
    bool begun = sum.accumulate;
    for (int peer = 0; peer < sum.team.count; ++peer) {
      uint8_t *message = peer == self ? sum.outgoing(self) : sum.incoming(peer);
      int32_t place = sum.places(message)[row];
      if (place < 0)
        continue;
      const float *in = peer == self
                            ? sum.input + at
                            : sum.rowsOf(message, self) + place * columns;
      if (!begun)
        std::copy_n(in, columns, out);
      else
        for (int64_t i = 0; i < columns; ++i)
          out[i] += in[i];
      begun = true;
    }
    if (!begun)
      std::fill_n(out, columns, 0.0f);
  }
}

void Mesh::allReduceRows(const float *input, float *dest, int64_t rows,
                         int64_t columns, bool accumulate,
                         const int64_t *experts, int64_t active,
                         int64_t below) {
  // A few numbers are sooner sent than looked at.
  if (rows * columns < sumsInShares)
    return allReduce(input, dest, rows * columns, accumulate);
  int64_t atOnce = std::max<int64_t>(sumsAtOnce / columns, 1);
  for (int64_t done = 0; done < rows; done += atOnce) {
    RowSum sum = {sharers(),
                  input + done * columns,
                  dest + done * columns,
                  std::min(rows - done, atOnce),
                  columns,
                  accumulate,
                  experts + done * active,
                  active,
                  below};
    bool leads = attune_rt_thread() == 0;
    // All have read what came before, and have made what goes out.
    attune_rt_barrier();
    if (leads)
      reserve(uint64_t(sum.team.count + sum.numOutgoing()) * sum.slot());
    attune_rt_barrier();
    sum.messages = given.data();
    packRows(sum);
    if (leads)
      sendRows(sum);
    attune_rt_barrier();
    addRows(sum);
    attune_rt_barrier();
    if (leads && !sum.sumsAll())
      gatherShares(sum.team, sum.dest, sum.each() * columns,
                   sum.rows * columns);
  }
  attune_rt_barrier();
}

} // namespace attune::runtime
