//===- Races.cpp - Blocks that run together -------------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Blocks of a cooperative launch take turns here, so that what is missing
// between one that writes and one that reads would rarely show. So each byte of
// device memory remembers who wrote it last and who has read it since, and when
// by their own clocks (vector clocks, as in FastTrack). A thread knows of
// another one what it was told at a barrier, or by ld.acquire of what that one,
// or somebody who knew, had released. What is used without knowing is an error,
// in whatever order it happened here. Atomic accesses are none of that.
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <algorithm>

namespace ptx {

static constexpr uint64_t kPage = 1024;

Races::Races(size_t blocks, unsigned threads)
    : threadsOfBlock(threads), now(blocks * threads, 1),
      known(blocks * threads,
            std::make_shared<const Times>(blocks * threads, 0)) {}

size_t Races::numberOf(const Thread &thread) const {
  return (thread.block->number - 1) * threadsOfBlock + thread.order.number;
}

bool Races::knows(size_t thread, const Use &use) const {
  return use.time == 0 || use.thread == thread ||
         (*known[thread])[use.thread] >= use.time;
}

void Races::use(Thread &thread, const Instruction &i, uint64_t address,
                unsigned bytes) {
  size_t self = numberOf(thread);
  Use here = {uint32_t(self), now[self]};
  for (uint64_t at = address; at < address + bytes; ++at) {
    std::vector<Place> &page = pages[at / kPage];
    page.resize(kPage);
    Place &place = page[at % kPage];
    bool good = knows(self, place.write);
    if (i.stores) {
      good &= knows(self, place.read);
      for (const Use &read : place.reads)
        good &= knows(self, read);
      place.write = here;
      place.read = {0, 0};
      place.reads.clear();
    } else if (knows(self, place.read)) {
      place.read = here;
    } else {
      auto mine = std::find_if(
          place.reads.begin(), place.reads.end(),
          [&](const Use &read) { return read.thread == here.thread; });
      if (mine == place.reads.end())
        place.reads.push_back(here);
      else
        *mine = here;
    }
    if (!good)
      return thread.fail(
          std::string(i.stores ? "writes" : "reads") +
          " what another thread uses, without waiting for it, in line " +
          std::to_string(i.line));
  }
}

void Races::learn(size_t thread, const std::shared_ptr<const Times> &told) {
  const Times &old = *known[thread];
  if (&old == told.get() ||
      std::equal(old.begin(), old.end(), told->begin(),
                 [](uint32_t a, uint32_t b) { return a >= b; }))
    return;
  Times merged(old);
  for (size_t i = 0; i < merged.size(); ++i)
    merged[i] = std::max(merged[i], (*told)[i]);
  known[thread] = std::make_shared<const Times>(std::move(merged));
}

void Races::meet(const std::vector<Thread *> &threads) {
  Times all(now.size(), 0);
  const Times *last = nullptr;
  for (const Thread *thread : threads) {
    const Times &one = *known[numberOf(*thread)];
    // Those of the barrier before know the same.
    if (&one != last)
      for (size_t i = 0; i < all.size(); ++i)
        all[i] = std::max(all[i], one[i]);
    last = &one;
  }
  for (const Thread *thread : threads)
    all[numberOf(*thread)] = now[numberOf(*thread)];
  auto shared = std::make_shared<const Times>(std::move(all));
  for (const Thread *thread : threads) {
    size_t number = numberOf(*thread);
    known[number] = shared;
    ++now[number];
  }
}

void Races::release(const Thread &thread, uint64_t address) {
  size_t self = numberOf(thread);
  Times all(*known[self]);
  all[self] = now[self]++;
  std::shared_ptr<const Times> &here = told[address];
  if (here)
    for (size_t i = 0; i < all.size(); ++i)
      all[i] = std::max(all[i], (*here)[i]);
  here = std::make_shared<const Times>(std::move(all));
}

void Races::acquire(const Thread &thread, uint64_t address) {
  auto here = told.find(address);
  if (here != told.end())
    learn(numberOf(thread), here->second);
}

//===----------------------------------------------------------------------===//
// Instructions
//===----------------------------------------------------------------------===//

namespace {
uint64_t addressOf(const Thread &t, const Instruction &i) {
  return t.r[i.s[0]] + uint64_t(i.offset);
}

/// ld.acquire.gpu.global.u32: who finds the same again lets others run.
void loadAcquire(Thread &t, const Instruction &i) {
  uint64_t address = addressOf(t, i);
  const uint8_t *from = reach(t, i, address, 4);
  if (!from)
    return;
  uint32_t value = 0;
  std::memcpy(&value, from, 4);
  set<uint32_t>(t, i.d[0], value);
  if (t.block->races)
    t.block->races->acquire(t, address);
  if (t.lookedAtCounter == t.pc && t.counter == value)
    t.state = State::Yields;
  t.lookedAtCounter = t.pc;
  t.counter = value;
}

template <bool acquires, bool gives> void add(Thread &t, const Instruction &i) {
  uint64_t address = addressOf(t, i);
  uint8_t *at = reach(t, i, address, 4);
  if (!at)
    return;
  if (acquires && t.block->races)
    t.block->races->acquire(t, address);
  uint32_t value = 0;
  std::memcpy(&value, at, 4);
  if (gives)
    set<uint32_t>(t, i.d[0], value);
  value += get<uint32_t>(t, i.s[1]);
  std::memcpy(at, &value, 4);
  if (t.block->races)
    t.block->races->release(t, address);
}

void storeRelaxed(Thread &t, const Instruction &i) {
  if (uint8_t *at = reach(t, i, addressOf(t, i), 4))
    std::memcpy(at, &t.r[i.s[1]], 4);
}
} // namespace

bool chooseAtomic(Instruction &i, const std::vector<std::string> &parts) {
  std::string name;
  for (const std::string &part : parts)
    name += "." + part;
  i.run = name == ".ld.acquire.gpu.global.u32"         ? loadAcquire
          : name == ".red.release.gpu.global.add.u32"  ? add<false, false>
          : name == ".atom.acq_rel.gpu.global.add.u32" ? add<true, true>
          : name == ".st.relaxed.gpu.global.u32"       ? storeRelaxed
                                                       : nullptr;
  if (!i.run)
    return false;
  i.space = Space::Global;
  i.atomic = true;
  // Threads take turns at it.
  i.waits = true;
  return true;
}

} // namespace ptx
