//===- StepScheduleTest.cpp - Order among instructions --------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "Cuda/StepSchedule.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <random>

using namespace attune::runtime;

namespace {

/// Launches that own what they point to.
class Step {
public:
  void add(uint32_t tasks, std::vector<CudaAccess> accesses,
           uint32_t atOnce = 1) {
    words.push_back({launches.size(), tasks});
    all.push_back(std::move(accesses));
    launches.push_back({7, tasks, atOnce, words.back().data(), 2,
                        all.back().data(), all.back().size()});
  }
  StepSchedule schedule(uint32_t blocks = 4) const {
    return makeSchedule(launches, blocks);
  }
  std::string problem(const StepSchedule &schedule, uint32_t blocks = 4) const {
    return findScheduleProblem(schedule, launches, blocks);
  }
  std::vector<StepLaunch> launches;

private:
  std::deque<std::vector<uint64_t>> words;
  std::deque<std::vector<CudaAccess>> all;
};

CudaAccess reads(uint64_t begin, uint64_t end) { return {begin, end, false}; }
CudaAccess writes(uint64_t begin, uint64_t end) { return {begin, end, true}; }

std::vector<std::vector<uint32_t>> waitsOf(const StepSchedule &schedule) {
  std::vector<std::vector<uint32_t>> all;
  for (const StepInstruction &one : schedule.instructions) {
    all.emplace_back();
    for (uint32_t i = 0; i < one.numWaits; ++i)
      all.back().push_back(schedule.waits[one.firstWait + i].instruction);
  }
  return all;
}
using Waits = std::vector<std::vector<uint32_t>>;

/// A chain with a branch: 1 and 2 read what 0 writes, 3 reads both.
Step diamond() {
  Step step;
  step.add(3, {writes(0, 100)});
  step.add(2, {reads(0, 100), writes(100, 200)});
  step.add(9, {reads(50, 60), writes(200, 300)});
  step.add(5, {reads(100, 300), writes(0, 10)});
  return step;
}

TEST(StepSchedule, WaitsForWhatItNeeds) {
  Step step = diamond();
  StepSchedule schedule = step.schedule();
  // 3 also writes what 0 did and 1 has read: both are done by then.
  EXPECT_EQ(waitsOf(schedule), (Waits{{}, {0}, {0}, {2, 1}}));
  EXPECT_EQ(step.problem(schedule), "");
  EXPECT_EQ(schedule.waits[0].groups, 3u);
}

TEST(StepSchedule, ReadersMayGoOnTogether) {
  Step step;
  step.add(1, {writes(0, 8)});
  step.add(1, {reads(0, 8), writes(8, 16)});
  step.add(1, {reads(0, 4), writes(16, 24)});
  // Only what 2 reads, and then what 1 alone does.
  step.add(1, {writes(0, 2)});
  step.add(1, {writes(4, 8)});
  step.add(1, {reads(2, 4), writes(30, 40)});
  StepSchedule schedule = step.schedule();
  EXPECT_EQ(waitsOf(schedule), (Waits{{}, {0}, {0}, {2, 1}, {1}, {0}}));
  EXPECT_EQ(step.problem(schedule), "");
}

TEST(StepSchedule, UnknownAccessesAreAll) {
  Step step;
  step.add(1, {writes(0, 8)});
  step.add(1, {writes(8, 16)});
  step.add(1, {});
  step.add(1, {reads(1000, 1001)});
  StepSchedule schedule = step.schedule();
  EXPECT_EQ(waitsOf(schedule), (Waits{{}, {}, {1, 0}, {2}}));
  EXPECT_EQ(step.problem(schedule), "");
}

TEST(StepSchedule, SharesTasksAmongBlocks) {
  Step step;
  step.add(3, {writes(0, 1)}, 8);   // fewer than blocks: one at a time
  step.add(21, {writes(1, 2)}, 8);  // six side by side
  step.add(100, {writes(2, 3)}, 8); // as many as there is room for
  StepSchedule schedule = step.schedule();
  auto one = [&](size_t i) { return schedule.instructions[i]; };
  EXPECT_EQ(one(0).atOnce, 1u);
  EXPECT_EQ(one(0).groups, 3u);
  EXPECT_EQ(one(1).atOnce, 6u);
  EXPECT_EQ(one(1).groups, 4u);
  EXPECT_EQ(one(1).firstBlock, 3u);
  EXPECT_EQ(one(2).atOnce, 8u);
  EXPECT_EQ(one(2).groups, 13u);
  EXPECT_EQ(one(2).firstBlock, 3u);
  EXPECT_EQ(step.problem(schedule), "");
}

TEST(StepSchedule, RandomStepsAreInOrder) {
  std::mt19937 random(1);
  auto draw = [&](unsigned below) { return unsigned(random() % below); };
  for (int turn = 0; turn < 200; ++turn) {
    Step step;
    for (unsigned i = 0, count = 1 + draw(40); i < count; ++i) {
      std::vector<CudaAccess> accesses;
      for (unsigned k = 0, some = draw(5); k < some; ++k) {
        uint64_t begin = draw(300);
        accesses.push_back({begin, begin + 1 + draw(60), draw(3) == 0});
      }
      step.add(1 + draw(20), accesses, 1 + draw(4));
    }
    unsigned blocks = 1 + draw(7);
    StepSchedule schedule = step.schedule(blocks);
    ASSERT_EQ(step.problem(schedule, blocks), "");
    // None of the waits is implied by the others.
    for (size_t i = 0; i < schedule.waits.size(); ++i) {
      StepSchedule without = schedule;
      without.waits.erase(without.waits.begin() + long(i));
      for (StepInstruction &one : without.instructions) {
        if (i >= one.firstWait && i < one.firstWait + one.numWaits)
          --one.numWaits;
        if (one.firstWait > i)
          --one.firstWait;
      }
      ASSERT_NE(step.problem(without, blocks).find("does not wait for it"),
                std::string::npos);
    }
  }
}

TEST(StepSchedule, FindsPlantedMistakes) {
  Step step = diamond();
  const StepSchedule good = step.schedule();
  auto expect = [&](const std::string &what,
                    const std::function<void(StepSchedule &)> &plant) {
    StepSchedule bad = good;
    plant(bad);
    EXPECT_EQ(step.problem(bad), what);
  };
  expect("instruction 1 waits for instruction 2, which does not come before it",
         [](auto &s) { s.waits[0].instruction = 2; });
  expect("instruction 1 waits for instruction 1, which does not come before it",
         [](auto &s) { s.waits[0].instruction = 1; });
  expect("instruction 1 waits for more groups than instruction 0 has",
         [](auto &s) { s.waits[0].groups = 4; });
  expect("instruction 1 does not wait for all groups of instruction 0",
         [](auto &s) { s.waits[0].groups = 2; });
  expect("instruction 2 touches what instruction 0 does, and does not wait for "
         "it",
         [](auto &s) { s.instructions[2].numWaits = 0; });
  expect("instruction 3 touches what instruction 1 does, and does not wait for "
         "it",
         [](auto &s) { s.instructions[3].numWaits = 1; });
  expect("instruction 3 has waits that the list does not have",
         [](auto &s) { s.instructions[3].numWaits = 3; });
  expect("instruction 2 has tasks in no group",
         [](auto &s) { s.instructions[2].groups = 8; });
  expect("instruction 2 has groups without a task",
         [](auto &s) { s.instructions[2].groups = 10; });
  expect("instruction 2 has more tasks at once than a block has room for",
         [](auto &s) { s.instructions[2].atOnce = 2; });
  expect("instruction 0 begins at a block that does not exist",
         [](auto &s) { s.instructions[0].firstBlock = 4; });
  expect("instruction 1 is not its launch",
         [](auto &s) { s.instructions[1].kernel = 3; });
  expect("instruction 1 is not its launch",
         [](auto &s) { s.instructions[1].tasks = 1; });
  expect("instruction 2 has other arguments than its launch",
         [](auto &s) { s.instructions[2].firstWord = 0; });
  expect("3 instructions for 4 launches",
         [](auto &s) { s.instructions.pop_back(); });
  EXPECT_EQ(step.problem(good), "");
}

} // namespace
