//===- DecodeSlots.h - Caches for several sequences -------------*- C++ -*-===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The scheduler's view of decoding: slots that keep what a sequence has
// computed. Each slot is a session of one group, made when it is first used. A
// round of tokens is one step of the group if the model has the entry for it,
// else a step of each.
//
//===----------------------------------------------------------------------===//

#ifndef ATTUNE_LIB_RUNTIME_SERVE_DECODESLOTS_H
#define ATTUNE_LIB_RUNTIME_SERVE_DECODESLOTS_H

#include "../Generation/Generation.h"
#include "../Generation/SessionGroup.h"

#include "attune/Runtime/CompiledModel.h"

#include <memory>
#include <vector>

namespace attune::runtime {

/// Linear attention adds up its sums in chunks of so many tokens or a part of
/// that, counted from the beginning of a call: pieces that are multiples of it
/// change no bit.
constexpr size_t chunkOfSums = 64;

/// What a slot held, in the host's memory.
struct SavedSlot {
  Buffer memory;
  uint64_t bytes = 0;
  int64_t length = 0;          ///< positions
  std::vector<int64_t> prompt; ///< see DecodeSlots::Slot
};

class DecodeSlots {
public:
  DecodeSlots(CompiledModel &model, unsigned count, int64_t capacity)
      : maxLength(capacity), group(model, count, capacity), slots(count) {}

  unsigned count() const { return static_cast<unsigned>(slots.size()); }
  /// The most positions of a text.
  int64_t capacity() const { return maxLength; }
  /// No more than there is memory for, once the first slot was taken.
  void fitMemory();
  /// See SessionGroup.
  void limitMemory(uint64_t bytes) { group.limitMemory(bytes); }
  bool rehearse(int64_t piece, Error &error) {
    return group.rehearse(piece, error);
  }
  const CachePages *memory() const { return group.memory(); }
  std::string describeMemory() const { return group.describeMemory(); }
  /// Makes room for the first `length` positions of a slot that is taken, so
  /// that there are still `spare` pages: from slots that are not taken, if need
  /// be, which forget what they hold, the one that was used least recently
  /// first. False without an error: those that are taken have all memory.
  bool makeRoom(unsigned slot, int64_t length, uint64_t spare, Error &error);

  /// Puts those that slots have in the place of pictures that look like them,
  /// and so have the same keys.
  void shareEqual(std::vector<PicturePtr> &pictures) const;
  /// Takes a free slot for a prompt of these keys: one that holds nothing but
  /// the prompt's beginning, or else the one that was used least recently,
  /// which then gets a copy of the longest beginning that any slot holds.
  /// `kept` is the number of the prompt's tokens that need no computing. Slots
  /// of another adapter hold nothing of it. It does not see the pictures yet.
  bool take(const std::vector<int64_t> &prompt,
            const std::vector<PicturePtr> &pictures, int64_t adapter,
            unsigned &slot, size_t &kept, Error &error);
  bool hasFree() const;
  /// Gives a slot back; what it holds stays until another sequence needs it.
  void release(unsigned slot) { slots[slot].isTaken = false; }
  /// The same, and memory that it does not use.
  bool giveUp(unsigned slot, Error &error);
  /// Bytes that save() takes; 0: such a slot cannot be saved.
  uint64_t countSaved(unsigned slot) {
    const Session &session = group.session(slot);
    return session.canBeSaved() ? session.countSaved() : 0;
  }
  /// Copies what a slot holds. False without an error: there is no memory.
  bool save(unsigned slot, SavedSlot &to, Error &error);
  /// Lets a slot that was taken for the same text hold that again. It has the
  /// memory, and no more positions than those. If it fails, it is to be
  /// cleared.
  bool restore(unsigned slot, const SavedSlot &from, Error &error);
  /// Forgets what a slot holds, after a failure.
  void clear(unsigned slot);

  /// The same of a prompt whose first `computed` tokens are in a slot that was
  /// taken: others may hold more of it by now. Gives the tokens that the slot
  /// has then.
  size_t adopt(unsigned slot, const std::vector<int64_t> &prompt,
               size_t computed, Error &error);
  /// Lets slot `to` go on from where `from` is. It may fail as makeRoom() does.
  bool fork(unsigned from, unsigned to, Error &error);

  /// The number of tokens that a piece of a prompt, unless it is the last, is a
  /// multiple of.
  size_t pieceUnit(unsigned slot) {
    return group.session(slot).canRewind() ? 1 : chunkOfSums;
  }
  /// Appends a piece of a prompt, whose ids have these keys.
  bool append(unsigned slot, const int64_t *ids, const int64_t *keys,
              size_t count, Error &error);
  /// The same where all logits are wanted, [count, vocabulary], valid until the
  /// next step: of one token at a time unless givesAllLogits(). Null: failed.
  const float *appendAll(unsigned slot, const int64_t *ids, const int64_t *keys,
                         size_t count, Error &error);
  bool givesAllLogits(unsigned slot) { return group.session(slot).canGuess(); }
  /// Whether step() takes several slots.
  bool stepsTogether() const { return group.stepsTogether(); }
  std::string whyAlone() const { return group.whyAlone(); }
  /// Appends tokens that were chosen, `ids[i]` to the slot `members[i]`. What
  /// became of each is in `errors`.
  void step(const std::vector<unsigned> &members,
            const std::vector<int64_t> &ids, std::vector<Error> &errors) {
    group.step(members, ids, errors);
  }
  /// Steps of these slots leave the memory of others where it is.
  bool settle(const std::vector<unsigned> &members, Error &error) {
    return group.settle(members, error);
  }
  /// The session of a slot that is taken.
  Session &session(unsigned slot) { return group.session(slot); }
  /// Positions that slots hold.
  int64_t countPositions() const;

private:
  struct Slot {
    /// Keys of what is in its cache and was computed in pieces of prompts, of
    /// fewRows or more, so that other prompts may use it.
    std::vector<int64_t> prompt;
    std::vector<PicturePtr> pictures; ///< whose numbers are among them
    int64_t adapter = 0;
    bool isTaken = false;
    uint64_t lastUse = 0;
  };
  void noteAppended(unsigned slot, const int64_t *keys, size_t count);
  unsigned numberOf(const Slot &slot) const {
    return static_cast<unsigned>(&slot - slots.data());
  }
  bool forgetOne(Error &error);
  bool findCopyMemory(Slot &from, Slot &to, Error &error);
  Slot *findSource(const std::vector<int64_t> &prompt, int64_t adapter,
                   size_t &kept);

  int64_t maxLength;
  SessionGroup group;
  std::vector<Slot> slots;
  uint64_t clock = 0;
};

} // namespace attune::runtime

#endif // ATTUNE_LIB_RUNTIME_SERVE_DECODESLOTS_H
