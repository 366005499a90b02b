//===- ThreadTeamTest.cpp - Teams, barriers, frames -----------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cores.h"
#include "StepPace.h"

#include "attune/Runtime/Model.h"
#include "attune/Runtime/ThreadTeam.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>
#include <sched.h>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

using namespace attune::runtime;

namespace {

std::unique_ptr<ThreadTeam> makeTeam(unsigned threads, uint64_t limit = 0) {
  Error error;
  auto team = ThreadTeam::create(threads, limit, error);
  EXPECT_NE(team, nullptr) << error.message;
  return team;
}

class Team : public ::testing::TestWithParam<unsigned> {};

TEST_P(Team, EveryThreadRunsOnce) {
  auto team = makeTeam(GetParam());
  ASSERT_EQ(team->size(), GetParam());
  std::vector<std::atomic<int>> calls(GetParam());
  Error error;
  for (int round = 0; round < 100; ++round)
    ASSERT_TRUE(team->run(
        [](void *context) {
          EXPECT_GT(attune_rt_num_threads(), 0);
          auto &calls = *static_cast<std::vector<std::atomic<int>> *>(context);
          ++calls[static_cast<size_t>(attune_rt_thread())];
        },
        &calls, error));
  for (std::atomic<int> &count : calls)
    EXPECT_EQ(count.load(), 100);
}

/// Each round every thread writes its cell, and after the barrier reads all:
/// one that came through too early reads an old round.
TEST_P(Team, BarriersKeepRoundsApart) {
  auto team = makeTeam(GetParam());
  struct Shared {
    std::vector<int> cells;
    std::atomic<int> wrong{0};
  } shared;
  shared.cells.resize(GetParam());
  Error error;
  ASSERT_TRUE(team->run(
      [](void *context) {
        auto &shared = *static_cast<Shared *>(context);
        for (int round = 1; round <= 3000; ++round) {
          shared.cells[static_cast<size_t>(attune_rt_thread())] = round;
          attune_rt_barrier();
          for (int cell : shared.cells)
            if (cell != round)
              ++shared.wrong;
          attune_rt_barrier();
        }
      },
      &shared, error));
  EXPECT_EQ(shared.wrong.load(), 0);
}

/// A task with loops and frames of its own is run at every third barrier of
/// another, which finds its frame, its iterations and its barriers as they
/// were.
TEST_P(Team, TasksArePausedAtBarriers) {
  struct Shared {
    ThreadTeam *team;
    int barriers = 0, inner = 0;
    std::atomic<int64_t> iterations{0}, wrong{0};
  } shared;
  auto team = makeTeam(GetParam());
  shared.team = team.get();
  team->setPause(
      [](void *context) {
        auto &shared = *static_cast<Shared *>(context);
        if (++shared.barriers % 3 != 0)
          return;
        Error error;
        EXPECT_TRUE(shared.team->run(
            [](void *context) {
              auto &shared = *static_cast<Shared *>(context);
              auto *frame = static_cast<int *>(attune_rt_frame_push(4096));
              for (int round = 0; round < 3; ++round) {
                for (int64_t i; (i = attune_rt_claim(1000)) < 1000;)
                  frame[i] = round;
                attune_rt_barrier();
                for (int64_t i = 0; i < 1000; ++i)
                  shared.wrong += frame[i] != round;
                attune_rt_barrier();
              }
              attune_rt_frame_pop(4096);
            },
            context, error));
        ++shared.inner;
        // One that needs too much fails, and nothing else does.
        EXPECT_FALSE(shared.team->run(
            [](void *) { attune_rt_frame_push(int64_t(1) << 50); }, nullptr,
            error));
      },
      &shared);
  Error error;
  for (int run = 0; run < 2; ++run)
    ASSERT_TRUE(team->run(
        [](void *context) {
          auto &shared = *static_cast<Shared *>(context);
          auto *frame = static_cast<int *>(attune_rt_frame_push(4096));
          for (int round = 0; round < 30; ++round) {
            for (int64_t i; (i = attune_rt_claim(1000)) < 1000;) {
              frame[i] = round;
              ++shared.iterations;
            }
            attune_rt_barrier();
            for (int64_t i = 0; i < 1000; ++i)
              shared.wrong += frame[i] != round;
            attune_rt_barrier();
          }
          attune_rt_frame_pop(4096);
        },
        &shared, error))
        << error.message;
  EXPECT_EQ(shared.barriers, 120);
  EXPECT_EQ(shared.inner, 40);
  EXPECT_EQ(shared.iterations.load(), 60000);
  EXPECT_EQ(shared.wrong.load(), 0);
  team->setPause(nullptr, nullptr);
  ASSERT_TRUE(team->run([](void *) { attune_rt_barrier(); }, nullptr, error));
  EXPECT_EQ(shared.barriers, 120);
}

/// Two teams by turns, as two models of one program are: while threads of one
/// still spin on the other cores, those of the other must not stay where their
/// caller is.
TEST(Teams, WokenThreadsLeaveTheCallersCore) {
  if (availableCores() < 2)
    GTEST_SKIP() << "one core";
  std::unique_ptr<ThreadTeam> teams[] = {makeTeam(2), makeTeam(2)};
  // This thread alone stays where it is, so that it cannot be in the way.
  cpu_set_t before, here;
  ASSERT_EQ(sched_getaffinity(0, sizeof(before), &before), 0);
  CPU_ZERO(&here);
  CPU_SET(sched_getcpu(), &here);
  ASSERT_EQ(sched_setaffinity(0, sizeof(here), &here), 0);
  struct Cores {
    int of[2];
    cpu_set_t *all, *here;
  } cores = {{}, &before, &here};
  Error error;
  // The others come here, too, and are free to go again.
  for (auto &team : teams)
    ASSERT_TRUE(team->run(
        [](void *context) {
          auto *cores = static_cast<Cores *>(context);
          if (attune_rt_thread() != 0)
            for (cpu_set_t *set : {cores->here, cores->all})
              EXPECT_EQ(sched_setaffinity(0, sizeof(*set), set), 0);
        },
        &cores, error));
  constexpr int rounds = 300;
  int together = 0;
  for (int round = 0; round < rounds; ++round) {
    // The first task wakes the team, the second finds it awake.
    for (int task = 0; task < 2; ++task)
      ASSERT_TRUE(teams[round % 2]->run(
          [](void *context) {
            static_cast<Cores *>(context)->of[attune_rt_thread()] =
                sched_getcpu();
            attune_rt_barrier();
          },
          &cores, error));
    together += cores.of[0] == cores.of[1];
  }
  sched_setaffinity(0, sizeof(before), &before);
  // Others on a busy machine may push a thread back, but seldom.
  EXPECT_LT(together, rounds / 10);
}

/// Between two barriers every number goes to one thread.
TEST_P(Team, ClaimsAreEachOneThreads) {
  auto team = makeTeam(GetParam());
  constexpr int numbers = 100, rounds = 300;
  std::vector<std::atomic<int>> claimed(numbers);
  Error error;
  // Twice: a new task counts from 0, too.
  for (int task = 0; task < 2; ++task)
    ASSERT_TRUE(team->run(
        [](void *context) {
          auto &claimed =
              *static_cast<std::vector<std::atomic<int>> *>(context);
          for (int round = 0; round < rounds; ++round) {
            for (int64_t i; (i = attune_rt_claim(numbers)) < numbers;)
              ++claimed[static_cast<size_t>(i)];
            attune_rt_barrier();
          }
        },
        &claimed, error));
  for (std::atomic<int> &count : claimed)
    EXPECT_EQ(count.load(), 2 * rounds);
}

/// A thread's own numbers come first, then those of threads that claim none. A
/// task that ends within a loop leaves nothing to the next one.
TEST_P(Team, ClaimsGoOnWithTheNumbersOfOthers) {
  auto team = makeTeam(GetParam());
  constexpr int64_t numbers = 10;
  std::vector<int64_t> claimed;
  Error error;
  for (int task = 0; task < 2; ++task) {
    claimed.clear();
    ASSERT_TRUE(team->run(
        [](void *context) {
          if (attune_rt_thread() != 0)
            return;
          for (int64_t i; (i = attune_rt_claim(numbers)) < numbers;)
            static_cast<std::vector<int64_t> *>(context)->push_back(i);
        },
        &claimed, error));
    std::vector<int64_t> expected;
    for (int64_t owner = 0; owner < GetParam(); ++owner)
      for (int64_t i = owner; i < numbers; i += GetParam())
        expected.push_back(i);
    EXPECT_EQ(claimed, expected);
  }
}

TEST_P(Team, FramesAgreeAndNest) {
  auto team = makeTeam(GetParam());
  struct Shared {
    std::vector<uint8_t *> outer, inner;
  } shared;
  shared.outer.resize(GetParam());
  shared.inner.resize(GetParam());
  Error error;
  for (int round = 0; round < 2; ++round)
    ASSERT_TRUE(team->run(
        [](void *context) {
          auto &shared = *static_cast<Shared *>(context);
          auto thread = static_cast<size_t>(attune_rt_thread());
          shared.outer[thread] =
              static_cast<uint8_t *>(attune_rt_frame_push(100));
          shared.inner[thread] =
              static_cast<uint8_t *>(attune_rt_frame_push(1 << 20));
          shared.inner[thread][thread] = 1;
          attune_rt_frame_pop(1 << 20);
          EXPECT_EQ(attune_rt_frame_push(1), shared.inner[thread]);
          attune_rt_frame_pop(1);
          attune_rt_frame_pop(100);
        },
        &shared, error));
  for (unsigned i = 0; i < GetParam(); ++i) {
    EXPECT_EQ(shared.outer[i], shared.outer[0]);
    EXPECT_EQ(shared.inner[i], shared.outer[0] + 128);
  }
  EXPECT_EQ(reinterpret_cast<uintptr_t>(shared.outer[0]) % 64, 0u);
  EXPECT_EQ(team->frameHighWater(), 128u + (1 << 20));
}

TEST_P(Team, FramesOverTheLimitFailAndTheTeamLives) {
  auto team = makeTeam(GetParam(), 1 << 20);
  Error error;
  EXPECT_FALSE(team->run(
      [](void *) {
        attune_rt_barrier();
        attune_rt_frame_push(1 << 19);
        attune_rt_frame_push(1 << 20);
        ADD_FAILURE() << "the frame does not fit";
      },
      nullptr, error));
  EXPECT_EQ(error.code, ExitResourceLimit);
  EXPECT_NE(error.message.find("1572864 bytes"), std::string::npos)
      << error.message;
  EXPECT_TRUE(team->run(
      [](void *) {
        attune_rt_frame_push(1 << 20);
        attune_rt_barrier();
        attune_rt_frame_pop(1 << 20);
      },
      nullptr, error));
}

TEST_P(Team, WorkersHaveDeepStacks) {
  auto team = makeTeam(GetParam());
  Error error;
  EXPECT_TRUE(team->run(
      [](void *) {
        volatile char deep[4 << 20];
        deep[0] = 1;
        deep[sizeof(deep) - 1] = deep[0];
      },
      nullptr, error));
}

TEST_P(Team, CallersTakeTurns) {
  auto team = makeTeam(GetParam());
  std::atomic<int> inside{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < 3; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        Error error;
        team->run(
            [](void *context) {
              auto &inside = *static_cast<std::atomic<int> *>(context);
              attune_rt_barrier();
              if (attune_rt_thread() == 0) {
                EXPECT_EQ(inside.fetch_add(1), 0);
                inside.fetch_sub(1);
              }
              attune_rt_barrier();
            },
            &inside, error);
      }
    });
  for (std::thread &caller : callers)
    caller.join();
}

