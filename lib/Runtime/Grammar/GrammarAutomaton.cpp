//===- GrammarAutomaton.cpp - Which tokens may come next ------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "GrammarAutomaton.h"

#include <algorithm>

namespace attune::runtime {

static constexpr uint32_t unknown = ~0u;
/// Of states and stacks of one form.
static constexpr size_t mostBytes = size_t(64) << 20;
/// Places that are looked at for the tokens of one state: 0.1 to 0.2 s. Those
/// of a JSON schema take some thousands.
static constexpr size_t mostSteps = size_t(1) << 20;
/// A mask of a large vocabulary has 16 kB.
static constexpr size_t mostMasks = 2048;

TokenTexts::TokenTexts(const Tokenizer &tokenizer)
    : from(tokenizer), numIds(tokenizer.size()) {
  for (int64_t id = 0; id < numIds; ++id) {
    std::string bytes = tokenizer.bytesOf(id);
    if (!bytes.empty() && !tokenizer.isSpecial(id))
      all.push_back({std::move(bytes), id, 0, 0});
  }
  std::sort(all.begin(), all.end(), [](const Entry &a, const Entry &b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.id < b.id;
  });
  places.assign(static_cast<size_t>(numIds), ~size_t(0));
  for (size_t i = 0; i < all.size(); ++i) {
    places[all[i].id] = i;
    if (i == 0)
      continue;
    const std::string &before = all[i - 1].bytes, &own = all[i].bytes;
    size_t most = std::min(before.size(), own.size());
    while (all[i].common < most && before[all[i].common] == own[all[i].common])
      ++all[i].common;
  }
  for (size_t i = all.size(); i-- > 0;) {
    size_t &beyond = all[i].beyond = i + 1;
    while (beyond < all.size() && all[beyond].common >= all[i].common)
      beyond = all[beyond].beyond;
  }
}

GrammarAutomaton::GrammarAutomaton(Grammar given,
                                   std::shared_ptr<const TokenTexts> texts)
    : grammar(std::move(given)), texts(std::move(texts)) {
  for (const auto &alternatives : grammar.rules()) {
    begins.emplace_back();
    for (const Grammar::Sequence &sequence : alternatives) {
      begins.back().push_back(static_cast<uint32_t>(places.size()));
      for (Grammar::Element element : sequence)
        places.push_back(
            {element.isRule ? Place::Kind::Rule : Place::Kind::Byte,
             element.index});
      places.push_back({Place::Kind::End, 0});
    }
  }
  classifyBytes();
  frames.push_back({0, 0});
  intern(StateInfo()); // the dead one
  StateInfo info;
  forgetSeen();
  for (uint32_t begin : begins[grammar.root])
    addPlace({0, begin}, info);
  first = intern(std::move(info));
}

/// Two bytes have the same class if each set has both or none of them.
void GrammarAutomaton::classifyBytes() {
  for (const Grammar::ByteSet &set : grammar.byteSets()) {
    // The class of those in the set that were in each class so far.
    int inside[256];
    size_t sizes[256] = {}, sizesInside[256] = {};
    std::fill(std::begin(inside), std::end(inside), -1);
    for (int byte = 0; byte < 256; ++byte) {
      ++sizes[classes[byte]];
      sizesInside[classes[byte]] += set[byte];
    }
    for (int byte = 0; byte < 256; ++byte) {
      unsigned char before = classes[byte];
      if (!set[byte] || sizes[before] == sizesInside[before])
        continue;
      if (inside[before] < 0)
        inside[before] = static_cast<int>(numClasses++);
      classes[byte] = static_cast<unsigned char>(inside[before]);
    }
  }
}

//===----------------------------------------------------------------------===//
// Numbers of stacks and states
//===----------------------------------------------------------------------===//

static uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15u;
  return hash ^ hash >> 29;
}

/// The slot of what `equal` knows by its number, or a free one.
template <typename Equal>
uint32_t *GrammarAutomaton::find(Index &index, uint64_t hash, Equal equal) {
  size_t mask = index.slots.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask)
    if (index.slots[i] == 0 || equal(index.slots[i] - 1))
      return &index.slots[i];
}

/// Keeps room for another number.
template <typename Hash>
void GrammarAutomaton::grow(Index &index, Hash hashOf) {
  if (++index.count * 2 <= index.slots.size())
    return;
  std::vector<uint32_t> old(std::max<size_t>(64, index.slots.size() * 2));
  old.swap(index.slots);
  for (uint32_t slot : old)
    if (slot)
      *find(index, hashOf(slot - 1), [](uint32_t) { return false; }) = slot;
}

uint32_t GrammarAutomaton::push(uint32_t below, uint32_t place) {
  auto hashOf = [&](uint32_t n) {
    return mix(mix(1, frames[n].below), frames[n].place);
  };
  grow(frameIndex, hashOf);
  uint32_t *slot = find(frameIndex, mix(mix(1, below), place), [&](uint32_t n) {
    return frames[n].below == below && frames[n].place == place;
  });
  if (*slot == 0) {
    frames.push_back({below, place});
    bytes += sizeof(Frame) + 2 * sizeof(uint32_t);
    *slot = static_cast<uint32_t>(frames.size());
  } else {
    --frameIndex.count;
  }
  return *slot - 1;
}

