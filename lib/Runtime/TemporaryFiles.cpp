//===- TemporaryFiles.cpp - Files removed on a signal ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/TemporaryFiles.h"

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

namespace attune::runtime {

// A handler may call neither malloc nor a lock: names are in a fixed table of
// pointers. No command writes nearly as many files at a time; one that finds
// no place is not removed by signals, which is all that it loses.
static constexpr int numSlots = 64;
static std::atomic<char *> slots[numSlots];
static std::atomic<pid_t> tools[numSlots];
static std::atomic<int> numStarting;
static constexpr int endingSignals[] = {SIGINT, SIGTERM, SIGHUP};

static void removeAndEnd(int signal) {
  // Tools first: they may be writing what is removed here. A thread that is
  // starting one does not run this handler.
  while (numStarting.load())
    sched_yield();
  for (std::atomic<pid_t> &tool : tools)
    if (pid_t group = tool.load()) {
      kill(-group, signal);
      waitpid(group, nullptr, 0);
      // What the tool started is not ours to wait for. Where nobody reaps
      // orphans the group stays, so there is a limit.
      timespec millisecond = {0, 1000000};
      for (int i = 0; i < 1000 && kill(-group, 0) == 0; ++i)
        nanosleep(&millisecond, nullptr);
    }
  // Backwards: a folder is named before what is in it.
  for (int i = numSlots - 1; i >= 0; --i)
    if (const char *path = slots[i].load())
      if (unlink(path) != 0)
        rmdir(path);
  std::signal(signal, SIG_DFL);
  raise(signal);
}

void removeTemporariesOnSignals() {
  for (int signal : endingSignals) {
    struct sigaction action;
    // An ignored signal stays ignored, as nohup has it.
    if (sigaction(signal, nullptr, &action) != 0 ||
        action.sa_handler != SIG_DFL)
      continue;
    action = {};
    action.sa_handler = removeAndEnd;
    sigemptyset(&action.sa_mask);
    sigaction(signal, &action, nullptr);
  }
}

void TemporaryFile::watch(const std::string &path) {
  forget();
  char *name = strdup(path.c_str());
  if (!name)
    return;
  // Behind all that is in use, so that the table keeps the order of calls.
  int last = numSlots;
  while (last > 0 && !slots[last - 1].load())
    --last;
  for (; last < numSlots; ++last) {
    char *none = nullptr;
    if (slots[last].compare_exchange_strong(none, name)) {
      slot = last;
      return;
    }
  }
  std::free(name);
}

void TemporaryFile::forget() {
  if (slot >= 0)
    std::free(slots[slot].exchange(nullptr));
  slot = -1;
}

TemporaryTool::TemporaryTool() {
  sigset_t ending;
  sigemptyset(&ending);
  for (int signal : endingSignals)
    sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, &before);
  ++numStarting;
}

void TemporaryTool::start(pid_t group) {
  pid_t none = 0;
  for (int i = 0; group > 0 && slot < 0 && i < numSlots; ++i, none = 0)
    if (tools[i].compare_exchange_strong(none, group))
      slot = i;
  --numStarting;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

TemporaryTool::~TemporaryTool() {
  if (slot >= 0)
    tools[slot].store(0);
}

} // namespace attune::runtime
