//===- ThreadTeam.cpp - The threads that run a model ----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/ThreadTeam.h"
#include "attune/Runtime/Model.h"

#include "Clock.h"
#include "StepPace.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csetjmp>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <vector>

namespace attune::runtime {

//===----------------------------------------------------------------------===//
// Waiting
//===----------------------------------------------------------------------===//

static inline void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  __asm__ volatile("isb" ::: "memory");
#endif
}

/// More are a mistake, and each takes megabytes of address space.
static constexpr unsigned maxThreads = 1024;

/// Iterations of spinning before a thread looks whether others want its core.
/// Each thread finds out for itself how many are worth it: spinning in vain
/// halves their number, success doubles them.
static constexpr unsigned mostSpins = 1024, leastSpins = 32;
static thread_local unsigned spinTurns = mostSpins;
/// After that it yields, which is nearly as fast while nobody else wants the
/// core, or sleeps until it is woken. A yield that takes longer than this gave
/// the core to another program; it can cost a time slice of milliseconds, and
/// a step has hundreds of barriers. Whoever waits for longer than
/// `longestYielding` loses little by being woken.
static constexpr double longYield = 50e-6, longestYielding = 1e-3;
/// Waits without a yield after one that was long.
static constexpr unsigned waitsWithoutYield = 256;
static thread_local unsigned sleepsLeft = 0;

static void futexWait(std::atomic<uint32_t> &word, uint32_t old) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAIT_PRIVATE,
          old, nullptr, nullptr, 0);
}

static void futexWakeAll(std::atomic<uint32_t> &word) {
  syscall(SYS_futex, reinterpret_cast<uint32_t *>(&word), FUTEX_WAKE_PRIVATE,
          INT_MAX, nullptr, nullptr, 0);
}

namespace {
/// A word that threads wait for. Whoever changes it wakes those that sleep.
struct Signal {
  std::atomic<uint32_t> word{0};
  std::atomic<uint32_t> sleepers{0};

  uint32_t get() const { return word.load(std::memory_order_acquire); }
  void raise() {
    word.fetch_add(1); // before the sleepers are looked at
    if (sleepers.load())
      futexWakeAll(word);
  }
  /// For a word that one thread alone writes.
  void set(uint32_t value) {
    word.store(value); // as above
    if (sleepers.load())
      futexWakeAll(word);
  }
  void sleepWhile(uint32_t old) {
    sleepers.fetch_add(1);
    while (word.load() == old)
      futexWait(word, old);
    sleepers.fetch_sub(1);
  }
  /// True: this thread slept.
  bool waitWhile(uint32_t old, bool spin);
};
} // namespace

/// Waits until the word is no longer `old`. `spin`: there is a core for every
/// thread of the team.
bool Signal::waitWhile(uint32_t old, bool spin) {
  for (unsigned i = spin ? spinTurns : 0; i; --i) {
    if (get() != old) {
      spinTurns = std::min(spinTurns * 2, mostSpins);
      return false;
    }
    relax();
  }
  spinTurns = std::max(spinTurns / 2, leastSpins);
  if (sleepsLeft) {
    --sleepsLeft;
  } else if (spin) {
    for (double start = monotonicTime(), before = start;;) {
      if (get() != old)
        return false;
      sched_yield();
      double now = monotonicTime();
      if (now - before > longYield)
        sleepsLeft = waitsWithoutYield;
      if (sleepsLeft || now - start > longestYielding)
        break;
      before = now;
    }
  }
  sleepWhile(old);
  return true;
}

//===----------------------------------------------------------------------===//
// The arena
//===----------------------------------------------------------------------===//

namespace {
struct Arena {
  uint8_t *base = nullptr;
  uint64_t reserved = 0;

  bool reserve(uint64_t bytes) {
    // Where even address space is rationed, live with less.
    for (; bytes >= (uint64_t(1) << 20); bytes /= 2) {
      void *range = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (range == MAP_FAILED)
        continue;
      base = static_cast<uint8_t *>(range);
      reserved = bytes;
      madvise(range, bytes, MADV_HUGEPAGE);
      return true;
    }
    return false;
  }
  void release() {
    if (base)
      munmap(base, reserved);
    base = nullptr;
  }
};
} // namespace

uint64_t physicalMemory() {
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 ? uint64_t(pages) * uint64_t(size)
                               : uint64_t(1) << 34;
}

//===----------------------------------------------------------------------===//
// The team
//===----------------------------------------------------------------------===//

struct ThreadTeam::State {
  unsigned size = 1;
  unsigned active = 1; // the first of them, which the task is for
  StepPace pace{1};
  std::atomic<uint32_t> sleeps{0}; // at barriers, of the task so far
  bool spin = false;               // there is a core for every thread
  Arena arena;
  uint64_t frameLimit = 0;
  uint64_t highWater = 0; // written by thread 0 only

