//===- Execution.cpp - Blocks, warps and memory ---------------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Machine.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace ptx {

bool Memory::holds(uint64_t address, uint64_t bytes) const {
  if (address >= lastBegin && address + bytes <= lastEnd)
    return true;
  auto next = live.upper_bound(address);
  if (next == live.begin())
    return false;
  --next;
  for (auto last = next; address + bytes > last->second;) {
    uint64_t end = last->second;
    if (address >= end || !pages.count(last->first) || ++last == live.end() ||
        last->first != end || !pages.count(end))
      return false;
    if (address + bytes <= last->second)
      return true;
  }
  lastBegin = next->first;
  lastEnd = next->second;
  return true;
}

uint8_t *reach(Thread &thread, const Instruction &i, uint64_t address,
               unsigned bytes) {
  Block &block = *thread.block;
  auto refuse = [&](const char *why) -> uint8_t * {
    char text[200];
    std::snprintf(text, sizeof(text), "%s: %u bytes at 0x%llx, in line %u", why,
                  bytes, static_cast<unsigned long long>(address), i.line);
    thread.fail(text);
    return nullptr;
  };
  // Accesses of vectors are aligned to the whole vector.
  unsigned align = bytes & -bytes;
  if (address % align)
    return refuse("misaligned");
  auto shared = reinterpret_cast<uint64_t>(block.shared.data());
  if (i.space == Space::Shared) {
    if (address + bytes > block.shared.size())
      return refuse("outside shared memory");
    return block.shared.data() + address;
  }
  auto *place = reinterpret_cast<uint8_t *>(address);
  bool local = place >= thread.local &&
               place + bytes <= thread.local + block.kernel->localBytes;
  if (i.space == Space::Local)
    return local ? place : refuse("outside local memory");
  if (i.space == Space::Generic &&
      (local ||
       (address >= shared && address + bytes <= shared + block.shared.size())))
    return place;
  if (!block.memory->holds(address, bytes))
    return refuse("not allocated");
  // Until then only what no kernel writes is there: weights.
  if (block.kernel->dependent && !thread.waited &&
      (i.stores || block.memory->isWritten(address)))
    return refuse("before griddepcontrol.wait");
  if (i.stores)
    block.memory->write(address);
  if (block.races && !i.atomic)
    block.races->use(thread, i, address, bytes);
  return place;
}

/// Runs until the thread is done or waits.
static void runThread(Thread &t) {
  const Instruction *code = t.block->kernel->code.data();
  auto end = uint32_t(t.block->kernel->code.size());
  while (t.pc < end) {
    const Instruction &i = code[t.pc];
    if (i.guard >= 0 && bool(t.r[i.guard] & 1) == i.unless) {
      ++t.pc;
      continue;
    }
    if (i.together != Together::No) {
      t.state = i.together == Together::Block ? State::AtBlock : State::AtWarp;
      return;
    }
    ++t.pc;
    if (!t.order.used.empty())
      useRegisters(t, i);
    i.run(t, i);
    if (t.state != State::Ready)
      return;
  }
  t.state = State::Done;
}

namespace {
/// Stuck: all its threads wait, and `moved` says whether they did before.
enum class Outcome { Done, Failed, Stuck };
} // namespace

/// Lets every thread of a block run.
static Outcome runBlock(std::vector<Thread> &threads, Block &block,
                        bool &everMoved) {
  everMoved = false;
  for (;;) {
    bool moved = false;
    for (Thread &t : threads) {
      if (t.state != State::Ready && t.state != State::Yields)
        continue;
      // Who looks again and sees the same has not moved.
      bool looked = t.state == State::Yields;
      t.state = State::Ready;
      uint32_t before = t.lookedAt;
      runThread(t);
      moved |= t.state != State::Yields || !looked || t.pc != before;
      t.lookedAt = t.pc;
    }
    if (!block.error.empty())
      return Outcome::Failed;
    // Warps whose lanes all stand at one instruction.
    for (size_t first = 0; first < threads.size(); first += 32) {
      size_t last = std::min(first + 32, threads.size());
      Thread *lanes[32] = {};
      size_t waiting = 0;
      uint32_t pc = 0;
      bool same = true;
      for (size_t k = first; k < last; ++k)
        if (threads[k].state == State::AtWarp) {
          same &= waiting == 0 || pc == threads[k].pc;
          pc = threads[k].pc;
          lanes[k - first] = &threads[k];
          ++waiting;
        }
      if (waiting == 0 || !same || waiting != last - first)
        continue;
      const Instruction &i = block.kernel->code[pc];
      for (Thread *lane : lanes)
        if (lane) {
          ++lane->pc;
          lane->state = State::Ready;
          if (!lane->order.used.empty() && !i.product)
            useRegisters(*lane, i);
        }
      i.runWarp(lanes, i);
      moved = true;
    }
    if (!block.error.empty())
      return Outcome::Failed;
    size_t live = 0, waiting[16] = {}, expected[16] = {};
    auto barrierOf = [&](const Thread &t) {
      const Instruction &i = block.kernel->code[t.pc];
      return size_t(t.r[i.s[0]]);
    };
    for (Thread &t : threads) {
      live += t.state != State::Done;
      if (t.state != State::AtBlock)
        continue;
      const Instruction &i = block.kernel->code[t.pc];
      size_t number = barrierOf(t);
      if (number > 15) {
        block.error = "no such barrier";
        return Outcome::Failed;
      }
      ++waiting[number];
      expected[number] = i.s.size() > 1 ? size_t(t.r[i.s[1]]) : 0;
    }
    if (live == 0)
      return Outcome::Done;
    for (size_t number = 0; number < 16; ++number) {
      size_t here = waiting[number] + block.arrived[number];
      if (waiting[number] == 0 ||
          here < (expected[number] ? expected[number] : live))
        continue;
      if (expected[number] && here > expected[number]) {
        block.error = "more threads at a barrier than it expects";
        return Outcome::Failed;
      }
      block.arrived[number] = 0;
      std::vector<Thread *> there;
      for (Thread &t : threads)
        if (t.state == State::AtBlock && barrierOf(t) == number)
          there.push_back(&t);
      for (Thread *t : there) {
        ++t->pc;
        passBarrier(t->order);
        t->state = State::Ready;
      }
      if (block.races)
        block.races->meet(there);
      moved = true;
    }
    everMoved |= moved;
    if (!moved)
      return Outcome::Stuck;
  }
}

