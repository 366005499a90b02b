//===- TemporaryFiles.cpp - Files removed on a signal ---------------------===//
//
// Part of Attune, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "attune/Runtime/TemporaryFiles.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace attune::runtime {

// A handler may call neither malloc nor a lock: names are in a fixed table of
// pointers. No command writes nearly as many files at a time; one that finds
// no place is not removed by signals, which is all that it loses.
static constexpr int numSlots = 64;
static std::atomic<char *> slots[numSlots];
static std::atomic<pid_t> tools[numSlots];
static std::atomic<int> numWaits;
static std::atomic<bool> isEnding;
static constexpr int endingSignals[] = {SIGINT, SIGTERM, SIGHUP};

/// Removes the files in a folder. `readdir` may allocate, the system call does
/// not.
static void emptyFolder(const char *path) {
  int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0)
    return;
  alignas(dirent64) char entries[4096];
  long size;
  while ((size = syscall(SYS_getdents64, folder, entries, sizeof(entries))) > 0)
    for (long at = 0; at < size;) {
      const auto *entry = reinterpret_cast<const dirent64 *>(entries + at);
      unlinkat(folder, entry->d_name, 0);
      at += entry->d_reclen;
    }
  close(folder);
}

/// False if a folder is left because another thread has put a file into it.
static bool removeAll() {
  bool gone = true;
  for (std::atomic<char *> &slot : slots)
    if (const char *path = slot.load(); path && unlink(path) != 0) {
      emptyFolder(path);
      if (rmdir(path) != 0 && errno == ENOTEMPTY)
        gone = false;
    }
  return gone;
}

static void removeAndEnd(int signal) {
  isEnding = true;
  // A thread that waits with signals does not run this handler.
  while (numWaits.load())
    sched_yield();
  timespec millisecond = {0, 1000000};
  // Tools first: they may be writing what is removed here.
  for (std::atomic<pid_t> &tool : tools)
    if (pid_t group = tool.load()) {
      kill(-group, signal);
      waitpid(group, nullptr, 0);
      // Processes that the tool started cannot be waited for. Where nobody
      // reaps orphans the group stays, so there is a limit.
      for (int i = 0; i < 1000 && kill(-group, 0) == 0; ++i)
        nanosleep(&millisecond, nullptr);
    }
  // Other threads go on and may just have put a file into a folder.
  for (int i = 0; i < 1000 && !removeAll(); ++i)
    nanosleep(&millisecond, nullptr);
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
  for (int i = 0; i < numSlots; ++i) {
    char *none = nullptr;
    if (slots[i].compare_exchange_strong(none, name)) {
      slot = i;
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

int createBeside(const std::string &path, std::string &temporary) {
  size_t slash = path.rfind('/');
  size_t nameAt = slash == std::string::npos ? 0 : slash + 1;
  for (unsigned attempt = 0; attempt < 1000; ++attempt) {
    temporary = path.substr(0, nameAt) + "." + path.substr(nameAt, 200) +
                ".part-" + std::to_string(getpid()) + "-" +
                std::to_string(attempt);
    int fd =
        open(temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST)
      return fd;
  }
  return -1;
}

SignalsWait::SignalsWait() {
  sigset_t ending;
  sigemptyset(&ending);
  for (int signal : endingSignals)
    sigaddset(&ending, signal);
  pthread_sigmask(SIG_BLOCK, &ending, &before);
  ++numWaits;
  // The handler has looked, or is about to; the program ends with it.
  if (isEnding.load()) {
    --numWaits;
    while (true)
      pause();
  }
}

void SignalsWait::end() {
  if (!waits)
    return;
  waits = false;
  --numWaits;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

void TemporaryTool::start(pid_t group) {
  pid_t none = 0;
  for (int i = 0; group > 0 && slot < 0 && i < numSlots; ++i, none = 0)
    if (tools[i].compare_exchange_strong(none, group))
      slot = i;
  starting.end();
}

TemporaryTool::~TemporaryTool() {
  if (slot >= 0)
    tools[slot].store(0);
}

} // namespace attune::runtime
