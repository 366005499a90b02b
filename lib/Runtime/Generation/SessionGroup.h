//===- SessionGroup.h - Sequences that are decoded together -----*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Sessions of one row each, whose next tokens are computed in one step if the
// model has the entry `decode_batch`: weights are read once for all of them.
//
// The caches of all sessions lie side by side: keys and values [sessions,
// layers, heads, capacity, width], states of recurrent layers [sessions,
// layers,
// ...]. Each one's is what `decode` takes, for prompts and single steps; the
// first ones together are what `decode_batch` takes. So a step first brings its
// sessions to the front, by swapping what they hold with the others. That
// happens when a sequence begins or ends, not from step to step.
//
// On a CPU the system gives memory to what is touched. On a GPU the group maps
// pages of it to caches with positions outside, as sequences grow: bringing a
// session to the front exchanges what is mapped.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_GENERATION_SESSIONGROUP_H
#define ATTUNE_LIB_RUNTIME_GENERATION_SESSIONGROUP_H

#include "CachePages.h"

#include "attune/Runtime/CompiledModel.h"

#include <memory>
#include <string>
#include <vector>

namespace attune::runtime {

class CudaPages;

class SessionGroup {
public:
  /// Room for `count` sessions of `capacity` positions.
  SessionGroup(CompiledModel &model, unsigned count, int64_t capacity);
  const ModelInfo &info() const { return model.info(); }
  ~SessionGroup();

  /// Makes session `number`, if it is not there yet; null: failed. A session
  /// stays where it is in memory.
  Session *open(unsigned number, Error &error);
  /// The session `number`, which was made.
  Session &session(unsigned number) { return *sessions[number]; }
  /// Null if it was not made.
  const Session *find(unsigned number) const { return sessions[number].get(); }
  unsigned count() const { return static_cast<unsigned>(sessions.size()); }

  /// Whether step() can take more than one session.
  bool stepsTogether() const { return together != nullptr; }
  /// If not, the reason: "it has ...".
  std::string whyAlone() const;
  /// Appends `ids[i]` to the session `members[i]`, different ones, and computes
  /// the logits of each: in one step, or in one for each where that cannot be.
  /// `errors[i]` says what became of it. Where that is an error, the session is
  /// what it was before, or empty if the model had changed a state by then.
  void step(const std::vector<unsigned> &members,
            const std::vector<int64_t> &ids, std::vector<Error> &errors);
  /// The same; false, with the first error, if any of them failed.
  bool step(const std::vector<unsigned> &members,
            const std::vector<int64_t> &ids, Error &error);
  /// Session::stepAll() of a session that can guess, in memory that all share;
  /// the session's logits() are the last ones then.
  const float *stepAll(unsigned number, const int64_t *ids, int64_t count,
                       Error &error);
  /// From here on, steps of these sessions or of some of them move no other
  /// session, until a step takes others.
  bool settle(const std::vector<unsigned> &members, Error &error) {
    return !together || members.size() < 2 || bringToFront(members, error);
  }

  /// On a GPU: no more than so many bytes for what grows with texts; 0, as at
  /// first: what is free when the first session is made, but a twentieth of the
  /// GPU's memory. Before that.
  void limitMemory(uint64_t bytes) { memoryLimit = bytes; }
  /// On a GPU: makes all sessions, and takes the memory for intermediate
  /// results of the longest calls, appending `piece` tokens or a token to each,
  /// so that none needs more later. What may grow is what is left then. What an
  /// encoder needs is not foreseen.
  bool rehearse(int64_t piece, Error &error);
  /// How memory is given to what grows, once there is a session; null: all of
  /// it is there from then on, or the system gives it.
  const CachePages *memory() const { return pages.get(); }
  /// The same for people, once there is a session; empty: there is nothing to
  /// say.
  std::string describeMemory() const;
  /// Makes room for the first `length` positions of a session, of which those
  /// behind its end will be written. False without an error: memory is used up.
  bool tryHold(unsigned number, int64_t length, Error &error);
  /// The same, but that is an error.
  bool hold(unsigned number, int64_t length, Error &error);
  /// Lets session `to` have the memory of the first `length` positions of
  /// `from`, which it will not write. Fails as hold() does.
  bool share(unsigned to, unsigned from, int64_t length, Error &error);
  /// Whether a session has memory that trim() could give back.
  bool holdsMemory(unsigned number) const {
    return pages && pages->holds(rowOf[number]);
  }
  /// Takes back memory that a session does not use.
  bool trim(unsigned number, Error &error);

private:
  /// The memory of one of the model's caches, for all sessions.
  struct Cache {
    ModelMemory data;
    uint8_t *base = nullptr; ///< `data`, or addresses that pages are mapped to
    uint64_t bytes = 0;      ///< of a session
    bool paged = false;
  };
  static bool isPaged(const ArgInfo &arg);
  bool preparePages(Error &error);
  bool addPages(Error &error);
  uint64_t bytesForPages() const;
  bool checkPages(Error &error) const;
  bool rehearseTogether(int64_t rows, Error &error);
  bool trimAll(Error &error);
  bool setUsedUp(Error &error) const;
  bool reserveCaches(Error &error);
  void place(unsigned number);
  bool swapRows(unsigned row, unsigned other, Error &error);
  bool bringToFront(const std::vector<unsigned> &members, Error &error);
  bool findRoom(unsigned number, Error &error);
  bool stepTogether(const std::vector<unsigned> &members,
                    const std::vector<int64_t> &ids, Error &error);
  bool bindStep(int64_t rows, std::vector<int64_t> adapters, Error &error);
  bool bindRings(const Session &any, Error &error);
  bool bindTaken(Error &error);
  int64_t lengthOf(unsigned number) const {
    return sessions[number] ? sessions[number]->length() : 0;
  }

  CompiledModel &model;
  int64_t capacity;
  std::vector<std::unique_ptr<Session>> sessions;
  Buffer allLogits;                     ///< of stepAll()
  std::unique_ptr<Invocation> together; ///< null: one session at a time
  std::vector<Cache> caches;
  int64_t room; ///< of caches of all positions: `capacity`, in whole pages
  uint64_t memoryLimit = 0;
  std::unique_ptr<CudaPages> source; ///< null: pages cannot be mapped
  std::unique_ptr<CachePages> pages;
  /// The row of each session in the caches, and the session of each row.
  std::vector<unsigned> rowOf, sessionAt;
  std::vector<int64_t> idsOfRows, lengthsOfRows, takenOfRows, adapterOfRows;
  std::vector<std::vector<int64_t>> heldOfRows; ///< of each ring
  Buffer logits;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_GENERATION_SESSIONGROUP_H