  // One word per line: spinning on one must not slow the others.
  // A new value is a new task. Its last bits are how many threads it is for:
  // the others never look at it.
  alignas(64) Signal epoch;
  static constexpr uint32_t epochSteps = 2 * maxThreads;
  alignas(64) Signal more; // a new value: a task may be for more threads
  alignas(64) std::atomic<uint32_t> working{0}; // workers not yet done
  alignas(64) Signal allDone;                   // a new value: none is working
  alignas(64) std::atomic<uint32_t> arrived{0}; // at the barrier
  alignas(64) Signal phase;                     // of the barrier

  /// How many of a thread's own iterations were claimed, by anybody, and since
  /// which barrier that counts: count + phase * 2^32.
  struct alignas(64) Claims {
    std::atomic<uint64_t> word{0};
    bool take(uint32_t phase, uint64_t limit, uint64_t &number);
  };
  std::vector<Claims> claims;

  // Orders for workers that wait in a pause: a new value is either a task to
  // run meanwhile, or the pause is over.
  alignas(64) Signal orders;
  bool resumes = false;
  Task pause = nullptr; // null: barriers are not asked
  void *pauseContext = nullptr;

  alignas(64) Task task = nullptr; // null: go home
  void *context = nullptr;
  int callersCore = -1;            // where thread 0 began the task
  std::atomic<uint64_t> wanted{0}; // frame bytes that were over the limit

  std::vector<pthread_t> workers;
  pid_t process = getpid(); // a child of fork has none of the workers
  pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

  void leaveCallersCore();
  void workerLoop(unsigned index);
  void execute(unsigned index, uint64_t top, bool isPaused);
  void start(Task newTask, void *newContext);
  void setEpoch(unsigned threads);
  void leave();
  uint64_t finish();
  void pauseHere();
};

namespace {
struct ThreadContext {
  ThreadTeam::State *team;
  unsigned index;
  uint64_t top; // bytes of frames in use
  jmp_buf *home;
  uint32_t phase;  // barriers that this thread has passed
  uint32_t orders; // that it has seen
  bool isPaused;   // at barriers
};
thread_local ThreadContext current = {nullptr, 0, 0, nullptr, 0, 0, false};
// Frames of a thread that belongs to no team (kernels called directly).
thread_local Arena ownArena;
thread_local int64_t ownClaimed = 0;
} // namespace

/// Executes the task, with its frames behind the first `top` bytes.
void ThreadTeam::State::execute(unsigned index, uint64_t top, bool isPaused) {
  jmp_buf home;
  ThreadContext outer = current;
  current = {this, index, top, &home, phase.get(), orders.get(), isPaused};
  // A frame over the limit jumps back here; compiled code owns nothing that
  // would have to be destroyed on the way.
  if (setjmp(home) == 0)
    task(context);
  current = outer;
}

/// Claims the next of `limit` iterations: `number` counts from 0. A word of an
/// earlier phase stands for none that were claimed.
bool ThreadTeam::State::Claims::take(uint32_t phase, uint64_t limit,
                                     uint64_t &number) {
  uint64_t old = word.load(std::memory_order_relaxed);
  do {
    number = old >> 32 == phase ? old & UINT32_MAX : 0;
    if (number >= limit)
      return false;
  } while (!word.compare_exchange_weak(
      old, (uint64_t(phase) << 32) + number + 1, std::memory_order_relaxed));
  return true;
}

/// Moves this thread away from the core of the task's caller. The kernel may
/// have woken it there, since threads of another team were still spinning on
/// the others, and leaves two that never sleep together for tens of
/// milliseconds. It stays free to go where the kernel wants it later.
void ThreadTeam::State::leaveCallersCore() {
  int cpu = sched_getcpu();
  if (!spin || cpu < 0 || cpu != callersCore)
    return;
  cpu_set_t all, others;
  if (sched_getaffinity(0, sizeof(all), &all) != 0)
    return;
  others = all;
  CPU_CLR(cpu, &others);
  if (CPU_COUNT(&others) > 0 &&
      sched_setaffinity(0, sizeof(others), &others) == 0)
    sched_setaffinity(0, sizeof(all), &all);
}

void ThreadTeam::State::workerLoop(unsigned index) {
  uint32_t seen = 0;
  unsigned patience = 2 * mostSpins; // as in spinWhile
  for (;;) {
    uint32_t rested = more.get(); // before the epoch is looked at
    unsigned left = spin ? patience : 0;
    for (; left && epoch.get() == seen; --left)
      relax();
    patience = left ? std::min(patience * 2, 2 * mostSpins)
                    : std::max(patience / 2, leastSpins);
    bool sleeps = left == 0;
    if (epoch.get() == seen)
      epoch.sleepWhile(seen);
    seen = epoch.get();
    if (index >= seen % epochSteps) {
      more.sleepWhile(rested);
      seen = epochSteps - 1; // no epoch: numbers come again while it rests
      continue;
    }
    if (!task)
      return;
    if (sleeps)
      leaveCallersCore();
    execute(index, 0, pause != nullptr);
    leave();
  }
}