namespace {
/// The threads of blocks of a launch, and what they have of their own.
class Runner {
public:
  Runner(const Kernel &kernel, const Launch &launch, const Memory &memory)
      : kernel(kernel), launch(launch),
        count(launch.block[0] * launch.block[1] * launch.block[2]),
        // Threads that never wait may take turns in one set of registers.
        sets(kernel.collective ? count : 1),
        localBytes((kernel.localBytes + 63) / 64 * 64 + 64),
        registers(sets * kernel.registers.size()), local(sets * localBytes / 8),
        threads(sets) {
    block.kernel = &kernel;
    block.memory = &memory;
    block.params = launch.params.data();
    block.threads = threads.data();
  }

  /// Another block begins.
  void begin(uint64_t number) {
    unsigned sharedBytes = kernel.sharedBytes;
    if (kernel.dynamic)
      sharedBytes = kDynamicShared + launch.sharedBytes;
    // What a block leaves in shared memory is nobody's business; start from
    // junk.
    block.shared.assign(sharedBytes, 0xff);
    block.number = number + 1;
    if (kernel.collective)
      block.written.resize((sharedBytes + 1) / 2);
    std::fill(std::begin(block.arrived), std::end(block.arrived), 0u);
    if (kernel.collective)
      for (unsigned k = 0; k < count; ++k)
        prepare(threads[k], k, number, k);
  }

  Outcome go(bool &moved) {
    if (kernel.collective)
      return runBlock(threads, block, moved);
    for (unsigned k = 0; k < count; ++k) {
      prepare(threads[0], 0, block.number - 1, k);
      runThread(threads[0]);
      if (!block.error.empty())
        return Outcome::Failed;
    }
    return Outcome::Done;
  }

  Block block;

private:
  void prepare(Thread &t, size_t set, uint64_t number, unsigned thread) {
    size_t width = kernel.registers.size();
    t = Thread();
    t.block = &block;
    t.order.number = thread;
    if (kernel.warpgroups)
      for (auto *of : {&t.order.used, &t.order.sums, &t.order.held})
        of->assign(width, 0);
    t.r = registers.data() + set * width;
    std::memcpy(t.r, kernel.registers.data(), width * 8);
    auto base =
        reinterpret_cast<uintptr_t>(local.data() + set * localBytes / 8);
    t.local = reinterpret_cast<uint8_t *>((base + 63) / 64 * 64);
    t.r[kernel.localBase] = reinterpret_cast<uint64_t>(t.local);
    const unsigned *b = launch.block, *g = launch.grid;
    const uint64_t values[] = {thread % b[0],
                               thread / b[0] % b[1],
                               thread / b[0] / b[1],
                               b[0],
                               b[1],
                               b[2],
                               number % g[0],
                               number / g[0] % g[1],
                               number / g[0] / g[1],
                               g[0],
                               g[1],
                               g[2],
                               thread % 32,
                               thread / 32};
    int at = 0;
    for (uint64_t value : values)
      t.r[kernel.special[at++]] = value;
  }

  const Kernel &kernel;
  const Launch &launch;
  unsigned count;
  size_t sets;
  unsigned localBytes;
  std::vector<uint64_t> registers, local;
  std::vector<Thread> threads;
};
} // namespace

/// All blocks at once: each goes on until it waits for another one.
static bool runTogether(const Kernel &kernel, const Launch &launch,
                        const Memory &memory, std::string &error) {
  size_t blocks = size_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  Races races(blocks, launch.block[0] * launch.block[1] * launch.block[2]);
  std::vector<std::unique_ptr<Runner>> runners;
  for (size_t number = 0; number < blocks; ++number) {
    runners.push_back(std::make_unique<Runner>(kernel, launch, memory));
    runners.back()->begin(number);
    runners.back()->block.races = &races;
  }
  std::vector<bool> done(blocks);
  for (size_t left = blocks; left > 0;) {
    bool any = false;
    for (size_t number = 0; number < blocks; ++number) {
      if (done[number])
        continue;
      bool moved = false;
      Outcome outcome = runners[number]->go(moved);
      if (outcome == Outcome::Failed) {
        error = runners[number]->block.error;
        return false;
      }
      any |= moved || outcome == Outcome::Done;
      if (outcome == Outcome::Done) {
        done[number] = true;
        --left;
      }
    }
    if (left > 0 && !any) {
      error = "blocks wait for each other for ever";
      return false;
    }
  }
  return true;
}

bool run(const Kernel &kernel, const Launch &launch, const Memory &memory,
         std::string &error) {
  if (launch.together)
    return runTogether(kernel, launch, memory, error);
  Runner runner(kernel, launch, memory);
  uint64_t blocks = uint64_t(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  for (uint64_t number = 0; number < blocks; ++number) {
    runner.begin(number);
    bool moved = false;
    Outcome outcome = runner.go(moved);
    if (outcome == Outcome::Stuck)
      runner.block.error = "threads wait for each other for ever";
    if (outcome != Outcome::Done) {
      error = runner.block.error;
      return false;
    }
  }
  return true;
}

} // namespace ptx
