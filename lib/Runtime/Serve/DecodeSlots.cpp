//===- DecodeSlots.cpp - Caches for several sequences ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecodeSlots.h"

#include "attune/Runtime/Picture.h"

#include <algorithm>

namespace attune::runtime {

void DecodeSlots::fitMemory() {
  if (memory())
    maxLength =
        std::min(maxLength, static_cast<int64_t>(memory()->mostPositions()));
}

/// Frees the memory of a slot that is not taken; false: there is none.
bool DecodeSlots::forgetOne(Error &error) {
  Slot *oldest = nullptr;
  for (Slot &each : slots) {
    if (!each.isTaken && group.holdsMemory(numberOf(each)) &&
        (!oldest || each.lastUse < oldest->lastUse))
      oldest = &each;
  }
  if (!oldest)
    return false;
  clear(numberOf(*oldest));
  return group.trim(numberOf(*oldest), error);
}

bool DecodeSlots::makeRoom(unsigned slot, int64_t length, uint64_t spare,
                           Error &error) {
  while (memory() && (!group.tryHold(slot, length, error) ||
                      memory()->most() - memory()->used() < spare))
    if (error.code != ExitSuccess || !forgetOne(error))
      return false;
  return true;
}

bool DecodeSlots::hasFree() const {
  return std::any_of(slots.begin(), slots.end(),
                     [](const Slot &slot) { return !slot.isTaken; });
}

/// How many tokens two prompts begin with alike.
static size_t countCommon(const std::vector<int64_t> &held,
                          const std::vector<int64_t> &prompt) {
  size_t most = std::min(held.size(), prompt.size());
  return std::mismatch(prompt.begin(), prompt.begin() + most, held.begin())
             .first -
         prompt.begin();
}

/// The number of tokens that need no computing if a slot holds the first
/// `common` tokens of a prompt. The rest is a piece of its own, and the last
/// token is in it.
static size_t countKept(const ModelInfo &model, size_t common,
                        const std::vector<int64_t> &prompt) {
  return prompt.size() > fewRows
             ? placeToCut(model, prompt,
                          std::min(common, prompt.size() - fewRows),
                          /*after=*/false)
             : 0;
}

/// The slot that holds most of a prompt, taken or not; a free one if it holds
/// as much. Null: none holds any.
DecodeSlots::Slot *DecodeSlots::findSource(const std::vector<int64_t> &prompt,
                                           int64_t adapter, size_t &kept) {
  Slot *source = nullptr;
  kept = 0;
  for (Slot &each : slots) {
    if (each.adapter != adapter)
      continue;
    size_t own =
        countKept(group.info(), countCommon(each.prompt, prompt), prompt);
    // Nobody goes on from what a state or a window has forgotten.
    const Session *session = group.find(numberOf(each));
    if (!session || !session->reaches(static_cast<int64_t>(own)))
      continue;
    if (own > kept || (own == kept && source && source->isTaken && own > 0)) {
      source = &each;
      kept = own;
    }
  }
  return source;
}

void DecodeSlots::shareEqual(std::vector<PicturePtr> &pictures) const {
  auto find = [&](const PicturePtr &picture,
                  const std::vector<PicturePtr> &among) -> PicturePtr {
    for (const PicturePtr &other : among)
      if (other->looksLike(*picture))
        return other;
    return nullptr;
  };
  for (PicturePtr &picture : pictures) {
    PicturePtr same = find(picture, pictures);
    for (size_t i = 0; i < slots.size() && same == picture; ++i)
      if (PicturePtr other = find(picture, slots[i].pictures))
        same = other;
    picture = same;
  }
}

/// Of each cache a page may be copied. False without an error: there is no
/// memory for that.
bool DecodeSlots::findCopyMemory(Slot &from, Slot &to, Error &error) {
  if (!memory() || &from == &to)
    return true;
  bool taken[] = {from.isTaken, to.isTaken};
  from.isTaken = to.isTaken = true;
  bool found = makeRoom(numberOf(to), group.session(numberOf(to)).length(),
                        memory()->numCaches(), error);
  from.isTaken = taken[0];
  to.isTaken = taken[1];
  return found;
}

bool DecodeSlots::take(const std::vector<int64_t> &prompt,
                       const std::vector<PicturePtr> &pictures, int64_t adapter,
                       unsigned &slot, size_t &kept, Error &error) {
  Slot *source = findSource(prompt, adapter, kept), *target = nullptr;
  // What it holds beyond the common beginning is worth another slot.
  bool isFree = source && !source->isTaken;
  if (isFree && countCommon(source->prompt, prompt) == source->prompt.size())
    target = source;
  else
    for (Slot &each : slots)
      if (!each.isTaken && &each != source &&
          (!target || each.lastUse < target->lastUse))
        target = &each;
  if (!target && isFree)
    target = source;
  if (!target)
    return error.set(ExitInternalError, "no slot is free");
  slot = numberOf(*target);
  Session *session = group.open(slot, error);
  if (!session)
    return false;
  // The state of a recurrent layer cannot be taken back.
  Error ignored;
  auto length = static_cast<int64_t>(kept);
  const Session &from = source ? group.session(numberOf(*source)) : *session;
  if (!findCopyMemory(source ? *source : *target, *target, error))
    length = 0;
  if (error.code != ExitSuccess)
    return false;
  if (!session->copyFrom(length > 0 ? from : *session, length, ignored)) {
    session->reset();
    length = 0;
  }
  kept = static_cast<size_t>(length);
  if (!group.trim(slot, error))
    return false;
  target->prompt.assign(prompt.begin(), prompt.begin() + kept);
  target->pictures = pictures;
  target->adapter = adapter;
  session->setAdapter(adapter);
  target->isTaken = true;
  target->lastUse = ++clock;
  return true;
}

size_t DecodeSlots::adopt(unsigned slot, const std::vector<int64_t> &prompt,
                          size_t computed, Error &error) {
  size_t kept = 0;
  Slot *source = findSource(prompt, slots[slot].adapter, kept);
  Session &to = group.session(slot);
  if (kept < computed + fewRows || slots[slot].prompt.size() != computed ||
      !to.canRewind() || !findCopyMemory(*source, slots[slot], error))
    return computed;
  const Session &from = group.session(numberOf(*source));
  if (!to.copyFrom(from, static_cast<int64_t>(kept), error,
                   static_cast<int64_t>(computed)))
    return computed;
  slots[slot].prompt.assign(prompt.begin(), prompt.begin() + kept);
  return kept;
}

bool DecodeSlots::fork(unsigned from, unsigned to, Error &error) {
  Session &source = group.session(from);
  Session &target = group.session(to);
  if (!findCopyMemory(slots[from], slots[to], error) ||
      !target.copyFrom(source, source.length(), error) ||
      !target.see(source.pictures(), error))
    return false;
  slots[to].prompt = slots[from].prompt;
  slots[to].pictures = slots[from].pictures;
  slots[to].adapter = slots[from].adapter;
  return true;
}

bool DecodeSlots::giveUp(unsigned slot, Error &error) {
  release(slot);
  return group.trim(slot, error);
}

bool DecodeSlots::save(unsigned slot, SavedSlot &to, Error &error) {
  Session &session = group.session(slot);
  to.bytes = session.countSaved();
  to.length = session.length();
  to.prompt = slots[slot].prompt;
  return to.memory.reserve(to.bytes) && session.save(to.memory.data(), error);
}

bool DecodeSlots::restore(unsigned slot, const SavedSlot &from, Error &error) {
  Session &session = group.session(slot);
  if (!session.restore(from.memory.data(), from.bytes, error, session.length()))
    return false;
  // Others may have had a longer part of the prompt than it had.
  if (from.prompt.size() > slots[slot].prompt.size())
    slots[slot].prompt = from.prompt;
  return true;
}

void DecodeSlots::clear(unsigned slot) {
  group.session(slot).reset();
  slots[slot].prompt.clear();
  slots[slot].pictures.clear();
}

bool DecodeSlots::append(unsigned slot, const int64_t *ids, const int64_t *keys,
                         size_t count, Error &error) {
  if (!group.session(slot).step(ids, static_cast<int64_t>(count), error))
    return false;
  noteAppended(slot, keys, count);
  return true;
}

const float *DecodeSlots::appendAll(unsigned slot, const int64_t *ids,
                                    const int64_t *keys, size_t count,
                                    Error &error) {
  Session &session = group.session(slot);
  const float *rows = nullptr;
  if (session.canGuess()) {
    rows = group.stepAll(slot, ids, static_cast<int64_t>(count), error);
  } else {
    session.setCandidates(0);
    if (count != 1)
      error.set(ExitInternalError, "a step gives the logits of one token");
    else if (session.step(ids, 1, error))
      rows = session.logits(error);
  }
  if (rows)
    noteAppended(slot, keys, count);
  return rows;
}

/// The slot has got `count` more tokens of a prompt.
void DecodeSlots::noteAppended(unsigned slot, const int64_t *keys,
                               size_t count) {
  std::vector<int64_t> &prompt = slots[slot].prompt;
  auto before = static_cast<size_t>(group.session(slot).length()) - count;
  if (before == prompt.size() && count >= fewRows)
    prompt.insert(prompt.end(), keys, keys + count);
}

int64_t DecodeSlots::countPositions() const {
  int64_t sum = 0;
  for (unsigned i = 0; i < count(); ++i)
    if (const Session *session = group.find(i))
      sum += session->length();
  return sum;
}

} // namespace attune::runtime