double threadTime() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return double(time.tv_sec) + double(time.tv_nsec) * 1e-9;
}

/// A thread that waits for long leaves its core to others. It spins and yields
/// for a millisecond at most; a tenth of the wait is twice that.
TEST(Teams, ThreadsSleepInLongWaits) {
  auto team = makeTeam(2);
  struct Shared {
    double waited = 0, used = 0;
    std::atomic<bool> isThere = false;
  } shared;
  Error error;
  ASSERT_TRUE(team->run(
      [](void *context) {
        auto &shared = *static_cast<Shared *>(context);
        for (int round = 0; round < 10; ++round) {
          // Not before the other one waits, however late it comes.
          if (attune_rt_thread() == 1) {
            while (!shared.isThere.exchange(false))
              std::this_thread::yield();
            std::this_thread::sleep_for(std::chrono::milliseconds(20));
          }
          auto start = std::chrono::steady_clock::now();
          double before = threadTime();
          if (attune_rt_thread() == 0)
            shared.isThere = true;
          attune_rt_barrier();
          if (attune_rt_thread() == 0) {
            shared.used += threadTime() - before;
            shared.waited += std::chrono::duration<double>(
                                 std::chrono::steady_clock::now() - start)
                                 .count();
          }
        }
      },
      &shared, error));
  EXPECT_GT(shared.waited, 0.19);
  EXPECT_LT(shared.used, shared.waited / 10);
}