GrammarAutomaton::State GrammarAutomaton::intern(StateInfo info) {
  std::sort(info.threads.begin(), info.threads.end());
  auto hashThreads = [](const StateInfo &state) {
    uint64_t hash = state.isComplete;
    for (Thread thread : state.threads)
      hash = mix(mix(hash, thread.stack), thread.place);
    return hash;
  };
  grow(stateIndex, [&](uint32_t n) { return hashThreads(states[n]); });
  uint32_t *slot = find(stateIndex, hashThreads(info), [&](uint32_t n) {
    return states[n].isComplete == info.isComplete &&
           states[n].threads == info.threads;
  });
  if (*slot == 0) {
    bytes += sizeof(StateInfo) + info.threads.size() * sizeof(Thread) +
             numClasses * sizeof(uint32_t);
    states.push_back(std::move(info));
    *slot = static_cast<uint32_t>(states.size());
  } else {
    --stateIndex.count;
  }
  return *slot - 1;
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

void GrammarAutomaton::forgetSeen() {
  ++round;
  numSeen = 0;
}

bool GrammarAutomaton::isNew(Thread thread) {
  if (numSeen * 2 >= seen.size()) {
    std::vector<Seen> old(std::max<size_t>(64, seen.size() * 2), Seen{{}, 0});
    old.swap(seen);
    numSeen = 0;
    for (const Seen &entry : old)
      if (entry.round == round)
        isNew(entry.thread);
  }
  size_t mask = seen.size() - 1;
  for (size_t i = mix(mix(1, thread.stack), thread.place) & mask;;
       i = (i + 1) & mask) {
    if (seen[i].round != round) {
      seen[i] = {thread, round};
      ++numSeen;
      return true;
    }
    if (seen[i].thread == thread)
      return false;
  }
}

/// Goes on from a place to all bytes that may be read next.
void GrammarAutomaton::addPlace(Thread start, StateInfo &to) {
  std::vector<Thread> work = {start};
  while (!work.empty() && !tooLarge) {
    Thread at = work.back();
    work.pop_back();
    tooLarge = ++steps > mostSteps || bytes > mostBytes;
    if (!isNew(at))
      continue;
    Place place = places[at.place];
    if (place.kind == Place::Kind::Byte) {
      to.threads.push_back(at);
    } else if (place.kind == Place::Kind::End) {
      if (at.stack == 0)
        to.isComplete = true;
      else
        work.push_back({frames[at.stack].below, frames[at.stack].place});
    } else {
      // A rule that stands last needs nothing to come back to.
      bool isLast = places[at.place + 1].kind == Place::Kind::End;
      uint32_t stack = isLast ? at.stack : push(at.stack, at.place + 1);
      for (uint32_t begin : begins[place.index])
        work.push_back({stack, begin});
    }
  }
}

GrammarAutomaton::State GrammarAutomaton::next(State state,
                                               unsigned char byte) {
  if (state == dead || tooLarge)
    return dead;
  if (states[state].successors.empty())
    states[state].successors.assign(numClasses, unknown);
  unsigned char kind = classes[byte];
  if (uint32_t known = states[state].successors[kind]; known != unknown)
    return known;
  StateInfo info;
  forgetSeen();
  for (Thread thread : states[state].threads)
    if (grammar.byteSets()[places[thread.place].index][byte])
      addPlace({thread.stack, thread.place + 1}, info);
  steps += states[state].threads.size();
  if (tooLarge)
    return dead;
  State result = intern(std::move(info));
  states[state].successors[kind] = result;
  return result;
}

GrammarAutomaton::State GrammarAutomaton::next(State state,
                                               std::string_view bytes) {
  for (char byte : bytes)
    state = next(state, static_cast<unsigned char>(byte));
  return state;
}

const std::vector<uint64_t> &GrammarAutomaton::allowed(State state) {
  if (!states[state].mask.empty())
    return states[state].mask;
  steps = 0;
  std::vector<uint64_t> mask((static_cast<size_t>(texts->size()) + 63) / 64 +
                             1);
  // States after each byte of the token before, which tokens share.
  std::vector<State> after = {state};
  const std::vector<TokenTexts::Entry> &entries = texts->entries();
  for (size_t i = 0; i < entries.size();) {
    const TokenTexts::Entry &entry = entries[i++];
    if (after.size() > entry.common + 1)
      after.resize(entry.common + 1);
    while (after.back() != dead && after.size() <= entry.bytes.size())
      after.push_back(next(after.back(), static_cast<unsigned char>(
                                             entry.bytes[after.size() - 1])));
    if (after.back() != dead && after.size() == entry.bytes.size() + 1)
      mask[entry.id / 64] |= uint64_t(1) << entry.id % 64;
    // Others that begin with the bytes that lead nowhere.
    if (after.back() == dead)
      while (i < entries.size() && entries[i].common + 1 >= after.size())
        i = entries[i].beyond;
  }
  std::vector<uint64_t> &kept =
      numMasks < mostMasks ? states[state].mask : lastMask;
  numMasks += numMasks < mostMasks;
  kept = std::move(mask);
  return kept;
}

} // namespace attune::runtime