namespace {
struct WorkerStart {
  ThreadTeam::State *team;
  unsigned index;
};
} // namespace

static void *workerMain(void *argument) {
  WorkerStart start = *static_cast<WorkerStart *>(argument);
  delete static_cast<WorkerStart *>(argument);
  start.team->workerLoop(start.index);
  return nullptr;
}

std::unique_ptr<ThreadTeam>
ThreadTeam::create(unsigned threads, uint64_t frameLimit, Error &error) {
  if (threads > maxThreads) {
    error.set(ExitBadCommandLine,
              std::to_string(threads) + " threads are more than the " +
                  std::to_string(maxThreads) + " that a model takes");
    return nullptr;
  }
  unsigned cores = availableCores();
  std::unique_ptr<ThreadTeam> team(new ThreadTeam());
  team->state.reset(new State());
  State &state = *team->state;
  state.size = 1;
  unsigned wanted = threads ? threads : cores;
  // With more threads than cores, spinning only keeps the others waiting.
  state.spin = wanted <= cores;
  state.frameLimit = frameLimit ? frameLimit : physicalMemory();
  uint64_t range = (state.frameLimit + 4095) / 4096 * 4096;
  if (!state.arena.reserve(std::max(range, uint64_t(1) << 20))) {
    error.set(ExitResourceLimit,
              "cannot reserve address space for intermediate results");
    return nullptr;
  }
  state.frameLimit = std::min(state.frameLimit, state.arena.reserved);

  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  size_t stack = 0;
  pthread_attr_getstacksize(&attributes, &stack);
  pthread_attr_setstacksize(&attributes, std::max(stack, size_t(8) << 20));
  int failure = 0;
  for (unsigned i = 1; i < wanted && !failure; ++i) {
    auto *start = new WorkerStart{&state, i};
    pthread_t worker;
    failure = pthread_create(&worker, &attributes, workerMain, start);
    if (failure) {
      delete start;
      error.set(ExitResourceLimit,
                "cannot start thread " + std::to_string(i + 1) + " of " +
                    std::to_string(wanted) + ": " + std::strerror(failure));
    } else {
      state.workers.push_back(worker);
      ++state.size;
    }
  }
  pthread_attr_destroy(&attributes);
  if (failure)
    return nullptr;
  state.active = state.size;
  state.pace = StepPace(state.size);
  state.claims = std::vector<State::Claims>(state.size);
  return team;
}

ThreadTeam::~ThreadTeam() {
  if (!state)
    return;
  if (state->process == getpid()) {
    state->task = nullptr;
    state->setEpoch(state->size);
    for (pthread_t worker : state->workers)
      pthread_join(worker, nullptr);
  }
  state->arena.release();
}

/// Says what is to be executed, to workers that are waiting.
void ThreadTeam::State::start(Task newTask, void *newContext) {
  task = newTask;
  context = newContext;
  wanted.store(0);
  working.store(active - 1);
}

/// Wakes the workers of a task, all of whose words are there.
void ThreadTeam::State::setEpoch(unsigned threads) {
  uint32_t last = epoch.get();
  epoch.set((last / epochSteps + 1) * epochSteps + threads);
  if (threads > last % epochSteps)
    more.raise();
}

/// A worker has done its part of the task.
void ThreadTeam::State::leave() {
  if (working.fetch_sub(1, std::memory_order_acq_rel) == 1)
    allDone.raise();
}

/// Waits for the workers; gives the bytes of a frame that was over the limit.
uint64_t ThreadTeam::State::finish() {
  for (uint32_t seen = allDone.get();
       working.load(std::memory_order_acquire) != 0; seen = allDone.get())
    if (working.load() != 0 && allDone.waitWhile(seen, spin))
      sleeps.fetch_add(1, std::memory_order_relaxed);
  // Whoever left early may have left barriers half full and loops half done.
  arrived.store(0);
  phase.raise();
  return wanted.load();
}

/// Every thread has passed a barrier. The caller's asks what is to be done
/// before the task goes on; the others wait for its orders. Other tasks have
/// barriers of their own, whose number all take over.
void ThreadTeam::State::pauseHere() {
  if (current.index == 0) {
    pause(pauseContext);
    resumes = true;
    orders.raise();
  }
  while (current.index != 0) {
    orders.waitWhile(current.orders++, spin);
    if (resumes)
      break;
    execute(current.index, current.top, /*isPaused=*/false);
    leave();
  }
  current.phase = phase.get();
}