INSTANTIATE_TEST_SUITE_P(Sizes, Team, ::testing::Values(1u, 2u, 3u));

/// Steps that take `seconds(threads)` and have `sleeps(threads)`; gives how
/// many threads each took.
template <typename Seconds, typename Sleeps>
static std::vector<unsigned> takeSteps(StepPace &pace, unsigned count,
                                       Seconds seconds, Sleeps sleeps) {
  std::vector<unsigned> taken;
  for (unsigned i = 0; i < count; ++i) {
    unsigned threads = pace.begin(1);
    pace.end(seconds(threads), sleeps(threads));
    taken.push_back(threads);
  }
  return taken;
}

TEST(StepPace, FewerWhereTheyAreFaster) {
  StepPace pace(8);
  auto quiet = [](unsigned threads) { return 8.0 / threads; };
  auto none = [](unsigned) { return 0u; };
  auto many = [](unsigned threads) { return threads > 1 ? 100u : 0u; };
  // Nobody sleeps: nothing is tried.
  for (unsigned threads : takeSteps(pace, 5000, quiet, none))
    ASSERT_EQ(threads, 8u);
  // Threads sleep, but fewer are slower: trials get rare, and each is short.
  std::vector<unsigned> taken = takeSteps(pace, 20000, quiet, many);
  auto others = static_cast<size_t>(std::count_if(
      taken.begin(), taken.end(), [](unsigned each) { return each != 8; }));
  EXPECT_GT(others, 0u);
  EXPECT_LT(others, 100u);
  EXPECT_EQ(taken.back(), 8u);
  // Each more costs time: one is left, and the others are tried seldom.
  pace = StepPace(8);
  auto crowded = [](unsigned threads) { return 8.0 * threads; };
  taken = takeSteps(pace, 64, crowded, many);
  EXPECT_EQ(taken.back(), 1u);
  taken = takeSteps(pace, 20000, crowded, many);
  EXPECT_EQ(taken.back(), 1u);
  EXPECT_LT(std::count(taken.begin(), taken.end(), 2u), 100);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 4u), 0);
  // All come back once it is quiet, after the longest pause at the latest.
  taken = takeSteps(pace, 600 * 8, quiet, none);
  EXPECT_EQ(taken.back(), 8u);
}

