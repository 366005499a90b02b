//===- DecodeSlots.cpp - Caches for several sequences ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "DecodeSlots.h"

#include <algorithm>

namespace attune::runtime {

bool DecodeSlots::hasFree() const {
  return std::any_of(slots.begin(), slots.end(),
                     [](const Slot &slot) { return !slot.isTaken; });
}

/// The number of tokens that need no computing if a slot holds the first
/// `common` tokens of a prompt. The rest is a piece of its own, and the last
/// token is in it.
static size_t countKept(size_t common, size_t prompt) {
  return prompt > fewRows ? std::min(common, prompt - fewRows) : 0;
}

bool DecodeSlots::take(const std::vector<int64_t> &prompt, unsigned &slot,
                       size_t &kept, Error &error) {
  Slot *best = nullptr;
  size_t bestKept = 0;
  for (Slot &each : slots) {
    if (each.isTaken)
      continue;
    size_t most = std::min(each.prompt.size(), prompt.size());
    auto difference = std::mismatch(prompt.begin(), prompt.begin() + most,
                                    each.prompt.begin());
    size_t common = countKept(difference.first - prompt.begin(), prompt.size());
    bool isBetter = !best || common > bestKept ||
                    (common == bestKept && each.lastUse < best->lastUse);
    if (isBetter) {
      best = &each;
      bestKept = common;
    }
  }
  if (!best)
    return error.set(ExitInternalError, "no slot is free");
  slot = static_cast<unsigned>(best - slots.data());
  Session *session = group.open(slot, error);
  if (!session)
    return false;
  // The state of a recurrent layer cannot be taken back.
  Error ignored;
  if (!session->rewind(static_cast<int64_t>(bestKept), ignored)) {
    session->reset();
    bestKept = 0;
  }
  best->prompt.resize(bestKept);
  best->isTaken = true;
  best->lastUse = ++clock;
  kept = bestKept;
  return true;
}

void DecodeSlots::clear(unsigned slot) {
  group.session(slot).reset();
  slots[slot].prompt.clear();
}

bool DecodeSlots::append(unsigned slot, const int64_t *ids, size_t count,
                         Error &error) {
  if (!group.session(slot).step(ids, static_cast<int64_t>(count), error))
    return false;
  Slot &to = slots[slot];
  to.prompt.insert(to.prompt.end(), ids, ids + count);
  return true;
}

int64_t DecodeSlots::countPositions() const {
  int64_t sum = 0;
  for (unsigned i = 0; i < count(); ++i)
    if (const Session *session = group.find(i))
      sum += session->length();
  return sum;
}

} // namespace attune::runtime