bool ThreadTeam::run(Task task, void *context, Error &error, uint64_t kind) {
  if (state->process != getpid())
    return error.set(ExitBadCommandLine,
                     "the process was forked after the model was opened, and "
                     "the model's threads are not in the child: open the model "
                     "there");
  State &team = *state;
  uint64_t wanted;
  if (current.team == &team) { // in a pause of another task
    Task outer = team.task;
    void *outerContext = team.context;
    team.start(task, context);
    team.resumes = false;
    team.orders.raise();
    team.execute(0, current.top, /*isPaused=*/false);
    wanted = team.finish();
    team.start(outer, outerContext); // at which all still are
  } else {
    pthread_mutex_lock(&team.turn);
    bool isPaced = kind && team.size > 1;
    double start = isPaced ? monotonicTime() : 0;
    team.active = isPaced ? team.pace.begin(kind) : team.size;
    team.sleeps.store(0, std::memory_order_relaxed);
    team.start(task, context);
    if (team.size > 1) {
      team.callersCore = sched_getcpu();
      team.setEpoch(team.active);
    }
    team.execute(0, 0, team.pause != nullptr);
    wanted = team.finish();
    if (isPaced)
      team.pace.end(monotonicTime() - start, team.sleeps.load());
    pthread_mutex_unlock(&team.turn);
  }
  if (!wanted)
    return true;
  return error.set(ExitResourceLimit,
                   "intermediate results need " + std::to_string(wanted) +
                       " bytes of memory or more, but the limit is " +
                       std::to_string(team.frameLimit));
}

void ThreadTeam::setPause(Task pause, void *context) {
  state->pause = pause;
  state->pauseContext = context;
}

unsigned ThreadTeam::size() const { return state->size; }
uint64_t ThreadTeam::frameHighWater() const { return state->highWater; }

} // namespace attune::runtime

//===----------------------------------------------------------------------===//
// Functions that compiled code calls
//===----------------------------------------------------------------------===//

using namespace attune::runtime;

void attune_rt_barrier(void) {
  ThreadTeam::State *team = current.team;
  if (!team) {
    ownClaimed = 0;
    return;
  }
  uint32_t phase = current.phase++;
  if (team->arrived.fetch_add(1, std::memory_order_acq_rel) + 1 ==
      team->active) {
    team->arrived.store(0, std::memory_order_relaxed);
    team->phase.raise();
  } else if (team->phase.waitWhile(phase, team->spin)) {
    team->sleeps.fetch_add(1, std::memory_order_relaxed);
  }
  if (current.isPaused)
    team->pauseHere();
}

// Every thread has iterations of its own, each size-th of them, and the word
// that counts them stays in its cache; a thread that has none left steals
// others' (work stealing). That way threads share a word only at the end of a
// loop, and long iterations at the beginning of one are spread evenly.
int64_t attune_rt_claim(int64_t total) {
  ThreadTeam::State *team = current.team;
  if (!team)
    return ownClaimed < total ? ownClaimed++ : total;
  uint64_t all = total > 0 ? uint64_t(total) : 0, size = team->active;
  for (uint64_t i = 0; i < size; ++i) {
    uint64_t owner = (current.index + i) % size, number;
    uint64_t limit = (all + size - 1 - owner) / size;
    if (team->claims[owner].take(current.phase, limit, number))
      return int64_t(owner + size * number);
  }
  return total;
}

int64_t attune_rt_thread(void) { return current.index; }

int64_t attune_rt_num_threads(void) {
  return current.team ? current.team->active : 1;
}

void *attune_rt_frame_push(int64_t bytes) {
  Arena *arena = current.team ? &current.team->arena : &ownArena;
  uint64_t limit = current.team ? current.team->frameLimit : arena->reserved;
  if (!current.team && !arena->base) {
    arena->reserve(physicalMemory());
    limit = arena->reserved;
  }
  uint64_t size = (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
  if (bytes < 0 || size > limit || current.top > limit - size) {
    if (current.team) {
      current.team->wanted.store(bytes < 0 ? UINT64_MAX : current.top + size);
      longjmp(*current.home, 1);
    }
    std::fprintf(stderr, "attune: error: a frame of %lld bytes does not fit\n",
                 static_cast<long long>(bytes));
    std::abort();
  }
  void *frame = arena->base + current.top;
  current.top += size;
  if (current.team && current.index == 0)
    current.team->highWater = std::max(current.team->highWater, current.top);
  return frame;
}

void attune_rt_frame_pop(int64_t bytes) {
  current.top -= (static_cast<uint64_t>(bytes) + 63) / 64 * 64;
}