TEST(StepPace, OneWhereHalfIsNoBetter) {
  StepPace pace(8);
  std::vector<unsigned> taken = takeSteps(
      pace, 200, [](unsigned threads) { return threads > 1 ? 5. : 1.; },
      [](unsigned threads) { return threads > 1 ? 9u : 0u; });
  EXPECT_EQ(taken.back(), 1u);
}

TEST(StepPace, StopsWhereItIsBest) {
  // Seven cores are free: four threads are better than eight, or two.
  StepPace pace(8);
  auto seconds = [](unsigned threads) {
    return threads > 7 ? 100.0 : 8.0 / threads;
  };
  auto sleeps = [](unsigned threads) { return threads > 7 ? 50u : 0u; };
  std::vector<unsigned> taken = takeSteps(pace, 2000, seconds, sleeps);
  EXPECT_EQ(taken.back(), 4u);
  EXPECT_EQ(std::count(taken.begin(), taken.end(), 2u), 0);
  // Of another kind nothing is known.
  EXPECT_EQ(pace.begin(2), 8u);
}

/// Threads that are late at barriers leave steps to the others. When they come
/// back depends on what else the machine does: StepPace alone is asked that.
TEST(ThreadTeam, StepsOfFewerThreads) {
  std::unique_ptr<ThreadTeam> team = makeTeam(4);
  struct Step {
    bool isCrowded;
    std::atomic<unsigned> threads{0};
    std::atomic<int64_t> claimed{0};
  } step;
  auto run = [&](unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      step.threads = 0;
      step.claimed = 0;
      Error error;
      ASSERT_TRUE(team->run(
          [](void *context) {
            auto *step = static_cast<Step *>(context);
            ++step->threads;
            bool isLate = step->isCrowded && attune_rt_thread() > 0;
            int64_t threads = attune_rt_num_threads();
            usleep(isLate ? 1500 * threads : 2000 / threads);
            attune_rt_barrier();
            while (attune_rt_claim(100) < 100)
              ++step->claimed;
            attune_rt_barrier();
          },
          &step, error, /*kind=*/7));
      ASSERT_EQ(step.claimed, 100);
    }
  };
  step.isCrowded = false;
  run(1);
  EXPECT_EQ(step.threads, 4u);
  // What else runs here disturbs a trial; it is repeated then.
  step.isCrowded = true;
  for (unsigned i = 0; i < 200 && step.threads > 1; ++i)
    run(8);
  EXPECT_EQ(step.threads, 1u);
  // Tasks that are no such steps are for all.
  struct {
    std::atomic<unsigned> threads{0};
  } all;
  Error error;
  ASSERT_TRUE(team->run(
      [](void *context) {
        ++static_cast<decltype(all) *>(context)->threads;
        attune_rt_barrier();
      },
      &all, error));
  EXPECT_EQ(all.threads, 4u);
}

TEST(ThreadTeam, DefaultIsEveryCore) {
  EXPECT_GE(availableCores(), 1u);
  EXPECT_EQ(makeTeam(0)->size(), availableCores());
}

/// Writes control groups as the kernel shows them and reads their limit.
class Quota : public ::testing::Test {
protected:
  void SetUp() override { std::filesystem::create_directories(folder); }
  void TearDown() override { std::filesystem::remove_all(folder); }
  void write(const std::string &file, const std::string &text) {
    std::filesystem::path path = folder / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }
  unsigned cores(const std::string &groups) {
    write("cgroup", groups);
    return coresOfQuota((folder / "cgroup").c_str(), folder.c_str());
  }
  std::filesystem::path folder = std::filesystem::path(::testing::TempDir()) /
                                 ("quota-" + std::to_string(getpid()));
};

TEST_F(Quota, OfVersionTwo) {
  EXPECT_EQ(cores("0::/\n"), 0u);
  write("cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/\n"), 0u);
  write("cpu.max", "200000 100000\n");
  EXPECT_EQ(cores("0::/\n"), 2u);
  // A group that is not seen from inside of the container.
  EXPECT_EQ(cores("0::/system.slice/docker-1.scope\n"), 2u);
  // The tightest limit on the way up; parts of a core count as one.
  write("a/b/cpu.max", "150000 200000\n");
  write("a/cpu.max", "max 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 1u);
  EXPECT_EQ(cores("0::/a\n"), 2u);
  write("a/b/cpu.max", "950000 100000\n");
  EXPECT_EQ(cores("0::/a/b\n"), 2u);
  write("cpu.max", "nonsense");
  EXPECT_EQ(cores("0::/a/b\n"), 10u);
}

TEST_F(Quota, OfVersionOne) {
  const char *groups = "5:memory:/x\n4:cpu,cpuacct:/x\n1:name=systemd:/x\n";
  EXPECT_EQ(cores(groups), 0u);
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "-1\n");
  write("cpu,cpuacct/x/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cores(groups), 0u);
  write("cpu,cpuacct/x/cpu.cfs_quota_us", "250000\n");
  EXPECT_EQ(cores(groups), 3u);
  EXPECT_EQ(cores("5:cpuset:/x\n"), 0u);
  // The kernel may name controllers in another order than their folder.
  EXPECT_EQ(cores("4:cpuacct,cpu:/x\n"), 3u);
  std::filesystem::rename(folder / "cpu,cpuacct", folder / "cpu");
  EXPECT_EQ(cores(groups), 3u);
}

TEST(ThreadTeam, KernelsRunWithoutATeam) {
  EXPECT_EQ(attune_rt_thread(), 0);
  EXPECT_EQ(attune_rt_num_threads(), 1);
  EXPECT_EQ(attune_rt_claim(2), 0);
  EXPECT_EQ(attune_rt_claim(2), 1);
  EXPECT_EQ(attune_rt_claim(2), 2);
  attune_rt_barrier();
  EXPECT_EQ(attune_rt_claim(2), 0);
  void *frame = attune_rt_frame_push(1000);
  std::memset(frame, 1, 1000);
  attune_rt_frame_pop(1000);
  EXPECT_EQ(attune_rt_frame_push(8), frame);
  attune_rt_frame_pop(8);
}

} // namespace
